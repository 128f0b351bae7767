"""What a streamed run keeps of its batches, folded in by compiled code.

Part of the generated kernel module, see `gesim.sim.fast.kernel`: the text below the line of
dashes is copied into it. It does for the kernel's rows what `gesim.metrics.stream.Stream` does
for columns of any driver, to the same integers, in a hundredth of the time.

A batch is cut into runs of requests that lie side by side and are of one group; what is equal
for all of them is booked once. As long as everything happens in one block and one bin of the
series, only sums by group are kept, and spread when that ends: sums of times by the right
weights give both the sums of latencies and the offsets in the bins.
"""

from __future__ import annotations

# mypy: ignore-errors
LANES = 1
INSTANCES = 1
GROUPS = 1
LEVELLED = False
DUE = False
NEVER = 1 << 62
JITTER = False
WORK = False
BUCKETS = 1 << 13

# Rows of `totals`.
REQUESTS, SOJOURNS, LAST_ARRIVAL, LAST = 0, 1, 2, 3

# Columns of the sums by group. A name like `AT_START` is a sum of times, one per request.
COUNT, ENTERED, AT_START, AT_ANSWER, MET, AT_MET, WANTED = 0, 1, 2, 3, 4, 5, 6
HOST, TRANSFER, COMPUTE, LONGEST, SUMS = 7, 8, 9, 10, 15
"""From LONGEST on: the largest latency, queue, host, transfer and compute."""

# ------------------------------------------------------------------------------------------


def bucket(value):
    """Bucket of `gesim.metrics.histogram.bucket_of`: the leading bits of the float."""
    return max((np.float64(value).view(np.int64) >> 45) - 130943, 0)


def book(series, bits, time_ns, column, weight):
    """Count `weight` events at one time in a series of `gesim.metrics.timebins`."""
    place = time_ns >> bits
    series[0][place, column] += weight
    series[1][place, column] += (time_ns - (place << bits)) * weight


def spread(series, place, low, column, count, times):
    """Count events whose times, all in one bin, sum up to `times`."""
    series[0][place, column] += count
    series[1][place, column] += times - count * low


def settle(
    acc, ran, block, low, bits, receive, respond, slo, outcomes, targeted, good, sums, largest,
    arrived, answered, on_time, entered, left, started, finished, gone, totals,
):  # fmt: skip
    """Spread the sums by group and by instance over a block and a bin, and start again."""
    place = low >> bits
    for x in range(INSTANCES):
        spread(started, place, low, x, ran[x, 0], ran[x, 1])
        spread(finished, place, low, x, ran[x, 0], ran[x, 2])
        for k in range(3):
            ran[x, k] = 0
    for g in range(GROUPS):
        n = acc[g, COUNT]
        arrivals = acc[g, ENTERED] - n * receive
        at_done = acc[g, AT_ANSWER] - n * respond
        outcomes[block, g, 1] += n
        targeted[block, g] += acc[g, WANTED] if DUE else n * (slo > 0)
        good[block, g] += acc[g, MET]
        sums[block, g, 0] += acc[g, AT_ANSWER] - arrivals
        sums[block, g, 1] += acc[g, AT_START] - acc[g, ENTERED]
        for part in range(3):
            sums[block, g, 2 + part] += acc[g, HOST + part]
        for part in range(5):
            largest[block, g, part] = max(largest[block, g, part], acc[g, LONGEST + part])
        spread(arrived, place, low, g, n, arrivals)
        spread(entered, place, low, g, n, acc[g, ENTERED])
        spread(left, place, low, g, n, acc[g, AT_START])
        spread(answered, place, low, g, n, acc[g, AT_ANSWER])
        spread(on_time, place, low, g, acc[g, MET], acc[g, AT_MET])
        spread(gone, place, low, 0, n, at_done)
        totals[SOJOURNS] += at_done - arrivals
        for k in range(SUMS):
            acc[g, k] = 0


def tally(
    batch_count, first, T, I, L, D, lane_start, order, batches, host, transfer, receive, respond,
    slo, block_bits, base, outcomes, targeted, good, sums, largest, first_ns, hist, items, gears,
    by_latency, bits, arrived, answered, on_time, entered, left, started, finished, gone, totals,
):  # fmt: skip
    """Fold the batches of one call of the kernel.

    `first` is the place of the first request where they lie side by side, -1 where `order` says.
    `hist` holds, flat, a histogram by block (from `base` on), group and part; `items` and
    `gears` count batches by block.
    """
    aside = first >= 0
    o = first if aside else 0
    begin = o
    acc = np.zeros((GROUPS, SUMS), np.int64)
    ran = np.zeros((INSTANCES, 3), np.int64)
    host_bucket = np.zeros(len(host), np.int64)
    transfer_bucket = np.zeros(len(transfer), np.int64)
    for n in range(len(host)):
        host_bucket[n] = bucket(host[n])
        transfer_bucket[n] = bucket(transfer[n])
    here = -1  # the block, and the bin, that the sums belong to
    low = 0
    high = 0
    earliest_here = NEVER
    last_arrival = totals[LAST_ARRIVAL]
    last = totals[LAST]
    for b in range(batch_count):
        start_ns = batches[b, 0]
        x = batches[b, 1] if INSTANCES > 1 else 0
        n = batches[b, 2]
        gear = batches[b, 3]
        compute_ns = batches[b, 4]
        done = batches[b, 5]
        answer_ns = done + respond
        host_ns = host[n]
        transfer_ns = transfer[gear]
        compute_at = bucket(compute_ns)
        row = (I[o if aside else order[o]] >> block_bits) - base
        items[row, n] += 1
        gears[row, gear] += 1
        last = max(last, done)
        lane = 0
        i = 0
        while i < n:
            j = o + i if aside else order[o + i]
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
            earliest = T[j] - receive
            if block != here or earliest < low or answer_ns >= high:
                if here >= 0:
                    settle(
                        acc, ran, here, low, bits, receive, respond, slo, outcomes, targeted,
                        good, sums, largest, arrived, answered, on_time, entered, left, started,
                        finished, gone, totals,
                    )  # fmt: skip
                    first_ns[here] = min(first_ns[here], earliest_here)
                here = block
                earliest_here = NEVER
                low = (earliest >> bits) << bits
                high = low + (1 << bits)
                m = 1 if answer_ns >= high else m
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
            hist[at + 2 * BUCKETS + host_bucket[n]] += m
            hist[at + 3 * BUCKETS + transfer_bucket[gear]] += m
            hist[at + 4 * BUCKETS + compute_at] += m
            earliest_here = min(earliest_here, earliest)
            last_arrival = max(last_arrival, T[j + m - 1] - receive)
            longest = answer_ns - earliest
            if answer_ns < high:
                acc[g, COUNT] += m
                acc[g, ENTERED] += total
                acc[g, AT_START] += m * start_ns
                acc[g, AT_ANSWER] += m * answer_ns
                acc[g, HOST] += m * host_ns
                acc[g, TRANSFER] += m * transfer_ns
                acc[g, COMPUTE] += m * compute_ns
                if met > 0:
                    acc[g, MET] += met
                    acc[g, AT_MET] += met * answer_ns
                if DUE:
                    acc[g, WANTED] += wanted
                if longest > acc[g, LONGEST]:
                    acc[g, LONGEST] = longest
                if start_ns - T[j] > acc[g, LONGEST + 1]:
                    acc[g, LONGEST + 1] = start_ns - T[j]
                if host_ns > acc[g, LONGEST + 2]:
                    acc[g, LONGEST + 2] = host_ns
                if transfer_ns > acc[g, LONGEST + 3]:
                    acc[g, LONGEST + 3] = transfer_ns
                if compute_ns > acc[g, LONGEST + 4]:
                    acc[g, LONGEST + 4] = compute_ns
            else:  # a request whose time here reaches over a bin's end
                outcomes[block, g, 1] += 1
                targeted[block, g] += wanted if DUE else slo > 0
                good[block, g] += met
                sums[block, g, 0] += longest
                sums[block, g, 1] += start_ns - total
                sums[block, g, 2] += host_ns
                sums[block, g, 3] += transfer_ns
                sums[block, g, 4] += compute_ns
                largest[block, g, 0] = max(largest[block, g, 0], longest)
                largest[block, g, 1] = max(largest[block, g, 1], start_ns - total)
                largest[block, g, 2] = max(largest[block, g, 2], host_ns)
                largest[block, g, 3] = max(largest[block, g, 3], transfer_ns)
                largest[block, g, 4] = max(largest[block, g, 4], compute_ns)
                book(arrived, bits, earliest, g, 1)
                book(entered, bits, total, g, 1)
                book(left, bits, start_ns, g, 1)
                book(answered, bits, answer_ns, g, 1)
                book(on_time, bits, answer_ns, g, met)
                book(gone, bits, done, 0, 1)
                totals[SOJOURNS] += done - earliest
            i += m
        if start_ns >= low and done < high:
            ran[x, 0] += 1
            ran[x, 1] += start_ns
            ran[x, 2] += done
        else:
            book(started, bits, start_ns, x, 1)
            book(finished, bits, done, x, 1)
        o += n
    if here >= 0:
        settle(
            acc, ran, here, low, bits, receive, respond, slo, outcomes, targeted, good, sums,
            largest, arrived, answered, on_time, entered, left, started, finished, gone, totals,
        )  # fmt: skip
        first_ns[here] = min(first_ns[here], earliest_here)
    totals[REQUESTS] += o - begin
    totals[LAST_ARRIVAL] = last_arrival
    totals[LAST] = last
