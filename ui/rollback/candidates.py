"""The ranked candidates as rows: the figures behind each rank, and what sets one apart from the next."""

from collections.abc import Callable, Mapping, Sequence

from registry.ids import to_text
from registry.overview.briefs import Brief
from registry.recovery.answers import Candidate, RollbackAnswer
from registry.recovery.ranking import Terms
from ui import filters
from ui.contexts import Command, Fact
from ui.contexts.rollback import CandidateRow, ServedRow
from ui.links import address
from ui.refs import ref_of
from ui.words import grouped_steps, long_spans

Shown = Callable[[float], str]
MINUTES: Shown = lambda minutes: filters.duration(minutes * 60)  # noqa: E731
POINTS: Shown = lambda share: filters.fixed(share * 100, 1)  # noqa: E731
# The figures of each mode's order: their name in the answer, what the column says, how the figure is shown.
TERMS: dict[str, tuple[tuple[str, str, Shown], ...]] = {
    "training": (
        ("expected_minutes", "time lost, expected", MINUTES),
        ("restore_minutes", "to restore", MINUTES),
        ("replay_minutes", "to train again", MINUTES),
        ("steps_lost", "steps lost", lambda steps: filters.grouped(int(steps))),
        ("p_ok", "chance it loads", filters.percent),
        ("p_bad", "chance it is bad", filters.percent),
    ),
    "production": (
        ("lower_bound", "score, surely at least", POINTS),
        ("composite", "score", POINTS),
        ("p_ok", "chance it loads", filters.percent),
        ("restore_minutes", "to restore", MINUTES),
        ("p_bad", "chance it is bad", filters.percent),
    ),
}


Used = Sequence[tuple[str, str, Shown]]


def terms_of(answer: RollbackAnswer) -> Used:
    """The columns of which a candidate has a figure."""
    return [
        term for term in TERMS[answer.mode] if any(each.terms.get(term[0]) is not None for each in answer.candidates)
    ]


def served_row(answer: RollbackAnswer, used: Used, briefs: Mapping[int, Brief]) -> ServedRow | None:
    served = answer.served
    if served is None:
        return None
    terms = tuple(
        _term(served.terms, *term) if term[0] in served.terms else Fact(term[1], "–", "not asked of what is served now")
        for term in used
    )
    return ServedRow(ref_of(briefs[served.checkpoint.id]), terms, grouped_steps(served.sentence))


def common_reasons(candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """The reasons that every one of several candidates has: said once, below the table."""
    if len(candidates) < 2:
        return ()
    return tuple(text for text in candidates[0].reasons if all(text in each.reasons for each in candidates))


def candidate_row(
    each: Candidate,
    used: Used,
    briefs: Mapping[int, Brief],
    newest: Brief | None,
    common: Sequence[str],
) -> CandidateRow:
    identity = to_text(each.checkpoint.id)
    compare = None
    if newest is not None and newest.id != each.checkpoint.id:
        compare = address("/compare", baseline=identity, candidate=to_text(newest.id))
    terms = tuple(_term(each.terms, *term) for term in used)
    told = each.reasons[_figures_shown(each, used) :]  # the first reason says the figures of the columns
    own = tuple(long_spans(grouped_steps(text)) for text in told if text not in common)
    return CandidateRow(each.rank, ref_of(briefs[each.checkpoint.id]), terms, own, compare)


def _figures_shown(each: Candidate, used: Used) -> bool:
    """Whether the columns say all that the first reason does: nothing in them is unknown."""
    known = all(isinstance(each.terms.get(key), float | int) for key, _, _ in used)
    return known and each.terms.get("composite_stderr", 0.0) is not None


def _term(terms: Terms, key: str, name: str, shown: Shown) -> Fact:
    value = terms.get(key)
    if not isinstance(value, float | int):
        return Fact(name, "unknown")
    text = shown(value)
    stderr = terms.get("composite_stderr")
    if key == "composite" and isinstance(stderr, float):
        text = f"{text} ± {POINTS(stderr)}"
    title = f"evidence: {terms.get('evidence')}" if key == "p_ok" else filters.exact(value)
    return Fact(name, text, title)


def where_to_load(answer: RollbackAnswer) -> Command | None:
    if not answer.candidates:
        return None
    copy = answer.candidates[0].copy
    alive = ", if that host still runs" if copy.tier == "local" else ""
    host = f" (on {copy.host}{alive})" if copy.host else ""
    return Command(f"Load it from its copy on {copy.tier} storage{host}:", copy.uri, "path")
