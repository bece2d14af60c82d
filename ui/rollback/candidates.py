"""The ranked candidates as rows: the figures behind each rank, and what sets one apart from the next."""

from collections.abc import Callable, Mapping, Sequence

from registry.ids import to_text
from registry.overview.briefs import Brief
from registry.recovery.answers import Candidate, RollbackAnswer
from ui import filters
from ui.contexts import Command, Fact
from ui.contexts.rollback import CandidateRow
from ui.links import address
from ui.refs import ref_of
from ui.words import grouped_steps, long_spans

Shown = Callable[[float], str]
MINUTES: Shown = lambda minutes: filters.duration(minutes * 60)  # noqa: E731
POINTS: Shown = lambda share: filters.fixed(share * 100, 1)  # noqa: E731
# The figures of each mode's order: their name in the answer, what the column says, how the figure is shown.
TERMS: dict[str, tuple[tuple[str, str, Shown], ...]] = {
    "training": (
        ("expected_minutes", "expected", MINUTES),
        ("restore_minutes", "restore", MINUTES),
        ("replay_minutes", "replay", MINUTES),
        ("steps_lost", "steps lost", lambda steps: filters.grouped(int(steps))),
        ("p_ok", "P(restores)", filters.percent),
        ("p_bad", "P(bad)", filters.percent),
    ),
    "production": (
        ("lower_bound", "at least (95%), points", POINTS),
        ("composite", "composite, points", POINTS),
        ("p_ok", "P(restores)", filters.percent),
        ("restore_minutes", "restore", MINUTES),
        ("p_bad", "P(bad)", filters.percent),
    ),
}


def common_reasons(candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """The reasons that every one of several candidates has: said once, below the table."""
    if len(candidates) < 2:
        return ()
    return tuple(text for text in candidates[0].reasons if all(text in each.reasons for each in candidates))


def candidate_row(
    each: Candidate,
    used: list[tuple[str, str, Shown]],
    briefs: Mapping[int, Brief],
    newest: Brief | None,
    common: Sequence[str],
) -> CandidateRow:
    identity = to_text(each.checkpoint.id)
    compare = None
    if newest is not None and newest.id != each.checkpoint.id:
        compare = address("/compare", baseline=identity, candidate=to_text(newest.id))
    terms = tuple(_term(each, *term) for term in used)
    told = each.reasons[_figures_shown(each, used) :]  # the first reason says the figures of the columns
    own = tuple(long_spans(grouped_steps(text)) for text in told if text not in common)
    return CandidateRow(each.rank, ref_of(briefs[each.checkpoint.id]), terms, own, compare)


def _figures_shown(each: Candidate, used: list[tuple[str, str, Shown]]) -> bool:
    """Whether the columns say all that the first reason does: nothing in them is unknown."""
    known = all(isinstance(each.terms.get(key), float | int) for key, _, _ in used)
    return known and each.terms.get("composite_stderr", 0.0) is not None


def _term(each: Candidate, key: str, name: str, shown: Shown) -> Fact:
    value = each.terms.get(key)
    if not isinstance(value, float | int):
        return Fact(name, "unknown")
    text = shown(value)
    stderr = each.terms.get("composite_stderr")
    if key == "composite" and isinstance(stderr, float):
        text = f"{text} ± {POINTS(stderr)}"
    title = f"evidence: {each.terms.get('evidence')}" if key == "p_ok" else filters.exact(value)
    return Fact(name, text, title)


def where_to_load(answer: RollbackAnswer) -> Command | None:
    if not answer.candidates:
        return None
    copy = answer.candidates[0].copy
    host = f" (on {copy.host})" if copy.host else ""
    return Command(f"Load it from its copy on {copy.tier} storage{host}:", copy.uri, "path")
