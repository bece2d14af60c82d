"""The conditions of a rollback question, held against its checkpoints: who does not meet which."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.errors import Invalid
from registry.filters import syntax
from registry.filters.compile import compile_filter
from registry.filters.query import prepare
from registry.models import Checkpoint
from registry.search.conditions import (
    STRONG,
    BenchmarkCondition,
    CapabilityCondition,
    Condition,
    FieldCondition,
    StandingCondition,
    refuse_unknown_benchmarks,
)


class ConditionNotForRollback(Invalid):
    code = "condition-not-for-rollback"
    title = "This condition cannot be asked of a rollback"


def unmet_conditions(
    session: Session,
    project_id: int,
    checkpoint_ids: Sequence[int],
    run_ids: Sequence[int],
    conditions: Sequence[Condition],
    capabilities: Callable[[str], Mapping[int, float] | None] | None,
) -> dict[int, str]:
    """For each checkpoint of the runs that misses a condition, the first one, in words. One statement for all of them.

    A missing or non-finite value meets no condition: it is said to be missing, not to be low.
    """
    refuse_unknown_benchmarks(session, [project_id], conditions)
    unmet: dict[int, str] = {}
    by_percentile = [each for each in conditions if isinstance(each, CapabilityCondition)]
    by_filter = [each for each in conditions if not isinstance(each, CapabilityCondition)]
    if by_filter:
        unmet |= _unmet_filters(session, project_id, run_ids, by_filter)
    for condition in by_percentile:
        percentiles = capabilities(condition.capability) if capabilities is not None else None
        for checkpoint_id in checkpoint_ids:
            why = _unmet_percentile(condition, percentiles, checkpoint_id)
            if why:
                unmet.setdefault(checkpoint_id, why)
    return unmet


def _unmet_filters(
    session: Session, project_id: int, run_ids: Sequence[int], conditions: Sequence[Condition]
) -> dict[int, str]:
    nodes = [_node(each) for each in conditions]
    prepared = prepare(session, project_ids=[project_id], filter=syntax.conjunction(nodes))
    columns = prepared.columns()
    tests = [compile_filter(node, columns) for node in nodes]
    query: Any = select(Checkpoint.id, *(test.label(f"met_{place}") for place, test in enumerate(tests)))
    query = columns.join_to(query.select_from(Checkpoint))
    query = query.where(Checkpoint.project_id == project_id, Checkpoint.run_id.in_(list(run_ids)))
    unmet = {}
    for checkpoint_id, *met in session.execute(query):
        failing = next((place for place, each in enumerate(met) if not each), None)
        if failing is not None:
            outcome = "has no such value" if met[failing] is None else "is not met"
            unmet[checkpoint_id] = f"{_words(conditions[failing])} {outcome}"
    return unmet


def _node(condition: Condition) -> syntax.Comparison:
    if isinstance(condition, FieldCondition):
        return condition.node()
    if isinstance(condition, BenchmarkCondition):
        rest = (condition.metric, condition.filter) if condition.filter is not None else (condition.metric,)
        names = [part or "none" for part in rest] if condition.metric is not None else []
        field = syntax.Field(("scores", condition.benchmark, *names))
        return syntax.Comparison(field, syntax.Operator(condition.relation), syntax.Literal(condition.threshold))
    raise ConditionNotForRollback(f"{_words(condition)!r} asks for a standing among others; give a comparison instead.")


def _words(condition: Condition) -> str:
    match condition:
        case FieldCondition(name, relation, threshold):
            return f"{name} {relation} {threshold}"
        case BenchmarkCondition(name, relation, threshold) | StandingCondition(name, relation, threshold):
            return f"{name} {relation} {threshold:g}"
        case CapabilityCondition(name, relation, threshold):
            return f"{relation} {name} (percentile {'at least' if relation == STRONG else 'at most'} {threshold:g})"


def _unmet_percentile(
    condition: CapabilityCondition, percentiles: Mapping[int, float] | None, checkpoint_id: int
) -> str:
    if percentiles is None:
        return f"{_words(condition)} cannot be judged: there are too few scored checkpoints to rank"
    found = percentiles.get(checkpoint_id)
    if found is None:
        return f"{_words(condition)} has no such value"
    met = found >= condition.threshold if condition.relation == STRONG else found <= condition.threshold
    return "" if met else f"{_words(condition)} is not met: it stands at {found:.2f}"
