"""The event loop of the fast lane: batch-granular, over arrays, one source for two forms.

Theory of operation
-------------------
Arrivals come in chunks, sorted into lanes (one for `fifo`, one a level for `strict_priority`).
A lane is a slice of one flat array of enqueue times with four cursors:

    head <= tail <= read <= end      [head, tail) is queued, [read, end) has not arrived yet

Admitting a request moves its time from `read` to `tail`, so the array itself is the queue: no
ring to overflow, and nothing to copy while all are admitted. Between two calls the feeder
moves what is left to the front and appends the next chunk.

The loop follows `gesim.sim.driver` step by step: next instant, arrivals before it up to the
first that makes a decision possible, completions, arrivals at the instant, decision. It stops
before `hold_ns`, the time of the last arrival it was given, because more may come at that
very instant; so a chunk border never changes an order, and a pending `Wait` is carried over.

`load_kernel` (in `compiled`) copies the text below the line of dashes into a module of its own,
with the flags fixed and the policy's functions beside it, and numba compiles that. The flags
are module constants, so numba drops what a scenario does not use.
"""

from __future__ import annotations

# mypy: ignore-errors
LANES = 1
INSTANCES = 1
EAGER = False
BOUNDED = False
TIMEOUT = False
JITTER = False
LEVELLED = False
WORK = False
CALLED = False
DROPS = False
DUE = False
SINGLE = False
GROUPS = 1
NEVER = 1 << 62

# Scalars of the state array `S`.
WAIT_UNTIL, WAIT_COUNT, LAST_DISPATCH, LAST_FINISH, BATCHES, DRAWN = 0, 1, 2, 3, 4, 5
END_NS, QUEUED, QUEUE_BOUND, RUN, LOST, STARTED, STATES = 6, 7, 8, 9, 10, 11, 12

# Why a request left without being run; rows of `lost`.
REJECTED, EXPIRED, DROPPED, FULL = 0, 1, 2, 3

# Results of `run`.
MORE_ARRIVALS, OVER, MORE_DRAWS, ILLEGAL, MIXED_LEVELS = 0, 1, 2, 3, 4

# ------------------------------------------------------------------------------------------


def next_lane(T, I, read, end):
    """Lane of the next arrival: the earliest time, then the lowest id."""
    best = 0
    if LANES > 1:
        for lane in range(1, LANES):
            if read[lane] < end[lane]:
                t = T[read[lane]]
                if (
                    read[best] >= end[best]
                    or t < T[read[best]]
                    or (t == T[read[best]] and I[read[lane]] < I[read[best]])
                ):
                    best = lane
    return best


def next_time(T, read, end, lane):
    return T[read[lane]] if read[lane] < end[lane] else NEVER


def lose(j, lane, at_ns, why, S, T, L, I, D, lost):
    """Book an arrival that leaves without being run."""
    n = S[LOST]
    S[LOST] = n + 1
    lost[n, 0] = I[j]
    lost[n, 1] = at_ns
    lost[n, 2] = why
    lost[n, 3] = T[j]
    lost[n, 4] = L[j] if LEVELLED else lane + 1
    if DUE:
        lost[n, 5] = D[j]


def expire(now, S, T, L, I, D, head, tail, timeout, lost):
    """Drop the heads whose last instant lies before `now`; returns how many."""
    gone = 0
    for lane in range(LANES):
        while head[lane] < tail[lane] and T[head[lane]] + timeout < now:
            j = head[lane]
            lose(j, lane, T[j] + timeout + 1, EXPIRED, S, T, L, I, D, lost)
            head[lane] = j + 1
            gone += 1
    return gone


def arrive(t, lane, count, idle, S, T, L, I, W, D, head, tail, read, bound, timeout, lost):
    """Admit or reject the next arrival of a lane; returns the change of the count.

    S[QUEUED] is 1 if it was queued, else 0.
    """
    gone = 0
    if TIMEOUT:
        gone = expire(t, S, T, L, I, D, head, tail, timeout, lost)
        count -= gone
    r = read[lane]
    read[lane] = r + 1
    S[QUEUED] = 0
    if count >= S[QUEUE_BOUND]:
        lose(r, lane, t, FULL, S, T, L, I, D, lost)
        return -gone
    if BOUNDED:
        queued = tail[lane] - head[lane]
        if LEVELLED:
            queued = 0
            for j in range(head[lane], tail[lane]):
                if L[j] == L[r]:
                    queued += 1
        if (bound > 0 and queued >= bound) or (bound == 0 and idle <= count):
            lose(r, lane, t, REJECTED, S, T, L, I, D, lost)
            return -gone
    w = tail[lane]
    tail[lane] = w + 1
    if w != r:
        T[w] = t
        I[w] = I[r]
        if LEVELLED:
            L[w] = L[r]
        if WORK:
            W[w] = W[r]
        if DUE:
            D[w] = D[r]
    S[QUEUED] = 1
    return 1 - gone


def look(count, idle, since, last_dispatch, last_finish, T, L, head, tail, gears, service):
    """Make the view for one decision."""
    first = NEVER
    oldest = NEVER
    for k in range(LANES):
        if head[k] < tail[k]:
            t = T[head[k]]
            if first == NEVER:
                first = t
            if t < oldest:
                oldest = t
    return View(
        count, count, first, oldest, idle, INSTANCES, since, last_dispatch, last_finish, gears,
        service, T, head, tail, L,
    )  # fmt: skip


def work_of(n, level, W, head, tail):
    """Add up the work of the `n` requests that go next."""
    total = 0
    for k in range(LANES):
        if level > 0 and k != level - 1:
            continue
        j = head[k]
        while n > 0 and j < tail[k]:
            total += W[j]
            j += 1
            n -= 1
    return total


def start(now, x, n, gear, exec_ns, done, S, batches):
    """Book a batch; returns when it is done."""
    b = S[STARTED]
    S[STARTED] = b + 1
    batches[b, 0] = now
    batches[b, 1] = x
    batches[b, 2] = n
    batches[b, 3] = gear
    batches[b, 4] = exec_ns
    batches[b, 5] = done


def run(
    S, P, T, L, I, W, D, head, tail, read, end, fin, since, hold_ns, limit, gear_of, gears, service,
    host, transfer, compute, draws, bound, timeout, order, batches, lost,
):  # fmt: skip
    """Advance until arrivals or draws run out; see the results above.

    `host` by items, `transfer` and `compute` by gear, in ns; -1 where the profile has no point.
    `order` gets the places of the requests run, batch by batch: a place behind its lane's head
    is never written again, so the columns can be read there afterwards.
    """
    S[RUN] = 0
    S[LOST] = 0
    S[STARTED] = 0
    count = 0
    for lane in range(LANES):
        count += tail[lane] - head[lane]
    idle = 0
    for x in range(INSTANCES):
        if fin[x] == NEVER:
            idle += 1
    wait_until = S[WAIT_UNTIL]
    wait_count = S[WAIT_COUNT]
    last_dispatch = S[LAST_DISPATCH]
    last_finish = S[LAST_FINISH]
    drawn = S[DRAWN]
    now = S[END_NS]
    lane = next_lane(T, I, read, end)
    next_ns = next_time(T, read, end, lane)
    result = MORE_ARRIVALS
    while True:
        # ---- the next instant ------------------------------------------------------------
        if JITTER and drawn + INSTANCES > len(draws):
            result = MORE_DRAWS
            break
        event_ns = fin[0]
        for x in range(1, INSTANCES):
            if fin[x] < event_ns:
                event_ns = fin[x]
        then = wait_until if wait_until < event_ns else event_ns
        if TIMEOUT:
            for k in range(LANES):
                if head[k] < tail[k] and T[head[k]] + timeout + 1 < then:
                    then = T[head[k]] + timeout + 1
        # ---- arrivals before it, up to the first that makes a decision possible -----------
        dirty = False
        while next_ns < then and next_ns < hold_ns:
            count += arrive(
                next_ns, lane, count, idle, S, T, L, I, W, D, head, tail, read, bound, timeout, lost
            )
            if TIMEOUT and count == 0:
                wait_until = NEVER
                wait_count = 0
            if S[QUEUED] == 1 and (EAGER or (idle > 0 and count >= wait_count)):
                dirty = True
                then = next_ns
            lane = next_lane(T, I, read, end)
            next_ns = next_time(T, read, end, lane)
        if then >= hold_ns:
            result = OVER if then >= NEVER else MORE_ARRIVALS
            break
        now = then
        # ---- the instant: completions, arrivals, expiries ----------------------------------
        if event_ns == now:
            for x in range(INSTANCES):
                if fin[x] == now:
                    fin[x] = NEVER
                    since[x] = now
                    idle += 1
            last_finish = now
            wait_count = 0
            if count > 0 or EAGER:
                dirty = True
        while next_ns == now:
            count += arrive(
                next_ns, lane, count, idle, S, T, L, I, W, D, head, tail, read, bound, timeout, lost
            )
            if TIMEOUT and count == 0:
                wait_until = NEVER
                wait_count = 0
            if S[QUEUED] == 1 and (EAGER or (idle > 0 and count >= wait_count)):
                dirty = True
            lane = next_lane(T, I, read, end)
            next_ns = next_time(T, read, end, lane)
        if TIMEOUT:
            gone = expire(now, S, T, L, I, D, head, tail, timeout, lost)
            if gone > 0:
                count -= gone
                if count == 0:
                    wait_until = NEVER
                    wait_count = 0
        if now >= wait_until:
            dirty = True
        # ---- the decision ------------------------------------------------------------------
        asked = 0
        while dirty:
            if count == 0 or not (idle > 0 or EAGER):
                wait_until = NEVER
                wait_count = 0
                break
            asked += 1
            x = 0
            if INSTANCES > 1:
                while x < INSTANCES - 1 and fin[x] != NEVER:
                    x += 1
            view = look(count, idle, since[x], last_dispatch, last_finish, T, L, head, tail,
                        gears, service)  # fmt: skip
            kind, a, b, level = m_decide(P[0], now, view)
            if kind == 1:
                if LEVELLED and level > 0:
                    result = MIXED_LEVELS
                    break
                available = q_level_count(view, level) if level > 0 else count
                if a < 1 or a > available or a > limit or idle < 1 or asked > 64 + INSTANCES:
                    result = ILLEGAL
                    break
                gear = b if b > 0 else gear_of[a]
                if gear < a or gear >= len(compute) or compute[gear] < 0:
                    result = ILLEGAL
                    break
                exec_ns = compute[gear]
                if WORK:
                    exec_ns += work_of(a, level, W, head, tail)
                if JITTER:
                    exec_ns = jittered(exec_ns, draws[drawn])
                    drawn += 1
                done = now + host[a] + transfer[gear] + exec_ns
                fin[x] = done
                idle -= 1
                start(now, x, a, gear, exec_ns, done, S, batches)
                left = a
                for k in range(LANES):
                    n = tail[k] - head[k]
                    if n > left:
                        n = left
                    if level > 0 and k != level - 1:
                        n = 0
                    h = head[k]
                    o = S[RUN]
                    for j in range(n):
                        order[o + j] = h + j
                    S[RUN] = o + n
                    head[k] = h + n
                    left -= n
                count -= a
                last_dispatch = now
                wait_until = NEVER
                wait_count = 0
            elif kind == 2:
                if a <= now:
                    if b <= count:
                        result = ILLEGAL
                        break
                    a = NEVER
                wait_until = a
                wait_count = b if b > count else count + 1
                break
            else:
                if kind != 3 or a < 1 or a > count or asked > 64 + INSTANCES:
                    result = ILLEGAL
                    break
                left = a
                for k in range(LANES):
                    while left > 0 and head[k] < tail[k]:
                        lose(head[k], k, now, DROPPED + 2 * b, S, T, L, I, D, lost)
                        head[k] += 1
                        left -= 1
                count -= a
        if result in (ILLEGAL, MIXED_LEVELS):
            break
    S[WAIT_UNTIL] = wait_until
    S[WAIT_COUNT] = wait_count
    S[LAST_DISPATCH] = last_dispatch
    S[LAST_FINISH] = last_finish
    S[DRAWN] = drawn
    S[END_NS] = now
    return result


def run_single(
    S, P, T, L, I, W, D, head, tail, read, end, fin, since, hold_ns, limit, gear_of, gears, service,
    host, transfer, compute, draws, bound, timeout, order, batches, lost,
):  # fmt: skip
    """Do what `run` does for one lane and one instance where nothing can be lost: much faster.

    With one instance nothing can be decided while it is busy, so the loop goes from decision
    to decision and everything it needs fits into registers. Requests run in the order of their
    places, so `order` is not needed.
    """
    S[LOST] = 0
    h = head[0]
    r = read[0]
    e = end[0]
    first = h
    free_ns = fin[0]
    since_ns = since[0]
    now = S[END_NS]
    wait_until = S[WAIT_UNTIL]
    wait_count = S[WAIT_COUNT]
    last_dispatch = S[LAST_DISPATCH]
    last_finish = S[LAST_FINISH]
    drawn = S[DRAWN]
    made = 0
    p = P[0]
    result = MORE_ARRIVALS
    while True:
        if JITTER and drawn >= len(draws):
            result = MORE_DRAWS
            break
        if free_ns < NEVER:
            if free_ns >= hold_ns:
                break
            now = free_ns
            last_finish = now
            since_ns = now
            free_ns = NEVER
            wait_count = 0
            while r < e and T[r] <= now:
                r += 1
            if r == h:
                wait_until = NEVER
                continue
        else:
            needed = wait_count - (r - h)
            j = r + needed - 1 if needed > 1 else r
            then = T[j] if j < e else NEVER
            if wait_until < then:
                then = wait_until
            if then >= hold_ns:
                result = OVER if then >= NEVER else MORE_ARRIVALS
                while r < e and T[r] < hold_ns:
                    r += 1
                break
            now = then
            while r < e and T[r] <= now:
                r += 1
        count = r - h
        oldest = T[h]
        if CALLED:
            head[0] = h
            tail[0] = r
        view = View(
            count, count, oldest, oldest, 1, 1, since_ns, last_dispatch, last_finish, gears,
            service, T, head, tail, L,
        )  # fmt: skip
        kind, a, b, level = m_decide(p, now, view)
        if kind == 2:
            if a <= now:
                if b <= count:
                    result = ILLEGAL
                    break
                a = NEVER
            wait_until = a
            wait_count = b if b > count else count + 1
            continue
        if kind != 1 or level > 1 or a < 1 or a > count or a > limit:
            result = ILLEGAL
            break
        gear = b if b > 0 else gear_of[a]
        if gear < a or gear >= len(compute) or compute[gear] < 0:
            result = ILLEGAL
            break
        exec_ns = compute[gear]
        if WORK:
            for j in range(h, h + a):
                exec_ns += W[j]
        if JITTER:
            exec_ns = jittered(exec_ns, draws[drawn])
            drawn += 1
        free_ns = now + host[a] + transfer[gear] + exec_ns
        batches[made, 0] = now
        batches[made, 1] = 0
        batches[made, 2] = a
        batches[made, 3] = gear
        batches[made, 4] = exec_ns
        batches[made, 5] = free_ns
        made += 1
        h += a
        last_dispatch = now
        wait_until = NEVER
        wait_count = 0
    head[0] = h
    read[0] = r
    tail[0] = r
    fin[0] = free_ns
    since[0] = since_ns
    S[RUN] = h - first
    S[STARTED] = made
    S[WAIT_UNTIL] = wait_until
    S[WAIT_COUNT] = wait_count
    S[LAST_DISPATCH] = last_dispatch
    S[LAST_FINISH] = last_finish
    S[DRAWN] = drawn
    S[END_NS] = now
    return result
