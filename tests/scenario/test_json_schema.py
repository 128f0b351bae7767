"""The exported JSON Schema."""

import json

from gesim.scenario.jsonschema import json_schema


def test_schema_is_plain_json_with_units_and_unions():
    schema = json.loads(json.dumps(json_schema()))
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert schema["additionalProperties"] is False
    assert schema["properties"]["duration"]["anyOf"][0]["examples"] == ["50ms"]
    assert {"schema", "models", "workload"} <= set(schema["required"])
    workload = schema["$defs"]["Workload"]["properties"]["arrivals"]
    mapping = workload["discriminator"]["mapping"]
    assert {"poisson", "mmpp", "closed", "mlperf", "trace"} <= set(mapping)
    assert workload["discriminator"]["propertyName"] == "process"
    cost = schema["$defs"]["Model"]["properties"]["cost"]["anyOf"][0]
    assert set(cost["discriminator"]["mapping"]) == {"table", "affine", "empirical", "work"}


def test_every_reference_resolves():
    schema = json_schema()
    found = []

    def walk(value):
        if isinstance(value, dict):
            if "$ref" in value:
                found.append(value["$ref"])
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk(schema)
    assert found
    for ref in found:
        assert ref.removeprefix("#/$defs/") in schema["$defs"]


def test_policies_are_described():
    schema = json_schema()
    batching = schema["$defs"]["batching_policy"]["anyOf"]
    assert "greedy" in batching[0]["enum"]
    window = next(
        entry
        for entry in batching
        if entry.get("properties", {}).get("policy", {}).get("const") == "delay_window"
    )
    assert "max_batch_size" in window["required"]
    assert window["additionalProperties"] is False
    delay = window["properties"]["max_queue_delay"]["anyOf"]
    assert delay[0] == {"const": "never"}
    assert schema["properties"]["batching"]["$ref"] == "#/$defs/batching_policy"
