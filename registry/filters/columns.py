"""Catalogue reference -> SQL expressions over the row of `checkpoint`.

What a checkpoint has one of (run, attempt, layout ...) is joined by key; what it has by name (scores, tags, metrics,
config values, pieces) is looked up by primary key in a scalar subquery, so a listing that stops after a page
looks up only what it walks over. A missing value is NULL, and so is a non-finite number, with its marker beside it.
An infinity compares as the number that it is, and is not ordered.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import JSON, BigInteger, Double, String, and_, case, cast, func, literal, null, or_, select, types

from registry.filters import tables
from registry.filters.fields import Reference
from registry.filters.scores import ScoreChoice
from registry.filters.tables import checkpoint
from registry.types import LrPhase, PieceName, Presence, Resumability

Expression = Any  # a column expression of SQLAlchemy, whose own types say less than the catalogue does

# Joined by (project, id): the group of fields, its table, and the column of `checkpoint` that names the row.
# Run and attempt always exist; for the others a missing row is a missing value.
_JOINED: dict[str, tuple[Any, str]] = {
    "run": (tables.run, "run_id"),
    "attempt": (tables.attempt, "attempt_id"),
    "code": (tables.code_version, "code_version_id"),
    "layout": (tables.layout, "layout_id"),
    "data_version": (tables.data_version, "data_version_id"),
}
_ALWAYS_THERE = ("run", "attempt")

# A rate of at least this share of the run's highest is at the top; fewer rates than these make no course.
AT_THE_TOP = 0.99
ENOUGH_RATES = 3


class Infinite(types.TypeDecorator[float]):
    """An infinite number; where it is written out, as for a plan, each database has its own words for it."""

    impl = Double
    cache_ok = True

    def literal_processor(self, dialect: Any) -> Any:
        words = "{}9e999" if dialect.name == "sqlite" else "'{}Infinity'::float8"
        return lambda value: words.format("-" if value < 0 else "")


# By their marker.
_INFINITIES: dict[str, Expression] = {text: literal(float(text), Infinite()) for text in ("Infinity", "-Infinity")}


@dataclass(frozen=True, slots=True)
class Value:
    """`plain` is shown; `special` makes the marker of a non-finite number; `text` is a config value's text.

    `number` makes what compares with a number, and `within` is what orders, where that is not `plain`.
    """

    plain: Expression
    special: Callable[[], Expression] | None = None  # most filters compare only, so it is made when asked for
    text: Expression | None = None
    number: Callable[[], Expression] | None = None
    within: Expression | None = None

    @property
    def ordered(self) -> Expression:
        return self.plain if self.within is None else self.within


@dataclass
class Columns:
    """Makes expressions for one statement, and remembers which tables they need joined to `checkpoint`."""

    scores: Mapping[tuple[str, ...], ScoreChoice | None] = field(default_factory=dict)
    percentiles: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    sqlite: bool = True
    driving: tuple[ScoreChoice, Any] | None = None  # a score whose index the statement walks, and its table
    project_id: int | None = None  # the only project of the statement, where there is only one
    joined: dict[str, tuple[Any, Expression, bool]] = field(default_factory=dict)

    def value(self, reference: Reference) -> Value:
        group, *rest = reference.spec.path
        match group:
            case "scores":
                return self._score(reference.names)
            case "metrics":
                return _number(tables.checkpoint_metric, name=reference.names[0])
            case "tags":
                return Value(_lookup(tables.checkpoint_tag, "value", name=reference.names[0]))
            case "config":
                return _config(".".join(reference.names))
            case "capabilities":
                return self._capability(reference.names[0])
            case "pieces":
                return Value(presence(PieceName(rest[0])))
            case "run" if rest == ["id"]:
                return Value(checkpoint.c.run_id)
            case "run" if rest == ["tags"]:
                return Value(_run_tag(reference.names[0]))
            case "layout" if rest == ["format"]:
                return Value(checkpoint.c.format)
            case _ if rest:
                return Value(self._table(group).c[rest[0]])
            case _:
                return self._own(group)

    def join_to(self, query: Any) -> Any:
        """The statement, which selects from `checkpoint`, with the tables joined that the expressions need."""
        for table, condition, outer in self.joined.values():
            query = query.join(table, condition, isouter=outer)
        return query

    def _own(self, name: str) -> Value:
        match name:
            case "loss" | "lr":
                value, special = checkpoint.c[name], checkpoint.c[f"{name}_special"]
                return Value(value, lambda: special, number=lambda: _infinite_too(value, special))
            case "attempt":
                return Value(checkpoint.c.attempt_number)
            case "data_version":
                return Value(self._table("data_version").c.name)
            case "project":
                self.joined["project"] = (tables.project, tables.project.c.id == checkpoint.c.project_id, False)
                return Value(tables.project.c.name)
            case "superseded":
                live_through = self._table("attempt").c.live_through_step
                return Value(and_(live_through.is_not(None), checkpoint.c.step > live_through))
            case "scored":
                return Value(_has_score())
            case "resumability":
                return Value(resumability())
            case "bytes":
                return Value(_largest_replica())
            case "lr_phase":
                return Value(lr_phase())
            case _:
                return Value(checkpoint.c[name])

    def _table(self, group: str) -> Any:
        table, key = _JOINED[group]
        if group not in self.joined:
            condition = and_(table.c.project_id == checkpoint.c.project_id, table.c.id == checkpoint.c[key])
            self.joined[group] = (table, condition, group not in _ALWAYS_THERE)
        return table

    def _score(self, names: tuple[str, ...]) -> Value:
        choice = self.scores[names]
        metric_ids = choice.metric_ids(self.project_id) if choice is not None else ()
        if choice is None or not metric_ids:
            return Value(cast(null(), Double()), null)
        if self.driving is not None and self.driving[0] == choice:
            walked = self.driving[1].c
            return Value(walked.value, lambda: walked.special)
        return _number(tables.current_score, choice.limits, score_metric_id=metric_ids)

    def _capability(self, name: str) -> Value:
        key = f"capability {name}"
        if key not in self.joined:
            table = _percentile_table(self.percentiles[name], self.sqlite)
            self.joined[key] = (table, table.c.checkpoint_id == checkpoint.c.id, True)
        return Value(self.joined[key][0].c.percentile)


def _here(table: Any, **named: Any) -> Expression:
    """The rows of a table that belong to the checkpoint and have these values (a tuple: one of them)."""
    conditions = [table.c.project_id == checkpoint.c.project_id, table.c.checkpoint_id == checkpoint.c.id]
    for column, value in named.items():
        many = isinstance(value, tuple) and len(value) > 1
        one = value[0] if isinstance(value, tuple) else value
        conditions.append(table.c[column].in_(value) if many else table.c[column] == one)
    return and_(*conditions)


def _scalar(query: Any) -> Expression:
    return query.correlate(checkpoint).scalar_subquery()


def _lookup(table: Any, column: str, **named: Any) -> Expression:
    return _scalar(select(table.c[column]).where(_here(table, **named)))


def _number(table: Any, limits: tuple[float, float] | None = None, **named: Any) -> Value:
    """Of the values beyond the limits none compares or orders."""
    here, value, special = _here(table, **named), table.c.value, table.c.special
    counting = value if limits is None else case((value.between(*limits), value))
    return Value(
        _scalar(select(value).where(here)),
        lambda: _scalar(select(special).where(here)),
        number=lambda: _scalar(select(_infinite_too(counting, special)).where(here)),
        within=None if limits is None else _scalar(select(counting).where(here)),
    )


def _infinite_too(value: Expression, marker: Expression) -> Expression:
    """A number that may be infinite, of a finite one and a marker."""
    return func.coalesce(value, case(_INFINITIES, value=marker))


def _config(path: str) -> Value:
    """A value that was sent as null is missing."""
    entry = tables.config_entry
    here = and_(
        entry.c.project_id == checkpoint.c.project_id,
        entry.c.config_id == checkpoint.c.config_id,
        entry.c.path == path,
    )
    text = _scalar(select(func.nullif(entry.c.text, literal("null"))).where(here))
    number = _scalar(select(_infinite_too(entry.c.number, entry.c.text)).where(here))
    return Value(_scalar(select(entry.c.number).where(here)), text=text, number=lambda: number)


def _run_tag(name: str) -> Expression:
    tag = tables.run_tag
    here = and_(tag.c.project_id == checkpoint.c.project_id, tag.c.run_id == checkpoint.c.run_id, tag.c.name == name)
    return _scalar(select(tag.c.value).where(here))


@cache
def presence(piece: PieceName) -> Expression:
    """Unknown where nobody said anything about the piece."""
    return func.coalesce(_lookup(tables.piece, "presence", name=piece.value), literal(Presence.UNKNOWN.value))


@cache
def resumability() -> Expression:
    """`registry.checkpoints.completeness.resumability_of` in SQL, over the four pieces."""
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


@cache
def lr_phase() -> Expression:
    """`registry.evals.population.phases` in SQL: warm-up before the run's highest rate is reached, decay after it.

    Unknown where the checkpoint, or most of its run, does not say its learning rate.
    """
    peer = tables.checkpoint.alias("peer")
    of_run = (peer.c.project_id == checkpoint.c.project_id, peer.c.run_id == checkpoint.c.run_id)
    top = _scalar(select(func.max(peer.c.lr)).where(*of_run))
    known = _scalar(select(func.count(peer.c.lr)).where(*of_run))
    first = _scalar(select(func.min(peer.c.step)).where(*of_run, peer.c.lr >= AT_THE_TOP * top))
    return case(
        (or_(checkpoint.c.lr.is_(None), known < ENOUGH_RATES), null()),
        (checkpoint.c.lr >= AT_THE_TOP * top, LrPhase.STABLE.value),
        (checkpoint.c.step < first, LrPhase.WARM_UP.value),
        else_=LrPhase.DECAY.value,
    )


@cache
def _has_score() -> Expression:
    """Whether any result counts for it, its own or that of a lossless copy."""
    return select(literal(1)).where(_here(tables.current_score)).correlate(checkpoint).exists()


def some_replica(condition: Expression, *, removed_too: bool) -> Expression:
    """True where some replica meets the condition. A removed one is a copy no longer."""
    here = _here(tables.replica) if removed_too else _present_replica()
    return select(literal(1)).where(here, condition).correlate(checkpoint).exists()


def _present_replica() -> Expression:
    return _here(tables.replica, state=("present", "partial"))


@cache
def _largest_replica() -> Expression:
    return _scalar(select(func.max(tables.replica.c.bytes)).where(_present_replica()))


def _percentile_table(percentiles: Mapping[int, float], sqlite: bool) -> Any:
    """The percentiles as one bound parameter, however many: a materialised table that either planner can hash."""
    body = json.dumps({str(number): percentile for number, percentile in percentiles.items()})
    spread = func.json_each(body) if sqlite else func.json_each_text(cast(literal(body, String()), JSON))
    rows = spread.table_valued("key", "value")
    query: Any = select(
        cast(rows.c.key, BigInteger).label("checkpoint_id"), cast(rows.c.value, Double()).label("percentile")
    )
    return query.cte().prefix_with("MATERIALIZED")
