"""What a streamed run keeps of its batches, folded in by compiled code.

Part of the generated kernel module, see `gesim.sim.fast.kernel`: the text below the line of
dashes is copied into it. It does for the kernel's rows what `gesim.metrics.stream.Stream` does
for columns of any driver, to the same integers, in a hundredth of the time.

A batch is cut into runs of requests that lie side by side and are of one group and one block;
what is equal for all of them is booked once.
"""

from __future__ import annotations

# mypy: ignore-errors
LANES = 1
GROUPS = 1
SINGLE = False
LEVELLED = False
DUE = False
NEVER = 1 << 62
STARTED = 11
BUCKETS = 1 << 13

# Rows of `totals`.
REQUESTS, SOJOURNS, LAST_ARRIVAL, LAST = 0, 1, 2, 3

# ------------------------------------------------------------------------------------------


def bucket(value):
    """Bucket of `gesim.metrics.histogram.bucket_of`: the leading bits of the float."""
    return max((np.float64(value).view(np.int64) >> 45) - 130943, 0)


def book(series, bits, time_ns, column, weight):
    """Count `weight` events at one time in a series of `gesim.metrics.timebins`."""
    place = time_ns >> bits
    series[0][place, column] += weight
    series[1][place, column] += (time_ns - (place << bits)) * weight


def book_run(series, bits, T, j, m, column, total, shift):
    """Count the events at ``T[j:j + m] - shift``; `total` is the sum of these times."""
    place = (T[j] - shift) >> bits
    if (T[j + m - 1] - shift) >> bits == place:
        series[0][place, column] += m
        series[1][place, column] += total - m * (place << bits)
    else:
        for k in range(j, j + m):
            book(series, bits, T[k] - shift, column, 1)


def tally(
    S, first, T, I, L, D, lane_start, order, batches, host, transfer, receive, respond, slo,
    block_bits, base, outcomes, targeted, good, sums, largest, first_ns, hist, items, gears,
    by_latency, bits, arrived, answered, on_time, entered, left, started, finished, gone, totals,
):  # fmt: skip
    """Fold the batches of one call of the kernel.

    `hist` holds, flat, a histogram by block (from `base` on), group and part; `items` and
    `gears` count batches by block.
    """
    o = first if SINGLE else 0
    for b in range(S[STARTED]):
        start_ns = batches[b, 0]
        x = 0 if SINGLE else batches[b, 1]
        n = batches[b, 2]
        gear = batches[b, 3]
        compute_ns = batches[b, 4]
        done = batches[b, 5]
        answer_ns = done + respond
        host_ns = host[n]
        transfer_ns = transfer[gear]
        book(started, bits, start_ns, x, 1)
        book(finished, bits, done, x, 1)
        book(gone, bits, done, 0, n)
        row = (I[o if SINGLE else order[o]] >> block_bits) - base
        items[row, n] += 1
        gears[row, gear] += 1
        lane = 0
        i = 0
        while i < n:
            j = o + i if SINGLE else order[o + i]
            m = 1
            g = 0
            if LANES > 1:
                while lane < LANES - 1 and j >= lane_start[lane + 1]:
                    lane += 1
                end = lane_start[lane + 1] if lane < LANES - 1 else NEVER
                while i + m < n and order[o + i + m] == j + m and j + m < end:
                    m += 1
                g = lane
            elif LEVELLED:
                g = min(max(L[j], 1), GROUPS) - 1
            else:
                m = n - i
            block = I[j] >> block_bits
            if I[j + m - 1] >> block_bits != block:
                m = 1
            at = ((block - base) * GROUPS + g) * 5 * BUCKETS
            queue_at = at + BUCKETS
            total = 0
            met = 0
            wanted = 0
            for k in range(j, j + m):
                t = T[k]
                total += t
                waited = start_ns - t
                latency = answer_ns + receive - t
                y = bucket(latency)
                hist[at + y] += 1
                hist[queue_at + bucket(waited)] += 1
                by_latency[y, 0] += latency
                by_latency[y, 1] += waited
                by_latency[y, 2] += host_ns
                by_latency[y, 3] += transfer_ns
                by_latency[y, 4] += compute_ns
                if DUE:
                    wanted += D[k] < NEVER
                    met += answer_ns <= D[k] and D[k] < NEVER
                else:
                    met += latency <= slo
            if not DUE and slo > 0:
                wanted = m
            hist[at + 2 * BUCKETS + bucket(host_ns)] += m
            hist[at + 3 * BUCKETS + bucket(transfer_ns)] += m
            hist[at + 4 * BUCKETS + bucket(compute_ns)] += m
            arrivals = total - m * receive
            longest = answer_ns + receive - T[j]
            outcomes[block, g, 1] += m
            targeted[block, g] += wanted
            good[block, g] += met
            sums[block, g, 0] += m * answer_ns - arrivals
            sums[block, g, 1] += m * start_ns - total
            sums[block, g, 2] += m * host_ns
            sums[block, g, 3] += m * transfer_ns
            sums[block, g, 4] += m * compute_ns
            largest[block, g, 0] = max(largest[block, g, 0], longest)
            largest[block, g, 1] = max(largest[block, g, 1], start_ns - T[j])
            largest[block, g, 2] = max(largest[block, g, 2], host_ns)
            largest[block, g, 3] = max(largest[block, g, 3], transfer_ns)
            largest[block, g, 4] = max(largest[block, g, 4], compute_ns)
            first_ns[block] = min(first_ns[block], T[j] - receive)
            book_run(entered, bits, T, j, m, g, total, 0)
            book_run(arrived, bits, T, j, m, g, arrivals, receive)
            book(left, bits, start_ns, g, m)
            book(answered, bits, answer_ns, g, m)
            if met > 0:
                book(on_time, bits, answer_ns, g, met)
            totals[SOJOURNS] += m * done - arrivals
            totals[LAST_ARRIVAL] = max(totals[LAST_ARRIVAL], T[j + m - 1] - receive)
            i += m
        totals[REQUESTS] += n
        totals[LAST] = max(totals[LAST], done)
        o += n
