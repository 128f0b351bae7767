import pytest
from tiny_scenario import TINY

import gesim


@pytest.fixture
def tiny():
    """A small scenario with everything that results have columns for."""
    return gesim.Scenario.from_dict(TINY, "tiny")


@pytest.fixture
def one():
    """The smallest scenario: one model, one device, no losses."""
    data = {
        "schema": 1,
        "name": "one",
        "requests": 200,
        "models": [{"name": "net", "cost": {"kind": "affine", "setup": "1ms", "per_item": "1ms"}}],
        "batching": {"policy": "delay_window", "max_batch_size": 4, "max_queue_delay": "3ms"},
        "workload": {"arrivals": {"process": "poisson", "rate": "300/s"}},
    }
    return gesim.Scenario.from_dict(data, "one")
