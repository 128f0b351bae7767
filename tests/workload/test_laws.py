"""Laws: moments as they say, and sequences that do not depend on how they are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from gesim import laws
from gesim.rng import stream

LAWS = {
    "constant": laws.Constant(5.0),
    "exponential": laws.Exponential(5.0),
    "uniform": laws.Uniform(2.0, 9.0),
    "lognormal": laws.Lognormal(5.0, 0.7),
    "erlang": laws.Erlang(5.0, 3),
    "gamma": laws.Gamma(5.0, 1.6),
    "two_point": laws.TwoPoint(1.0, 20.0, 0.1),
    "hyperexponential": laws.Hyperexponential((2.0, 32.0), 0.7),
    "geometric": laws.Geometric(3.0),
    "uniform_count": laws.UniformCount(1, 6),
}


@pytest.mark.parametrize("name", LAWS)
def test_mean_and_cv_are_those_of_the_samples(name):
    law = LAWS[name]
    values = law.sample(stream(1, name), 400_000)
    assert values.min() >= 0
    assert values.mean() == pytest.approx(law.mean, rel=0.01)
    assert values.std() / values.mean() == pytest.approx(law.cv, rel=0.01, abs=1e-9)


@pytest.mark.parametrize("name", LAWS)
def test_draws_are_one_sequence(name):
    law = LAWS[name]
    one = laws.Draws(law, stream(1, "a"))
    singles = [one.next() for _ in range(40_000)]
    many = laws.Draws(law, stream(1, "a"))
    parts = np.concatenate([many.take(n) for n in (0, 1, 16_383, 7, 20_000, 3_609)])
    assert parts.tolist() == singles
    blocks = laws.Draws(law, stream(1, "a"))
    assert np.concatenate([blocks.block() for _ in range(2)]).tolist() == singles[: 2 * one.BLOCK]


def test_laws_that_are_always_zero_have_no_spread():
    assert laws.Uniform(0, 0).cv == laws.TwoPoint(0, 0, 0.5).cv == laws.Constant(0).cv == 0
    assert laws.Geometric(1.0).cv == 0
