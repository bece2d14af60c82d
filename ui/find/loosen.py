"""A filter that finds nothing: which one condition keeps everything out, and how far it would have to give."""

from collections.abc import Callable

from registry.checkpoints.queries import CheckpointPage
from registry.filters import syntax
from registry.filters.check import parse_filter
from registry.filters.print import field_to_text, to_text
from ui import filters
from ui.contexts import Link

MOST_TERMS = 6  # one question to the database each
UPWARDS = (">", ">=")
DOWNWARDS = ("<", "<=")

# Lists the checkpoints of a filter (None: all), ordered, with the named field; at most one row is needed.
Ask = Callable[[syntax.Node | None, str, str], CheckpointPage]


def loosened(text: str, ask: Ask, href: Callable[[str], str]) -> tuple[Link, ...]:
    """Links to the filter without the one condition that excludes everything, each saying what is nearest."""
    node = parse_filter(text)
    if node is None:
        return ()
    terms: list[syntax.Node] = list(node.terms) if isinstance(node, syntax.And) else [node]
    links = []
    for place, term in enumerate(terms[:MOST_TERMS]):
        others = terms[:place] + terms[place + 1 :]
        rest = syntax.conjunction(others) if others else None
        words = _nearest(term, rest, ask)
        if words is not None:
            links.append(Link(f"Without {to_text(term)}: {words}", href(to_text(rest) if rest else "")))
    return tuple(links)


def _nearest(term: syntax.Node, rest: syntax.Node | None, ask: Ask) -> str | None:
    """What the other conditions leave, nearest to this one first; None where they leave nothing either."""
    if not isinstance(term, syntax.Comparison) or term.operator not in (*UPWARDS, *DOWNWARDS):
        return "there are rows" if ask(rest, "", "").rows else None
    field = field_to_text(term.field)
    descending = " desc" if term.operator in UPWARDS else ""
    rows = ask(rest, f"{field}{descending}", field).rows
    if not rows:
        return None
    value = rows[0].values.get(field)
    if value is None:
        return "there are rows, none with a value"
    shown = filters.number(value) if isinstance(value, int | float) else str(value)
    return f"the {'highest' if descending else 'lowest'} is {shown}"
