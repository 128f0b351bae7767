"""Building blocks of the schema: fields with units, strict models, unions chosen by a key.

Theory of operation
-------------------
Pydantic does the walking; every message is our own. A field's name in code ends in its unit
(``slo_ns``), its key in files does not (``slo``). `Strict` reports unknown keys with the nearest
right one beside whatever else is wrong in the same mapping, and `chosen_by` picks the member of
a union by its key (``process: poisson``) instead of trying all of them, so that a typing error
never yields the complaints of seven unrelated members.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ModelWrapValidatorHandler,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from gesim.errors import GesimError, PolicyError, ProfileError, ScenarioError
from gesim.units import (
    parse_bandwidth,
    parse_bytes,
    parse_number,
    parse_rate_rps,
    parse_ratio,
    parse_time_ns,
    suggest,
    write_bandwidth,
    write_bytes,
    write_rate,
    write_time,
)

__all__ = [
    "BYTES_JSON",
    "RATE_JSON",
    "TIME_JSON",
    "Bandwidth",
    "Bytes",
    "Count",
    "CountKey",
    "Number",
    "PositiveNumber",
    "PositiveRate",
    "PositiveTime",
    "Probability",
    "Rate",
    "Ratio",
    "Strict",
    "TimeNs",
    "chosen_by",
    "complaint",
]

OURS = "gesim"
"""Type of pydantic errors that already carry our own message."""

_SUFFIXES = ("_bytes_per_s", "_bytes", "_ns", "_rps", "_ratio")


def _file_key(name: str) -> str:
    return next((name.removesuffix(s) for s in _SUFFIXES if name.endswith(s)), name)


def complaint(message: str, error: type[GesimError] = ScenarioError) -> PydanticCustomError:
    """Make a pydantic error that carries `message` as it is, and who is at fault."""
    blame = {PolicyError: "policy", ProfileError: "profile"}.get(error, "scenario")
    return PydanticCustomError(f"{OURS}.{blame}", message)


class Strict(BaseModel):
    """Base of every mapping in a scenario file: frozen, no unknown keys."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=_file_key,
        arbitrary_types_allowed=True,
        use_attribute_docstrings=True,
        serialize_by_alias=True,
    )

    @classmethod
    def keys(cls) -> list[str]:
        """Keys that a file may use here."""
        return [field.alias or name for name, field in cls.model_fields.items()]

    @model_validator(mode="wrap")
    @classmethod
    def _report(cls, data: Any, handler: ModelWrapValidatorHandler[typing.Self]) -> typing.Self:
        """Add unknown keys to the errors of the known ones, all in our words."""
        if isinstance(data, BaseModel):
            return handler(data)
        if not isinstance(data, Mapping):
            keys = ", ".join(cls.keys()[:6])
            raise complaint(f"{_short(data)} is not a mapping; write keys such as {keys}")
        keys_known = cls.keys()
        errors = [
            InitErrorDetails(type=complaint(_unknown(key, keys_known)), loc=(str(key),), input=None)
            for key in data
            if key not in keys_known
        ]
        try:
            made = handler({key: value for key, value in data.items() if key in keys_known})
        except ValidationError as error:
            for e in error.errors(include_url=False):
                ours = str(e["type"]).startswith(f"{OURS}.")
                custom = PydanticCustomError(
                    e["type"] if ours else f"{OURS}.scenario", e["msg"] if ours else _reworded(e)
                )
                loc = e["loc"]
                if e["type"] == "missing":
                    loc = loc[:-1]
                errors.append(InitErrorDetails(type=custom, loc=loc, input=None))
        if errors:
            raise ValidationError.from_exception_data(cls.__name__, errors)
        return made


def _unknown(key: object, known: list[str]) -> str:
    near = suggest(str(key), known)
    return f"unknown key{near}" + ("" if near else f" (known here: {', '.join(known)})")


def _reworded(error: Any) -> str:
    """Say in our words what pydantic found."""
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "missing":
        return f"needs {error['loc'][-1]}"
    words = {
        "int_type": "is not a whole number",
        "int_from_float": "is not a whole number",
        "int_parsing": "is not a whole number",
        "float_type": "is not a number",
        "float_parsing": "is not a number",
        "finite_number": "is not a number: it must be finite",
        "bool_type": "is not true or false",
        "bool_parsing": "is not true or false",
        "string_type": "is not text",
        "tuple_type": "is not a list; write [a, b, ...]",
        "list_type": "is not a list; write [a, b, ...]",
        "dict_type": "is not a mapping; write {key: value}",
        "too_short": f"is too short: at least {context.get('min_length')} entries are needed",
        "too_long": f"is too long: at most {context.get('max_length')} entries are allowed",
        "greater_than": f"must be above {context.get('gt')}",
        "greater_than_equal": f"must be {context.get('ge')} or more",
        "less_than": f"must be below {context.get('lt')}",
        "less_than_equal": f"must be {context.get('le')} or less",
        "string_pattern_mismatch": "is not a usable name: letters, digits, _ . - only",
    }
    if kind == "literal_error":
        options = [w.strip("' ") for w in context["expected"].replace(" or ", ",").split(",")]
        near = suggest(str(value), options)
        return f"{_short(value)} is not one of: {', '.join(options)}{near}"
    return f"{_short(value)} {words.get(kind, error['msg'])}"


def _short(value: object) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def chosen_by(tag: str, *members: type[Strict], plain: Callable[[Any], Any] | None = None) -> Any:
    """Make the validator of a union whose member is named by the key `tag`.

    Parameters
    ----------
    tag : str
        Key such as ``process``; each member declares it as a ``Literal``.
    members : type
        The union's members.
    plain : callable, optional
        Turns a value that is not a mapping into one (``think: 5ms``), or raises ScenarioError.
    """
    by_name = {
        name: member
        for member in members
        for name in typing.get_args(member.model_fields[tag].annotation)
    }

    def choose(value: Any, handler: Any) -> Any:
        if isinstance(value, members):
            return value
        if plain is not None and not isinstance(value, Mapping):
            try:
                value = plain(value)
            except ScenarioError as error:
                raise complaint(str(error)) from None
        if not isinstance(value, Mapping):
            raise complaint(f"{_short(value)} is not a mapping; write {{{tag}: NAME, ...}}")
        name = value.get(tag)
        if name is None:
            near = suggest(tag, [str(key) for key in value]).replace("did you mean", "is it")
            raise complaint(f"needs {tag}, one of: {', '.join(by_name)}{near}")
        if not isinstance(name, str) or name not in by_name:
            near = suggest(str(name), by_name)
            line = InitErrorDetails(
                type=complaint(f"{_short(name)} is not one of: {', '.join(by_name)}{near}"),
                loc=(tag,),
                input=None,
            )
            raise ValidationError.from_exception_data(tag, [line])
        return by_name[name].model_validate(value)

    return WrapValidator(choose)


def _reading(parse: Callable[[object], Any]) -> BeforeValidator:
    def read(value: Any) -> Any:
        try:
            return parse(value)
        except ScenarioError as error:
            raise complaint(str(error), type(error)) from None

    return BeforeValidator(read)


def _positive(parse: Callable[[object], Any]) -> Callable[[object], Any]:
    def read(value: object) -> Any:
        parsed = parse(value)
        if parsed <= 0:
            raise ScenarioError(f"{value!r} must be above 0".replace("'", ""))
        return parsed

    return read


def _number(value: object) -> float:
    number = parse_number(value)
    if number < 0:
        raise ScenarioError(f"{value} is negative; it must be 0 or more")
    return number


def _probability(value: object) -> float:
    share = parse_ratio(value)
    if share > 1:
        raise ScenarioError(f"{value} is not a probability: it must lie between 0 and 1")
    return share


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ScenarioError(f"{_short(value)} is not a whole number")
    if value < 1:
        raise ScenarioError(f"{value} must be 1 or more")
    return value


def _count_key(value: object) -> int:
    return _count(int(value) if isinstance(value, str) and value.isdecimal() else value)


def _quantity(example: str, pattern: str, what: str) -> dict[str, Any]:
    return {"type": "string", "pattern": pattern, "examples": [example], "description": what}


_NUMBER_RE = r"^\s*\+?[0-9][0-9_,]*(\.[0-9]*)?([eE][+-]?[0-9]+)?\s*"
TIME_JSON = _quantity("50ms", _NUMBER_RE + r"(ns|us|µs|ms|s|min|h|d)\s*$", "A time like 50ms.")
RATE_JSON = _quantity("150/s", _NUMBER_RE + r"/\s*(ns|us|ms|s|min|h|d)\s*$", "A rate like 150/s.")
BYTES_JSON = _quantity("24GiB", _NUMBER_RE + r"([kKMGT]?i?B)\s*$", "A size like 24GiB.")
_BAND_JSON = _quantity(
    "12GiB/s", _NUMBER_RE + r"([kKMGT]?i?B|[kMGT]?bit)/s\s*$", "A bandwidth like 12GiB/s."
)
_RATIO_JSON = WithJsonSchema(
    {
        "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": r"%\s*$"}],
        "description": "A share like 5% or 0.05.",
    }
)

TimeNs = Annotated[
    int, _reading(parse_time_ns), PlainSerializer(write_time), WithJsonSchema(TIME_JSON)
]
PositiveTime = Annotated[
    int, _reading(_positive(parse_time_ns)), PlainSerializer(write_time), WithJsonSchema(TIME_JSON)
]
Rate = Annotated[
    float, _reading(parse_rate_rps), PlainSerializer(write_rate), WithJsonSchema(RATE_JSON)
]
PositiveRate = Annotated[
    float,
    _reading(_positive(parse_rate_rps)),
    PlainSerializer(write_rate),
    WithJsonSchema(RATE_JSON),
]
Bytes = Annotated[
    int, _reading(parse_bytes), PlainSerializer(write_bytes), WithJsonSchema(BYTES_JSON)
]
Bandwidth = Annotated[
    float, _reading(parse_bandwidth), PlainSerializer(write_bandwidth), WithJsonSchema(_BAND_JSON)
]
Ratio = Annotated[float, _reading(parse_ratio), _RATIO_JSON]
Probability = Annotated[float, _reading(_probability), _RATIO_JSON]
Number = Annotated[float, _reading(_number), WithJsonSchema({"type": "number", "minimum": 0})]
PositiveNumber = Annotated[
    float,
    _reading(_positive(parse_number)),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0}),
]
Count = Annotated[int, _reading(_count), WithJsonSchema({"type": "integer", "minimum": 1})]
CountKey = Annotated[int, _reading(_count_key), WithJsonSchema({"type": "integer", "minimum": 1})]
"""A count as a key of a mapping: JSON writes it as text."""
