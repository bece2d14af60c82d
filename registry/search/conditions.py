"""What a search asks for: conditions on capabilities, benchmarks and fields, and their JSON form.

`{"capability": "math", "relation": "strong", "threshold": 0.8}`: a percentile at least (strong) or at most (weak)
the threshold. `{"benchmark": "mmlu", "relation": ">=", "threshold": 0.6}`: a score, in the benchmark's own scale.
`{"field": "step", "relation": "<", "threshold": 50000}`: any field of the filter language but scores.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy.orm import Session

from registry.errors import FieldError, Invalid
from registry.evals.catalogue import Catalogue, catalogue
from registry.evals.known import nearest_capabilities, unknown_benchmarks
from registry.evals.project_table import ProjectTable, read_project_table
from registry.evals.scales import WORDS, can_hold
from registry.filters import syntax
from registry.filters.check import parse_filter
from registry.filters.errors import InvalidFilter
from registry.filters.print import to_text

STRONG: Final = "strong"
WEAK: Final = "weak"
LIKE: Final = "like"  # of a search for more like a checkpoint: the percentile at which that stands
COMPARISONS: Final = ("=", "!=", "<", "<=", ">", ">=")
DEFAULT_THRESHOLD: Final = {STRONG: 0.8, WEAK: 0.2}
MAX_CONDITIONS: Final = 50


class InvalidConditions(Invalid):
    code = "invalid-conditions"
    title = "A condition was refused"


@dataclass(frozen=True, slots=True)
class CapabilityCondition:
    """A percentile (0 to 1) at least the threshold for `strong`, at most the threshold for `weak`."""

    capability: str
    relation: str
    threshold: float


@dataclass(frozen=True, slots=True)
class BenchmarkCondition:
    """A score in the benchmark's own scale. Without metric and filter, the table's preferred one is meant."""

    benchmark: str
    relation: str
    threshold: float
    metric: str | None = None
    filter: str | None = None


@dataclass(frozen=True, slots=True)
class StandingCondition:
    """`strong gsm8k`: a percentile of one benchmark. A search resolves it to the score that stands there.

    `by_value`: 'high' and 'low' speak of the number, whichever way the benchmark points: the lowest perplexity is the
    best one. Without metric and filter, the table's preferred one is meant.
    """

    benchmark: str
    relation: str
    threshold: float
    metric: str | None = None
    by_value: bool = False
    filter: str | None = None


@dataclass(frozen=True, slots=True)
class FieldCondition:
    """A comparison of the filter language; `field` is the name as written there."""

    field: str
    relation: str
    threshold: bool | int | float | str

    def node(self) -> syntax.Comparison:
        """The comparison as a term of the filter language. Raises InvalidFilter."""
        literal = syntax.Literal(self.threshold)
        text = to_text(syntax.Comparison(syntax.Field(("x",)), syntax.Operator(self.relation), literal))
        node = parse_filter(f"{self.field}{text[1:]}")
        if not isinstance(node, syntax.Comparison) or node.value != literal:
            raise InvalidFilter(f"{self.field[:60]!r} is no single field", self.field, 0, ["a field name"])
        if node.field.segments[0] in ("scores", "capabilities"):
            instead = "benchmark" if node.field.segments[0] == "scores" else "capability"
            raise InvalidFilter(f"this is a condition on a {instead}", self.field, 0, [f"the member {instead!r}"])
        return node


Condition = CapabilityCondition | BenchmarkCondition | StandingCondition | FieldCondition


def to_json(condition: Condition) -> dict[str, Any]:
    """The JSON form, which `read_conditions` reads back."""
    match condition:
        case CapabilityCondition(name, relation, threshold):
            return {"capability": name, "relation": relation, "threshold": threshold}
        case FieldCondition(name, relation, value):
            return {"field": name, "relation": relation, "threshold": value}
        case BenchmarkCondition() | StandingCondition():
            named = {"metric": condition.metric, "filter": condition.filter}
            extra = {key: value for key, value in named.items() if value is not None}
            plain = {"benchmark": condition.benchmark, "relation": condition.relation}
            return {**plain, "threshold": condition.threshold, **extra}


def read_conditions(items: Sequence[Any], *, pointer: str = "/conditions") -> tuple[Condition, ...]:
    """The conditions of a request. Raises InvalidConditions, which names every wrong value by its JSON pointer."""
    found: list[Condition] = []
    errors: list[FieldError] = []
    if not items or len(items) > MAX_CONDITIONS:
        errors.append(FieldError(pointer, f"expected 1 to {MAX_CONDITIONS} conditions"))
    for place, item in enumerate(items[:MAX_CONDITIONS]):
        try:
            found.append(_read(item))
        except _Wrong as wrong:
            errors.append(FieldError(f"{pointer}/{place}{wrong.pointer}", wrong.message))
    if errors:
        raise _refused(errors)
    return tuple(found)


def refuse_unknown_benchmarks(
    session: Session, project_ids: Collection[int], conditions: Sequence[Condition], *, pointer: str = "/conditions"
) -> None:
    """A misspelt name, and a number that no score can have, would find nothing or everything, for ever.

    Raises InvalidConditions, which names each by its JSON pointer.
    """
    asked = [(place, each) for place, each in enumerate(conditions) if isinstance(each, BenchmarkCondition)]
    unknown = unknown_benchmarks(session, project_ids, [each.benchmark for _, each in asked])
    errors = [
        FieldError(f"{pointer}/{place}/benchmark", f"unknown benchmark {name[:60]!r}. {unknown[name] or NOBODY}")
        for place, name in ((place, each.benchmark) for place, each in asked)
        if name in unknown
    ]
    errors += [
        FieldError(f"{pointer}/{place}/threshold", f"{each.benchmark} {span}, so {each.threshold:g} is none")
        for place, each, span in _off_scale(session, project_ids, asked)
    ]
    if errors:
        raise _refused(errors)


def _off_scale(
    session: Session, project_ids: Collection[int], asked: Sequence[tuple[int, BenchmarkCondition]]
) -> Iterator[tuple[int, BenchmarkCondition, str]]:
    """The conditions whose number is off the scale, with the scale in words; a project's own table goes first."""

    def scale(table: Catalogue | ProjectTable, condition: BenchmarkCondition) -> str:
        return table.for_metric(condition.benchmark, condition.metric or "", condition.filter or "").scale

    odd = [each for each in asked if not can_hold(scale(catalogue(), each[1]), each[1].threshold)]
    table = read_project_table(session, project_ids) if odd else None
    for place, condition in odd:
        own = scale(table, condition) if table is not None else "raw"
        if not can_hold(own, condition.threshold):
            yield place, condition, span_of(own)


def span_of(scale: str) -> str:
    """Which values a scale has, after the name of a benchmark: 'runs from 0 to 1'."""
    return f"is {WORDS[scale]}" if scale == "log" else f"runs from {WORDS[scale]}"


NOBODY: Final = "No result here has it, and no benchmark table."


def _refused(errors: Sequence[FieldError]) -> InvalidConditions:
    said = f"{errors[0].pointer}: {errors[0].message}"
    return InvalidConditions(said if said[-1] in ".?" else f"{said}.", errors=errors)


class _Wrong(Exception):
    def __init__(self, pointer: str, message: str) -> None:
        self.pointer, self.message = pointer, message


def _read(item: Any) -> Condition:
    if not isinstance(item, Mapping):
        raise _Wrong("", "expected an object with capability, benchmark or field, relation and threshold")
    subjects = [key for key in ("capability", "benchmark", "field") if item.get(key) is not None]
    if len(subjects) != 1:
        raise _Wrong("", "expected exactly one of capability, benchmark and field")
    subject = subjects[0]
    allowed = {subject, "relation", "threshold"} | ({"metric", "filter"} if subject == "benchmark" else set())
    for key in item:
        if key not in allowed and item[key] is not None:
            raise _Wrong(f"/{key}", f"unknown member; a condition on a {subject} has {', '.join(sorted(allowed))}")
    name = item[subject]
    if not name or not _is_text(name):
        raise _Wrong(f"/{subject}", "expected a name of 1 to 256 characters")
    reader = {"capability": _capability, "benchmark": _benchmark, "field": _field}[subject]
    return reader(name, item)


def _capability(name: str, item: Mapping[str, Any]) -> Condition:
    capability = catalogue().capability(name)
    if capability is None:
        raise _Wrong("/capability", f"unknown capability {name[:60]!r}. {nearest_capabilities(name)}")
    relation = item.get("relation")
    if relation not in DEFAULT_THRESHOLD:
        raise _Wrong("/relation", "expected 'strong' or 'weak'")
    threshold = item.get("threshold")
    if threshold is None:
        threshold = DEFAULT_THRESHOLD[relation]
    return CapabilityCondition(capability.name, relation, _number(threshold, most=1.0))


def _benchmark(name: str, item: Mapping[str, Any]) -> Condition:
    relation = item.get("relation")
    if relation not in COMPARISONS:
        raise _Wrong("/relation", f"expected one of {' '.join(COMPARISONS)}")
    for key in ("metric", "filter"):
        if item.get(key) is not None and not _is_text(item[key]):
            raise _Wrong(f"/{key}", "expected text of at most 256 characters")
    threshold = _number(item.get("threshold"))
    return BenchmarkCondition(name, relation, threshold, item.get("metric"), item.get("filter"))


def _field(name: str, item: Mapping[str, Any]) -> Condition:
    relation, threshold = item.get("relation"), item.get("threshold")
    if relation not in COMPARISONS:
        raise _Wrong("/relation", f"expected one of {' '.join(COMPARISONS)}")
    if not isinstance(threshold, bool | int | float | str):
        raise _Wrong("/threshold", "expected a number, text, true or false")
    if isinstance(threshold, float) and not math.isfinite(threshold):
        raise _Wrong("/threshold", "expected a finite number")
    condition = FieldCondition(name, relation, threshold)
    try:
        condition.node()
    except InvalidFilter as error:
        wrong = "/field" if error.extras["position"] <= len(name) else "/threshold"
        raise _Wrong(wrong, error.message.splitlines()[0]) from None
    return condition


def _is_text(value: Any) -> bool:
    """Text that a database takes: no NUL, no lone surrogate."""
    return (
        isinstance(value, str)
        and len(value) <= 256
        and not any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in value)
    )


def _number(value: Any, *, most: float = math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1e300:
        raise _Wrong("/threshold", "expected a finite number")
    if most < math.inf and not 0 <= value <= most:
        raise _Wrong("/threshold", f"expected a percentile as a fraction from 0 to {most:g}")
    return float(value)
