"""Times of batches: terms beside compute, memory, jitter, common random numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gesim.core.request import Batch, Request
from gesim.cost.affine import Affine
from gesim.cost.empirical import Empirical
from gesim.cost.service import Host, Service, Transfer
from gesim.cost.table import Table
from gesim.cost.work import Work
from gesim.errors import ProfileError
from gesim.laws import Exponential, Gamma, Lognormal, Uniform
from gesim.rng import stream

COST = Table({1: 1_000, 4: 2_000, 8: 4_000}, gears=(1, 4, 8))


def batch(items=1, gear=None, length=0, work_ns=0, start_ns=100):
    requests = [Request(i, 0, 0, 0, work_ns=work_ns) for i in range(items)]
    return Batch(0, 0, 0, 0, requests, items, gear or items, length, start_ns)


def timed(service, **what):
    made = batch(**what)
    service.time(made)
    return made


def parts(made):
    return made.host_ns, made.input_ns, made.compute_ns, made.output_ns


def service(cost=COST, seed=1, **terms):
    return Service(cost, stream(seed, "service/test"), **terms)


def test_terms_add_up_and_padding_is_copied_and_computed():
    made = timed(
        service(
            host=Host(150, 2),
            transfer=Transfer(1000, 10, bandwidth_bytes_per_s=1e10, latency_ns=20),
        ),
        items=3,
        gear=4,
    )
    assert parts(made) == (156, 420, 2_000, 24)
    assert made.finish_ns == 100 + 156 + 420 + 2_000 + 24


def test_copies_of_nothing_cost_nothing():
    assert Transfer(0, 8, latency_ns=20).time_ns(0, 5) == 0
    assert Transfer(0, 8, latency_ns=20).time_ns(8, 5) == 20  # no bandwidth: latency only


@given(st.integers(1, 8), st.integers(0, 10**6), st.integers(0, 1000))
def test_mean_is_what_a_plain_batch_takes(items, dispatch_ns, per_item_ns):
    it = service(host=Host(dispatch_ns, per_item_ns), transfer=Transfer(64, 64, 1e9, 5))
    gear = next(g for g in it.gears if g >= items)
    made = timed(it, items=items, gear=gear)
    assert it.mean_ns(items) == made.finish_ns - made.start_ns
    again = timed(it, items=items, gear=gear, start_ns=7)
    assert parts(again) == parts(made)


def test_mean_at_lengths():
    it = service(Table({64: {1: 10, 8: 20}, 128: {1: 30, 8: 50}}, gears=(1, 8)))
    assert it.lengths == (64, 128)
    assert it.mean_ns(2, 64) == 20
    assert it.mean_ns(2) == 50  # of unknown length: the longest
    assert timed(it, items=2, gear=8, length=65).compute_ns == 50


def test_work_is_the_sum_of_the_requests():
    it = service(Work(5))
    assert timed(it, items=3, work_ns=100).compute_ns == 305


@pytest.mark.parametrize(
    ("law", "cv"),
    [
        (Exponential(1.0), 1.0),
        (Lognormal(1.0, 0.5), 0.5),
        (Gamma(1.0, 2.0), 2.0),
        (Uniform(0.8, 1.2), 0.4 / 12**0.5),
    ],
    ids=lambda value: type(value).__name__,
)
def test_jitter_keeps_the_mean(law, cv):
    it = service(Affine(1_000_000, 0), jitter=law)
    n = 20_000
    times = np.array([timed(it).compute_ns for _ in range(n)])
    assert law.mean == 1.0
    assert times.mean() == pytest.approx(1e6, rel=4 * cv / n**0.5)
    assert times.std() == pytest.approx(1e6 * cv, rel=0.15)
    assert times.min() >= 0


def test_same_seed_same_times_whatever_the_batches():
    """The k-th batch has the k-th draw: policies are compared on the same luck."""
    one, two = (service(jitter=Lognormal(1.0, 0.3)) for _ in range(2))
    singles = [timed(one, items=1).compute_ns for _ in range(50)]
    eights = [timed(two, items=8).compute_ns for _ in range(50)]
    assert len(set(singles)) > 40
    assert np.allclose(np.array(eights) / 4_000, np.array(singles) / 1_000, atol=1e-3)
    other = service(seed=2, jitter=Lognormal(1.0, 0.3))
    assert [timed(other, items=1).compute_ns for _ in range(50)] != singles


def test_blocks_are_what_batches_draw():
    """A loop that takes whole blocks sees the sequence that `time` uses, across blocks too."""
    drawn, blocks = (service(Affine(10**9, 0), jitter=Exponential(1.0)) for _ in range(2))
    size = blocks.draws.BLOCK
    values = np.concatenate([blocks.draws.block(), blocks.draws.block()])
    times = [timed(drawn).compute_ns for _ in range(size + 10)]
    assert times == np.rint(values[: size + 10] * 1e9).astype(np.int64).tolist()


def test_host_jitter_has_its_own_stream():
    host = Host(1_000_000, jitter=Exponential(1.0))
    alone, both = service(host=host), service(host=host, jitter=Exponential(1.0))
    first = [timed(alone) for _ in range(100)]
    second = [timed(both) for _ in range(100)]
    assert [b.host_ns for b in first] == [b.host_ns for b in second]
    assert {b.compute_ns for b in first} == {1_000}
    host_ns, compute_ns = (
        np.array([getattr(b, name) for b in second]) for name in ("host_ns", "compute_ns")
    )
    assert abs(np.corrcoef(host_ns, compute_ns)[0, 1]) < 0.3


def test_quantiles_are_drawn():
    law = {0.0: 1_000_000, 0.5: 2_000_000, 1.0: 9_000_000}
    it = service(Empirical({1: law, 8: {0.0: 8_000_000, 1.0: 9_000_000}}))
    times = np.array([timed(it).compute_ns for _ in range(20_000)])
    assert it.mean_ns(1) == 3_500_000
    assert times.mean() == pytest.approx(3.5e6, abs=4 * 2.4e6 / 20_000**0.5)
    assert (times < 2_000_000).mean() == pytest.approx(0.5, abs=4 * 0.5 / 20_000**0.5)
    both = service(Empirical({1: law}), jitter=Uniform(0.9, 1.1))
    ratios = np.array([timed(both).compute_ns for _ in range(20_000)]) / times
    assert np.all((ratios > 0.89) & (ratios < 1.11))  # the same quantiles, and a jitter of its own
    assert ratios.mean() == pytest.approx(1, abs=4 * 0.2 / 12**0.5 / 20_000**0.5)


def test_missing_points_are_errors_when_a_batch_needs_them():
    with pytest.raises(ProfileError, match="no point for 9 items"):
        timed(service(), items=9)


def test_host_time_triples_the_tail_of_a_busy_device():
    """M/D/1 at 800/s, 1 ms a request: 0.15 ms of host time takes p99 from about 11 to 32 ms."""
    gaps = stream(3, "arrivals").exponential(1e9 / 800, 400_000)
    arrivals = np.cumsum(gaps)

    def p99_ms(host_ns):
        it = service(Affine(0, 1_000_000), host=Host(host_ns))
        busy_ns = it.mean_ns(1)
        # Lindley: wait = max over earlier k of (work since k - time since k).
        steps = np.concatenate([[0.0], busy_ns - np.diff(arrivals)])
        walk = np.cumsum(steps)
        wait = walk - np.minimum.accumulate(walk)
        return np.quantile(wait + busy_ns, 0.99) / 1e6

    without, with_host = p99_ms(0), p99_ms(150_000)
    assert without == pytest.approx(11, rel=0.1)
    assert with_host == pytest.approx(32, rel=0.25)
    assert with_host / without > 2
