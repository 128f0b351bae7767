"""Edge cases of Triton's dynamic batcher, against outcomes measured on tritonserver 2.51.

The letters are those of the reference notes: A to I concern the batcher. J (response order)
and K (order in which front-end threads enqueue) do not; what is left of them is at the end.
Times in ms. A real server adds 1 to 3 ms of client and front end to what stands here.
"""

from __future__ import annotations

import pytest
from bench_batcher import MS, at_once, run

from gesim.errors import PolicyError
from gesim.policies.admission.bounded_queue import BoundedQueue
from gesim.policies.admission.queue_timeout import QueueTimeout
from gesim.policies.batching.preferred_size import PreferredSize

DELAY = 50 * MS
VERSIONS = ("2.42", "2.51", "fixed")


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


def batcher(size=8, preferred=(), delay_ns=0, version="2.51", **more):
    return PreferredSize(size, preferred, delay_ns, version, **more)


# ---- A: below a preferred size when the delay ends ---------------------------------------


@pytest.mark.parametrize("count", [1, 3])
def test_a_sends_what_is_there_when_the_delay_ends(count, version):
    seen = run(batcher(8, (4,), DELAY, version), at_once(count))
    assert seen.sizes == [count]  # measured: executed at 51 ms with 1 and with 3
    assert seen.starts_ms == [50]


def test_a_sends_everything_even_if_a_preferred_prefix_exists(version):
    # The first batch keeps the instances' slots full, so the six wait past their delay.
    seen = run(batcher(8, (4,), 5 * MS, version), [*at_once(20), *at_once(6, 1.5)])
    late = [size for size in seen.sizes if size > 5]
    assert late  # up to max_batch_size, though 4 is preferred


def test_a_payload_handed_over_late_stays_open(version):
    # 1 is handed over alone at 11 and still open when seven more fill the queue up to 8.
    seen = run(batcher(8, (), 5 * MS, version), [0, 6, *at_once(8, 12)], setup_ms=12.4)
    assert seen.sizes[:2] == [1, 8]


# ---- B: no delay -----------------------------------------------------------------------


def test_b_first_batch_of_a_burst_is_small_then_full(version):
    seen = run(batcher(8, (), 0, version), at_once(20))
    assert seen.sizes == [1, 8, 8, 3]  # measured: the same


# ---- C: a full batch goes at once --------------------------------------------------------


def test_c_full_batch_goes_at_once_and_the_rest_starts_a_new_timer(version):
    seen = run(batcher(8, (), DELAY, version), at_once(12))
    assert seen.sizes == [8, 4]  # measured: 8 at 3 ms, 4 at 53 ms
    assert seen.starts_ms == pytest.approx([0.35, 0.4 + 50])


# ---- D: no skipping ----------------------------------------------------------------------


def test_d_never_skips_to_a_smaller_request(version):
    seen = run(batcher(8, (4,), DELAY, version), at_once(3), items=3, setup_ms=10)
    # measured: 3 at 2 ms (the next would pass 4), 3 at 17 ms (when it is free), 3 at 53 ms
    assert seen.sizes == [3, 3, 3]
    assert seen.starts_ms == pytest.approx([0.05, 0.05 + 14.8, 0.1 + 50])


# ---- E: one more than the largest preferred size -----------------------------------------


@pytest.mark.parametrize(("version", "second"), [("2.42", 5), ("2.51", 5), ("fixed", 4)])
def test_e_open_payload_of_the_largest_preferred_size_takes_one_more(version, second):
    seen = run(batcher(8, (4,), DELAY, version), at_once(12))
    assert seen.sizes[:2] == [4, second]


def test_e_without_delay_sizes_stay_preferred(version):
    seen = run(batcher(8, (4,), 0, version), at_once(13))
    assert seen.sizes == [1, 4, 4, 4]  # measured: 4, 4, 4 after the first


# ---- F: priorities -----------------------------------------------------------------------


def test_f_levels_are_strict_and_may_share_a_batch(version):
    times = [0, *at_once(3, 1), *at_once(3, 1.5)]
    levels = [2, 2, 2, 2, 1, 1, 1]
    policy = batcher(2, (), 0, version, queue_policy=True)
    seen = run(policy, times, levels=levels)
    # measured: hi0,hi1 | hi2,lo | lo,lo
    assert seen.ids == [[0], [4, 5], [6, 1], [2, 3]]


def test_f_low_priority_starves(version):
    # A high request arrives in every service time: the low one waits until they stop.
    times = [0, 1, *(5 + 10 * i for i in range(20))]
    levels = [1, 2] + [1] * 20
    policy = batcher(1, (), 0, version, queue_policy=True)
    seen = run(policy, times, levels=levels, setup_ms=10, item_ms=0)
    assert seen.ids[-1] == [1]
    assert seen.starts_ms[-1] == 210


# ---- G: timeouts are lazy ----------------------------------------------------------------


def test_g_timeout_is_seen_at_the_poll_only():
    policy = batcher(1, (), 0, lost_wakeup="always", queue_policy=True)
    timeout = QueueTimeout(150 * MS, expiry="lazy")
    seen = run(policy, [0, 1], setup_ms=100, item_ms=0, admission=[timeout])
    assert seen.left == [(1, 600)]  # measured: 598 to 644 ms


def test_g_timeout_is_seen_when_a_batch_is_formed():
    policy = batcher(1, (), 0, lost_wakeup="never", queue_policy=True)
    timeout = QueueTimeout(150 * MS, expiry="lazy", override="shorter")
    seen = run(policy, [0, 1], timeouts_ms=[0, 20], setup_ms=98, item_ms=0, admission=[timeout])
    assert seen.left == [(1, 98)]  # measured: 98 ms for a timeout of 20


def test_g_override_without_a_default_is_ignored():
    policy = batcher(1, (), 0, queue_policy=True)
    timeout = QueueTimeout(0, expiry="lazy", override="shorter")
    seen = run(policy, [0, 1], timeouts_ms=[0, 10], setup_ms=340, item_ms=0, admission=[timeout])
    assert not seen.left  # measured: 10 ms override, 340 ms wait, no rejection


# ---- H: DELAY ----------------------------------------------------------------------------


def test_h_delayed_requests_run_after_their_level_and_before_lower_ones(version):
    times = [0, 1, 2, 15, 16]
    levels = [1, 1, 1, 1, 2]
    policy = batcher(1, (), 0, version, queue_policy=True)
    timeout = QueueTimeout(15 * MS, action="delay", expiry="lazy")
    seen = run(policy, times, levels=levels, setup_ms=10, item_ms=0, admission=[timeout])
    # 2 is expired when it would start at 20; 3 came later but is not, and goes first.
    assert [ids[0] for ids in seen.ids] == [0, 1, 3, 2, 4]
    assert not seen.left


# ---- I: full queues ----------------------------------------------------------------------


def test_i_requests_being_run_do_not_count_in_the_bound(version):
    policy = batcher(8, (), 0, version, queue_policy=True)
    seen = run(policy, at_once(12), admission=[BoundedQueue(4)])
    assert [left for left, _ in seen.left] == [5, 6, 7, 8, 9, 10, 11]
    assert seen.sizes == [1, 4]


def test_i_arrivals_that_a_full_queue_rejects_do_not_wake_the_batcher():
    policy = batcher(8, (), 0, lost_wakeup="always", queue_policy=True)
    times = [*at_once(9), *(12 + 3 * i for i in range(50))]
    seen = run(policy, times, setup_ms=10, item_ms=0, admission=[BoundedQueue(8)])
    assert len(seen.left) == 50  # nobody in until the poll, 500 ms after the end of batch one
    assert seen.starts_ms == [0, 510]


def test_i_an_arrival_that_gets_in_does():
    policy = batcher(8, (), 0, lost_wakeup="always", queue_policy=True)
    seen = run(policy, [*at_once(5), 12], setup_ms=10, item_ms=0, admission=[BoundedQueue(8)])
    assert seen.starts_ms == [0, 12]
    assert seen.sizes == [1, 5]


# ---- J, K: outside the batcher -----------------------------------------------------------


def test_j_batches_of_several_instances_are_formed_in_order_of_arrival(version):
    # preserve_ordering reserves an answer's place when its batch is formed. Answers are not
    # held back here; what the batcher contributes is the order of forming.
    seen = run(batcher(4, (), 0, version), at_once(30), instances=3)
    assert [i for ids in seen.ids for i in ids] == list(range(30))


def test_k_order_is_the_order_of_enqueueing(version):
    # Concurrent sends may be enqueued in another order than sent; the batcher cannot tell.
    # Sorting by enqueue time is all there is, so equal times fall back to the id.
    seen = run(batcher(4, (), 0, version), [0] * 9)
    assert [i for ids in seen.ids for i in ids] == list(range(9))


# ---- sleep, merging, slots, errors --------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "batches"),
    [
        ("2.42", [[0], [1], [2, 3, 4]]),
        ("2.51", [[0], [1], [2, 3, 4]]),
        ("fixed", [[0], [1, 2, 3, 4]]),
    ],
)
def test_an_open_payload_grows_only_when_the_batcher_is_awake(version, batches):
    # 1 is handed over alone when its delay ends at 11. The batcher then sleeps until 8 are
    # queued or the instance takes it, which is when the first batch ends at 19.
    seen = run(batcher(8, (), 5 * MS, version), [0, 6, 11.5, 12, 13], setup_ms=12.4)
    assert seen.ids == batches


def test_payloads_that_waited_past_the_delay_merge(version):
    # 2 start at once; the other four are in two payloads when the instance is free again.
    seen = run(batcher(8, (2,), 5 * MS, version), at_once(6))
    assert seen.sizes == [2, 4]


def test_payloads_do_not_merge_before_the_delay_is_over():
    seen = run(batcher(8, (2,), 20 * MS, "fixed"), at_once(6))
    assert seen.sizes == [2, 2, 2]


def test_hand_over_stops_at_two_payloads_an_instance():
    policy = batcher(4, (), 0)
    run(policy, at_once(40))
    assert policy._ready == []
    assert policy._handed == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_larger_requests_that_pass_do_not_overfill_a_payload(version):
    # An ordering that lets requests pass, though the policy was not told of a queue policy.
    times = [0, *at_once(8, 1), *at_once(2, 5)]
    seen = run(batcher(8, (), 0, version), times, levels=[2] * 9 + [1, 1], items=[1] * 9 + [4, 4])
    assert sum(seen.sizes) == 17
    assert max(seen.sizes) == 8


@pytest.mark.parametrize("wrong", [(0,), (9,), (4, 12)])
def test_preferred_sizes_must_fit(wrong):
    with pytest.raises(PolicyError, match=r"must lie in 1\.\.max_batch_size \(8\)"):
        PreferredSize(8, wrong)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_request_is_answered_whatever_the_sizes(version):
    rng_free_times = [((i * 7919) % 997) * 0.31 for i in range(600)]
    items = [1 + (i * 31) % 4 for i in range(600)]
    times = sorted(rng_free_times)
    for instances in (1, 2, 3):
        for delay_ms, preferred in ((0, ()), (3, ()), (3, (4,)), (3, (2, 6))):
            for queue_policy in (False, True):
                policy = batcher(
                    8, preferred, delay_ms * MS, version,
                    lost_wakeup="probability", queue_policy=queue_policy,
                )  # fmt: skip
                seen = run(policy, times, items=items, instances=instances, setup_ms=1, item_ms=0.3)
                assert sum(seen.sizes) == sum(items)
                assert max(seen.sizes) <= 8
