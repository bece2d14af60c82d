"""A parsed filter and order, made ready for a database: scope, scores chosen, percentiles fetched."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.filters import syntax
from registry.filters.check import parse_fields, parse_filter, parse_order_by
from registry.filters.columns import Columns
from registry.filters.errors import InvalidFilter
from registry.filters.fields import find_field
from registry.filters.print import field_to_text
from registry.filters.scores import ScoreChoice, choose_scores
from registry.models import Project

# Percentile (a fraction) of each checkpoint in a capability; None where no population is large enough.
CapabilityResolver = Callable[[str], Mapping[int, float] | None]


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

    def columns(self, driving: tuple[ScoreChoice, Any] | None = None) -> Columns:
        """Fresh ones for one statement; `driving` is a score and the table whose index the statement walks."""
        return Columns(self.scores, self.percentiles, self.sqlite, driving)

    @property
    def resolved(self) -> dict[str, str | None]:
        """What each score name of the query was read as; None: no such score in these projects."""
        return {
            field_to_text(syntax.Field(("scores", *names))): choice.text if choice else None
            for names, choice in self.scores.items()
        }


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
    used = [(field, fields) for field in asked] + [(key.field, order_by) for key in order]
    used += [(term.field, text) for term in (syntax.terms_of(node) if node else [])]
    scope, node = _narrowed(session, project_ids, node)
    scores = choose_scores(session, scope, _names_of("scores", [field for field, _ in used]))
    shown = tuple(dict.fromkeys(field for field, _ in used if not find_field(field, "").spec.some))
    return Prepared(node, order, shown, scope, scores, _percentiles(used, capabilities), _is_sqlite(session))


@contextmanager
def _reading(parameter: str) -> Iterator[None]:
    """A mistake says in which of the texts it stands."""
    try:
        yield
    except InvalidFilter as error:
        error.extras["parameter"] = parameter
        raise


def _is_sqlite(session: Session) -> bool:
    return session.get_bind().dialect.name == "sqlite"


def _names_of(group: str, fields: Sequence[syntax.Field]) -> list[tuple[str, ...]]:
    references = (find_field(field, "") for field in fields)
    return [reference.names for reference in references if reference.spec.path == (group,)]


def _percentiles(
    used: Sequence[tuple[syntax.Field, str]], capabilities: CapabilityResolver | None
) -> dict[str, Mapping[int, float]]:
    found: dict[str, Mapping[int, float]] = {}
    for field, text in used:
        if field.segments[0] != "capabilities" or field.segments[1] in found:
            continue
        name = field.segments[1]
        percentiles = capabilities(name) if capabilities is not None else None
        if percentiles is None:
            what = f"there are too few scored checkpoints to rank {name!r}, or no such capability"
            expected = ["a capability with a population of at least 20 checkpoints from 3 runs"]
            raise InvalidFilter(what, text, field.place(1), expected)
        found[name] = percentiles
    return found


def _narrowed(
    session: Session, project_ids: Collection[int] | None, node: syntax.Node | None
) -> tuple[frozenset[int] | None, syntax.Node | None]:
    """Projects that the filter itself names at its top level bound the scope, so that their indexes serve."""
    scope = None if project_ids is None else frozenset(project_ids)
    terms = node.terms if isinstance(node, syntax.And) else (node,) if node else ()
    kept = []
    for term in terms:
        names = _named_projects(term)
        if names is None:
            kept.append(term)
            continue
        found = frozenset(session.scalars(select(Project.id).where(Project.name.in_(names))))
        scope = found if scope is None else scope & found
    if scope is None:  # everything: where that is one project, its indexes serve too
        some = session.scalars(select(Project.id).limit(2)).all()
        scope = frozenset(some) if len(some) < 2 else None
    return scope, syntax.conjunction(kept) if kept else None


def _named_projects(term: syntax.Node) -> list[str] | None:
    match term:
        case syntax.Comparison(syntax.Field(("project",)), syntax.Operator.EQUAL, value):
            return [str(value.value)]
        case syntax.Membership(syntax.Field(("project",)), values, False):
            return [str(value.value) for value in values]
    return None
