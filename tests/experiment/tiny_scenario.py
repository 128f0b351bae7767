"""A small scenario with everything that results have columns for."""

TINY = {
    "schema": 1,
    "name": "tiny",
    "description": "A few requests of two levels on two devices, some of them lost.",
    "seed": 7,
    "requests": 400,
    "slo": "20ms",
    "devices": [{"name": "card", "count": 2}],
    "models": [
        {
            "name": "small",
            "cost": {"kind": "affine", "setup": "2ms", "per_item": "0.5ms", "jitter": {
                "law": "lognormal", "cv": 0.3}},
            "gears": [1, 4, 8],
            "priority_levels": 2,
            "host": {"dispatch": "100us"},
            "transfer": {"input": "64KiB", "output": "1KiB", "bandwidth": "8GiB/s"},
            "admission": [{"policy": "bounded_queue", "max_queue_size": 6}],
        },
        {"name": "large", "cost": {"kind": "table", "points": {1: "3ms", 4: "6ms"}}},
    ],
    "batching": {"policy": "greedy", "max_batch_size": 4},
    "frontend": {"receive": "10us", "respond": "20us"},
    "workload": {
        "arrivals": {"process": "gamma", "rate": "900/s", "cv": 3},
        "mix": [
            {"model": "small", "weight": 3, "priority": 1, "deadline": "10ms"},
            {"model": "small", "weight": 3, "priority": 2},
            {"model": "large", "weight": 2},
        ],
    },
    "expect": ["small.mean_batch >= 1", "rejected > 0"],
}  # fmt: skip
