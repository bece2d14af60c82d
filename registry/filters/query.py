"""A parsed filter and order, made ready for a database: scope, scores chosen, percentiles fetched."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry import ids
from registry.evals.project_table import read_project_table
from registry.filters import syntax, tables
from registry.filters.check import parse_fields, parse_filter, parse_order_by
from registry.filters.columns import Columns
from registry.filters.errors import InvalidFilter
from registry.filters.fields import find_field
from registry.filters.left_out import LeftOut
from registry.filters.mixed_scales import within_scales
from registry.filters.percentiles import that_can_be_found
from registry.filters.print import field_to_text
from registry.filters.scores import ScoreChoice, choose_scores, left_out_of
from registry.names import run_name


class CapabilityResolver(Protocol):
    """Percentile (a fraction) of each checkpoint in a capability among those of the projects `within` (None: all that
    the caller may read); None where no population is large enough."""

    def __call__(self, name: str, within: Collection[int] | None = None, /) -> Mapping[int, float] | None: ...


@dataclass(frozen=True)
class Prepared:
    """`project_ids`: None for every project. `node` no longer says what `project_ids` says.

    `shown`: what a row says beside what every row says: the fields asked for, then those of filter and order.
    """

    node: syntax.Node | None
    order: tuple[syntax.OrderKey, ...]
    shown: tuple[syntax.Field, ...]
    project_ids: frozenset[int] | None
    scores: Mapping[tuple[str, ...], ScoreChoice | None]
    percentiles: Mapping[str, Mapping[int, float]]
    sqlite: bool

    def columns(self) -> Columns:
        """Fresh ones for one statement."""
        return Columns(self.scores, self.percentiles, self.sqlite)

    @property
    def resolved(self) -> dict[str, str | None]:
        """What each score name of the query was read as; None: no such score in these projects."""
        return {
            field_to_text(syntax.Field(("scores", *names))): choice.text if choice else None
            for names, choice in self.scores.items()
        }

    @property
    def left_out(self) -> dict[str, tuple[LeftOut, ...]]:
        """For each score name that not all of the projects have as it was read: those that it leaves out."""
        return left_out_of(self.scores)


def prepare(
    session: Session,
    *,
    project_ids: Collection[int] | None,
    filter: str | syntax.Node | None = None,
    order_by: str = "",
    fields: str = "",
    capabilities: CapabilityResolver | None = None,
) -> Prepared:
    """Reads the texts and looks up what their names mean. Raises InvalidFilter."""
    text = filter if isinstance(filter, str) else ""
    with _reading("filter"):
        node = parse_filter(filter) if isinstance(filter, str) else filter
    with _reading("order_by"):
        order = parse_order_by(order_by)
    with _reading("fields"):
        asked = parse_fields(fields)
    used = [_Use(field, fields, "fields") for field in asked]
    used += [_Use(key.field, order_by, "order_by") for key in order]
    used += [_Use(term.field, text, "filter") for term in (syntax.terms_of(node) if node else [])]
    scope, node = _narrowed(session, project_ids, node)
    scores = _scores(session, scope, _names_of("scores", [use.field for use in used]))
    shown = tuple(dict.fromkeys(use.field for use in used if not find_field(use.field, "").spec.some))
    percentiles = that_can_be_found(node, _percentiles(used, capabilities, scope))
    return Prepared(node, order, shown, scope, scores, percentiles, _is_sqlite(session))


def _scores(
    session: Session, scope: frozenset[int] | None, names: Sequence[tuple[str, ...]]
) -> Mapping[tuple[str, ...], ScoreChoice | None]:
    if not names:
        return {}
    table = read_project_table(session, scope)
    return within_scales(session, choose_scores(session, scope, names, table), table)


@dataclass(frozen=True, slots=True)
class _Use:
    """A field where it stands: in which text, and which parameter that is."""

    field: syntax.Field
    text: str
    parameter: str


@contextmanager
def _reading(parameter: str) -> Iterator[None]:
    """A mistake says in which of the texts it stands."""
    try:
        yield
    except InvalidFilter as error:
        raise error.within(parameter) from None


def _is_sqlite(session: Session) -> bool:
    return session.get_bind().dialect.name == "sqlite"


def _names_of(group: str, fields: Sequence[syntax.Field]) -> list[tuple[str, ...]]:
    references = (find_field(field, "") for field in fields)
    return [reference.names for reference in references if reference.spec.path == (group,)]


def _percentiles(
    used: Sequence[_Use], capabilities: CapabilityResolver | None, scope: frozenset[int] | None
) -> dict[str, Mapping[int, float]]:
    """Among the checkpoints of the projects that the filter names: another project's may share no benchmark."""
    found: dict[str, Mapping[int, float]] = {}
    for use in used:
        if use.field.segments[0] != "capabilities" or use.field.segments[1] in found:
            continue
        name = use.field.segments[1]
        percentiles = capabilities(name, scope) if capabilities is not None else None
        if percentiles is None:
            what = f"there are too few scored checkpoints to rank {name!r}"
            expected = ["a capability with a population of at least 20 checkpoints from 3 runs"]
            raise InvalidFilter(what, use.text, use.field.place(1), expected).within(use.parameter)
        found[name] = percentiles
    return found


def _narrowed(
    session: Session, project_ids: Collection[int] | None, node: syntax.Node | None
) -> tuple[frozenset[int] | None, syntax.Node | None]:
    """The projects that matter, and what is left to ask: the indexes lead with the project, so it is worth knowing.

    A project that the filter names at its top level bounds the scope and is asked no more; a run that it
    names there bounds it too.
    """
    scope = None if project_ids is None else frozenset(project_ids)
    kept: list[syntax.Node] = []
    for term in syntax.conjuncts(node):
        named = _named(term)
        if named is None or named[0] != "project":
            kept.append(term)
        if named is not None:
            column, wanted = _SCOPING[named[0]]
            found = session.scalars(_within(select(column).where(wanted.in_(named[1])), column, scope))
            scope = frozenset(found)
    if scope is None:  # everything: where that is one project, its indexes serve too
        some = session.scalars(select(tables.project.c.id).limit(2)).all()
        scope = frozenset(some) if len(some) < 2 else None
    return scope, syntax.conjunction(kept) if kept else None


# Field -> the column that gives the projects, and the column that the field compares.
_SCOPING = {
    "project": (tables.project.c.id, tables.project.c.name),
    "run.name": (tables.run.c.project_id, tables.run.c.name),
    "run.id": (tables.run.c.project_id, tables.run.c.id),
}


def _within(query: Any, column: Any, scope: frozenset[int] | None) -> Any:
    return query if scope is None else query.where(column.in_(sorted(scope)))


def _named(term: syntax.Node) -> tuple[str, list[Any]] | None:
    """(field, values) of `field = value` or `field in (...)`, for the fields that bound the scope."""
    match term:
        case syntax.Comparison(field, syntax.Operator.EQUAL, value):
            values: tuple[syntax.Literal, ...] = (value,)
        case syntax.Membership(field, values, False):
            pass
        case _:
            return None
    name = ".".join(field.segments)
    if name not in _SCOPING:
        return None
    read = {"run.id": ids.from_text, "run.name": run_name}.get(name, str)
    return name, [read(str(value.value)) for value in values]
