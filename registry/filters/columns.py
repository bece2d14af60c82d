"""Catalogue reference -> SQL expressions over the row of `checkpoint`.

What a checkpoint has one of (run, attempt, layout ...) is joined by key; what it has by name (scores, tags, metrics,
config values, pieces) is looked up by primary key in a scalar subquery, so a listing that stops after a page
looks up only what it walks over. A missing value is NULL, and so is a non-finite number, with its marker beside it.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Double,
    and_,
    case,
    cast,
    func,
    literal,
    null,
    or_,
    select,
)
from sqlalchemy.orm import InstrumentedAttribute

from registry.filters.fields import Reference
from registry.filters.scores import ScoreChoice
from registry.models import (
    Attempt,
    Checkpoint,
    CheckpointMetric,
    CheckpointTag,
    CodeVersion,
    ConfigEntry,
    CurrentScore,
    DataVersion,
    Layout,
    Piece,
    Project,
    Replica,
    Run,
    RunTag,
)
from registry.types import PieceName, Presence, Resumability

Expression = Any  # a column expression of SQLAlchemy, whose own types say less than the catalogue does


@dataclass(frozen=True, slots=True)
class Value:
    """`plain` compares and orders; `special` is the marker of a non-finite number; `text` a config value's text."""

    plain: Any
    special: Any = None
    text: Any = None


@dataclass
class Columns:
    """Makes expressions, and remembers which tables they need joined to `checkpoint`."""

    scores: Mapping[tuple[str, ...], ScoreChoice | None] = field(default_factory=dict)
    percentiles: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    sqlite: bool = True
    driving: tuple[ScoreChoice, Any] | None = None  # a score whose index the query walks, and its table
    joined: dict[str, tuple[Any, Expression, bool]] = field(default_factory=dict)

    def value(self, reference: Reference) -> Value:
        group, *rest = reference.spec.path
        match group:
            case "scores":
                return self._score(reference.names)
            case "metrics":
                return self._metric(reference.names[0])
            case "tags":
                return Value(_tag(reference.names[0]))
            case "config":
                return self._config(".".join(reference.names))
            case "capabilities":
                return self._capability(reference.names[0])
            case "pieces":
                return Value(presence(PieceName(rest[0])))
            case _ if rest:
                return self._member(group, rest[0], reference.names)
            case _:
                return self._own(group)

    def join_to(self, query: Any) -> Any:
        """The statement, which selects from `checkpoint`, with the tables joined that the expressions need."""
        for table, condition, outer in self.joined.values():
            query = query.join(table, condition, isouter=outer)
        return query

    def _own(self, name: str) -> Value:
        match name:
            case "loss":
                return Value(Checkpoint.loss, Checkpoint.loss_special)
            case "lr":
                return Value(Checkpoint.lr, Checkpoint.lr_special)
            case "attempt":
                return Value(Checkpoint.attempt_number)
            case "project":
                self._join("project", Project, Project.id == Checkpoint.project_id)
                return Value(Project.name)
            case "data_version":
                self._join_by_key("data", DataVersion, Checkpoint.data_version_id)
                return Value(DataVersion.name)
            case "superseded":
                self._join_by_key("attempt", Attempt, Checkpoint.attempt_id, outer=False)
                return Value(superseded())
            case "resumability":
                return Value(resumability())
            case "bytes":
                largest = select(func.max(Replica.bytes)).where(*_present_replica())
                return Value(largest.correlate(Checkpoint).scalar_subquery())
            case _:
                column: InstrumentedAttribute[Any] = getattr(Checkpoint, name)
                return Value(column.expression)

    def _member(self, group: str, name: str, names: tuple[str, ...]) -> Value:
        match group:
            case "run" if name == "tags":
                return Value(_run_tag(names[0]))
            case "run" if name == "id":
                return Value(Checkpoint.run_id.expression)
            case "run":
                self._join_by_key("run", Run, Checkpoint.run_id, outer=False)
                return Value(getattr(Run, name).expression)
            case "code":
                self._join_by_key("code", CodeVersion, Checkpoint.code_version_id)
                return Value(getattr(CodeVersion, name).expression)
            case _:
                self._join_by_key("layout", Layout, Checkpoint.layout_id)
                return Value(Checkpoint.format.expression if name == "format" else getattr(Layout, name).expression)

    def _join_by_key(self, name: str, table: Any, key: Any, *, outer: bool = True) -> None:
        self._join(name, table, and_(table.project_id == Checkpoint.project_id, table.id == key), outer)

    def _join(self, name: str, table: Any, condition: Expression, outer: bool = False) -> None:
        self.joined[name] = (table, condition, outer)

    def _score(self, names: tuple[str, ...]) -> Value:
        choice = self.scores.get(names)
        if choice is None:
            return Value(cast(null(), Double()), null())
        if self.driving is not None and self.driving[0] == choice:
            table = self.driving[1]
            return Value(table.value, table.special)
        here = and_(
            CurrentScore.project_id == Checkpoint.project_id,
            CurrentScore.checkpoint_id == Checkpoint.id,
            _one_of(CurrentScore.score_metric_id.expression, choice.metric_ids),
        )
        return _number(CurrentScore.value, CurrentScore.special, here)

    def _metric(self, name: str) -> Value:
        here = and_(
            CheckpointMetric.project_id == Checkpoint.project_id,
            CheckpointMetric.checkpoint_id == Checkpoint.id,
            CheckpointMetric.name == name,
        )
        return _number(CheckpointMetric.value, CheckpointMetric.special, here)

    def _config(self, path: str) -> Value:
        here = and_(
            ConfigEntry.project_id == Checkpoint.project_id,
            ConfigEntry.config_id == Checkpoint.config_id,
            ConfigEntry.path == path,
        )
        return Value(_lookup(ConfigEntry.number, here), text=_lookup(ConfigEntry.text, here))

    def _capability(self, name: str) -> Value:
        table = percentile_table(name, self.percentiles[name], self.sqlite)
        key = f"capability {name}"
        if key not in self.joined:
            self._join(key, table, table.c.checkpoint_id == Checkpoint.id, outer=True)
        joined, _, _ = self.joined[key]
        return Value(joined.c.percentile)


def superseded() -> Expression:
    """Needs `attempt` joined. Beyond the last step on which the newest attempt's path still stands."""
    limit = Attempt.live_through_step
    return and_(limit.is_not(None), Checkpoint.step > limit)


def presence(piece: PieceName) -> Expression:
    here = and_(
        Piece.project_id == Checkpoint.project_id, Piece.checkpoint_id == Checkpoint.id, Piece.name == piece.value
    )
    return func.coalesce(_lookup(Piece.presence, here), literal(Presence.UNKNOWN.value))


def resumability() -> Expression:
    """The same rules as for one checkpoint, over the four pieces."""
    weights, optimizer, position, random = (presence(piece) for piece in PieceName)
    present, absent, unknown = Presence.PRESENT.value, Presence.ABSENT.value, Presence.UNKNOWN.value
    return case(
        (weights == absent, Resumability.INCOMPLETE.value),
        (weights == unknown, Resumability.UNKNOWN.value),
        (and_(optimizer == absent, position == absent, random != present), Resumability.WEIGHTS_ONLY.value),
        (or_(optimizer == absent, position == absent), Resumability.INCOMPLETE.value),
        (or_(optimizer == unknown, position == unknown), Resumability.UNKNOWN.value),
        (random == present, Resumability.EXACT.value),
        else_=Resumability.RESUMABLE.value,
    )


def percentile_table(name: str, percentiles: Mapping[int, float], sqlite: bool) -> Any:
    """The percentiles as one bound parameter, however many: a materialised table that either planner can hash."""
    body = json.dumps({str(number): percentile for number, percentile in percentiles.items()})
    spread = func.json_each(body) if sqlite else func.json_each_text(cast(body, JSON))
    rows = spread.table_valued("key", "value", name=f"spread_{name}")
    query: Any = select(
        cast(rows.c.key, BigInteger).label("checkpoint_id"), cast(rows.c.value, Double()).label("percentile")
    )
    return query.cte(f"percentile_{name}").prefix_with("MATERIALIZED")


def some_replica(condition: Expression, *, removed_too: bool) -> Expression:
    """True where some replica meets the condition. A removed one is a copy no longer."""
    where = _of_checkpoint() if removed_too else _present_replica()
    return select(literal(1)).where(*where, condition).correlate(Checkpoint).exists()


def _of_checkpoint() -> tuple[Expression, ...]:
    return (Replica.project_id == Checkpoint.project_id, Replica.checkpoint_id == Checkpoint.id)


def _present_replica() -> tuple[Expression, ...]:
    return (*_of_checkpoint(), Replica.state.in_(("present", "partial")))


def _tag(name: str) -> Expression:
    return _lookup(
        CheckpointTag.value,
        and_(
            CheckpointTag.project_id == Checkpoint.project_id,
            CheckpointTag.checkpoint_id == Checkpoint.id,
            CheckpointTag.name == name,
        ),
    )


def _run_tag(name: str) -> Expression:
    return _lookup(
        RunTag.value,
        and_(
            RunTag.project_id == Checkpoint.project_id,
            RunTag.run_id == Checkpoint.run_id,
            RunTag.name == name,
        ),
    )


def _number(value: Any, special: Any, here: Expression) -> Value:
    return Value(_lookup(value, here), _lookup(special, here))


def _lookup(column: Any, here: Expression) -> Expression:
    found: Expression = select(column).where(here).correlate(Checkpoint).scalar_subquery()
    return found


def _one_of(column: Expression, numbers: Collection[int]) -> Expression:
    (first, *others) = numbers
    return column.in_(numbers) if others else column == first
