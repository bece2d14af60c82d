"""A rollback's answer as rows and a plot: the sentence, the figures behind each rank, what was left out and why."""

from collections.abc import Callable, Mapping

from registry.ids import to_text
from registry.overview.briefs import Brief
from registry.recovery.rollback import Candidate, RollbackAnswer, WatchedOnset
from ui import filters
from ui.charts import Band, LineChart, Mark, Point, Series, colour_of
from ui.charts.thin import thin_indexes
from ui.contexts import (
    Answer,
    CandidateRow,
    Command,
    ExcludedRow,
    Fact,
    Link,
    Plot,
    RollbackContext,
    WatchedRow,
)
from ui.curves import crowded_at_start
from ui.links import address
from ui.refs import ref_of

SHOWN_POINTS = 200  # evaluated checkpoints in the table, the newest first; the CSV has all
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
        ("lower_bound", "sure score, points", POINTS),
        ("composite", "composite, points", POINTS),
        ("p_ok", "P(restores)", filters.percent),
        ("restore_minutes", "restore", MINUTES),
        ("p_bad", "P(bad)", filters.percent),
    ),
}


# The hard filters, as a reader of the page would say them; the others are words already.
FILTERS = {
    "p_bad": "probably bad already",
    "unscored": "not evaluated",
    "rto": "too slow to restore",
    "copy": "no usable copy",
    "pieces": "pieces absent or unknown",
    "loss": "loss not finite",
    "step": "beyond the step",
    "alias_target": "where the alias points now",
}


def rollback_context(
    answer: RollbackAnswer,
    briefs: Mapping[int, Brief],
    *,
    fields: dict[str, str],
    errors: dict[str, str],
    subject: str,
    watch_choices: tuple[str, ...],
    more: Link | None,
    alias_choices: tuple[Link, ...],
    run_choices: tuple[Link, ...],
) -> RollbackContext:
    """Everything that the page shows. `briefs` holds every checkpoint that the answer names."""
    used = [
        term for term in TERMS[answer.mode] if any(each.terms.get(term[0]) is not None for each in answer.candidates)
    ]
    good = answer.last_known_good
    newest = max((brief for brief in briefs.values()), key=lambda brief: (brief.attempt, brief.step), default=None)
    return RollbackContext(
        answer=Answer(answer.sentence, "good" if answer.candidates else "warn"),
        run_choices=run_choices,
        alias_choices=alias_choices,
        subject=subject,
        fields=fields,
        watch_choices=watch_choices,
        more=more,
        onset=_onset_facts(answer.onset),
        plot=_plot(answer, briefs, fields),
        watched=_watched_rows(answer, briefs),
        last_known_good=ref_of(briefs[good.id]) if good else None,
        candidates=tuple(_row(each, used, briefs, newest) for each in answer.candidates),
        term_names=tuple(name for _, name, _ in used),
        excluded=tuple(
            ExcludedRow(ref_of(briefs[each.checkpoint.id]), _filter(each.filter), each.reason)
            for each in answer.excluded
        ),
        excluded_counts=tuple(Fact(_filter(name), filters.grouped(n)) for name, n in answer.excluded_counts.items()),
        assumptions=answer.assumptions,
        command=_where(answer),
        alias_to_move=fields["alias"] or None,
        errors=errors,
    )


def _filter(name: str) -> str:
    return FILTERS.get(name, filters.words(name))


def _row(
    each: Candidate, used: list[tuple[str, str, Shown]], briefs: Mapping[int, Brief], newest: Brief | None
) -> CandidateRow:
    identity = to_text(each.checkpoint.id)
    compare = None
    if newest is not None and newest.id != each.checkpoint.id:
        compare = address("/compare", baseline=identity, candidate=to_text(newest.id))
    terms = tuple(_term(each, *term) for term in used)
    return CandidateRow(each.rank, ref_of(briefs[each.checkpoint.id]), terms, each.reasons, compare)


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


def _where(answer: RollbackAnswer) -> Command | None:
    if not answer.candidates:
        return None
    copy = answer.candidates[0].copy
    host = f" (on {copy.host})" if copy.host else ""
    return Command(f"Load it from its copy on {copy.tier} storage{host}:", copy.uri, "path")


def _onset_facts(watched: WatchedOnset | None) -> tuple[Fact, ...]:
    if watched is None:
        return ()
    facts = [Fact("watched", watched.watch.words, ", ".join(watched.made_of))]
    onset = watched.onset
    if onset is None:
        return tuple(facts)
    if onset.after_step is not None and onset.by_step is not None and onset.is_established:
        between = f"after step {filters.grouped(onset.after_step)}, by {filters.grouped(onset.by_step)}"
        facts += [Fact("onset", between), Fact("shape", onset.shape)]
    if onset.drop is not None and onset.is_established:
        facts.append(Fact("fall", filters.in_points(onset.drop, onset.drop_stderr, signed=False)))
    facts.append(Fact("probability of no fall", filters.number(onset.p_no_change, 2)))
    return tuple(facts)


def _plot(answer: RollbackAnswer, briefs: Mapping[int, Brief], fields: Mapping[str, str]) -> Plot | None:
    watched = answer.onset
    if watched is None or not watched.points:
        return None
    kept = thin_indexes([each.checkpoint.step for each in watched.points], [each.value for each in watched.points])
    points = tuple(
        Point(float(each.checkpoint.step), each.value, each.stderr, f"/checkpoints/{to_text(each.checkpoint.id)}")
        for each in (watched.points[place] for place in kept)
    )
    run = watched.points[-1].checkpoint.run
    marks = [Mark("checkpoint", float(each.checkpoint.step), f"candidate {each.rank}") for each in answer.candidates]
    if answer.last_known_good is not None:
        marks.append(Mark("good", float(answer.last_known_good.step), "last known good"))
    onset = watched.onset
    bands: tuple[Band, ...] = ()
    if onset is not None and onset.is_established and onset.after_step is not None and onset.by_step is not None:
        bands = (Band(float(onset.after_step), float(onset.by_step), "where the fall began"),)
    chart = LineChart(
        "onset",
        f"{watched.watch.words} over steps",
        (Series(watched.watch.words, points, colour_of(to_text(run.id))),),
        y_label="normalised score, larger is better",
        marks=tuple(marks),
        bands=bands,
        x_log=crowded_at_start([int(point.x) for point in points]),
    )
    kinds = tuple(kind for kind in ("checkpoint", "good") if any(mark.kind == kind for mark in marks))
    band = " The shaded range is where the fall began." if bands else ""
    caption = f"Bars are ± one standard error; 0 is guessing, 1 perfect; diamonds are candidates.{band}"
    href = address("/rollback.csv", **{name: value for name, value in fields.items() if value})
    return Plot(chart, caption, href, "#watched", kinds)


def _watched_rows(answer: RollbackAnswer, briefs: Mapping[int, Brief]) -> tuple[WatchedRow, ...]:
    if answer.onset is None:
        return ()
    return tuple(
        WatchedRow(ref_of(briefs[each.checkpoint.id]), each.value, each.stderr, each.p_bad)
        for each in answer.onset.points[: -SHOWN_POINTS - 1 : -1]
    )
