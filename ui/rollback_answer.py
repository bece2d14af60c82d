"""A rollback's answer as rows and a plot: the sentence, the figures behind each rank, what was left out and why."""

import json
from collections.abc import Callable, Mapping, Sequence

from registry.ids import to_text
from registry.overview.briefs import Brief
from registry.recovery.answers import Candidate, RollbackAnswer, SpikeFound, WatchedOnset
from registry.recovery.eligible import IN_WORDS, LOOSEN
from ui import filters
from ui.charts import Band, LineChart, Mark, Point, Series, colour_of
from ui.charts.thin import thin_indexes
from ui.contexts import Answer, Command, Fact, Link, Plot
from ui.contexts.rollback import CandidateRow, ExcludedRow, RollbackContext, WatchedRow
from ui.curves import crowded_at_start
from ui.links import address
from ui.refs import ref_of
from ui.words import grouped_steps, long_spans

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
        ("lower_bound", "at least (95%), points", POINTS),
        ("composite", "composite, points", POINTS),
        ("p_ok", "P(restores)", filters.percent),
        ("restore_minutes", "restore", MINUTES),
        ("p_bad", "P(bad)", filters.percent),
    ),
}


# What to do about the filter that leaves out most, in the words of the page's form; the others as the domain says.
LOOSER = {
    "time": "take other days in ‘Saved from’ and ‘Saved before’",
    "step": "raise ‘At or before step’",
    "pieces": "record the pieces of the checkpoints, or ask for production, which needs weights only",
    "condition": "loosen what is asked ‘Also, in words’",
    "unscored": "evaluate the newest checkpoints, or watch nothing",
    "p_bad": "evaluate the newest of them again, or watch nothing",
    "rto": "allow more time in ‘Restore within’, or record the sizes of the copies",
}


def rollback_context(
    answer: RollbackAnswer,
    briefs: Mapping[int, Brief],
    *,
    fields: dict[str, str],
    days: dict[str, str],
    errors: dict[str, str],
    subject: Link,
    watch_choices: tuple[str, ...],
    more: Link | None,
    alias_choices: tuple[Link, ...],
    run_choices: tuple[Link, ...],
) -> RollbackContext:
    """Everything that the page shows. `briefs` holds every checkpoint that the answer names.

    `days` are the fields that a form shows as a day, '' where they are none.
    """
    used = [
        term for term in TERMS[answer.mode] if any(each.terms.get(term[0]) is not None for each in answer.candidates)
    ]
    good = answer.last_known_good
    newest = max((brief for brief in briefs.values()), key=lambda brief: (brief.attempt, brief.step), default=None)
    common = _common_reasons(answer.candidates)
    return RollbackContext(
        answer=_answer(answer),
        run_choices=run_choices,
        alias_choices=alias_choices,
        subject=subject,
        fields=fields | days,
        watch_choices=watch_choices,
        more=more,
        onset=_onset_facts(answer.onset),
        plot=_plot(answer, briefs, {name: text for name, text in fields.items() if name not in errors}),
        watched=_watched_rows(answer, briefs),
        last_known_good=ref_of(briefs[good.id]) if good else None,
        candidates=tuple(_row(each, used, briefs, newest, common) for each in answer.candidates),
        common_reasons=tuple(long_spans(grouped_steps(text)) for text in common),
        term_names=tuple(name for _, name, _ in used),
        excluded=tuple(
            ExcludedRow(
                ref_of(briefs[each.checkpoint.id], suspect=each.filter == "suspect"),
                filter_in_words(each.filter),
                grouped_steps(each.reason),
            )
            for each in answer.excluded
        ),
        excluded_counts=tuple(
            Fact(filter_in_words(name), filters.grouped(n)) for name, n in answer.excluded_counts.items()
        ),
        assumptions=answer.assumptions,
        command=_where(answer),
        alias_to_move=fields["alias"] or None,
        spike=_spike_facts(answer.spike),
        spike_rewind=ref_of(briefs[answer.spike.rewind_to.id]) if answer.spike and answer.spike.rewind_to else None,
        spike_command=_new_attempt(answer.spike),
        watch_form=_watch_form(fields),
        errors=errors,
        actions=_actions(answer, fields),
    )


def _actions(answer: RollbackAnswer, fields: Mapping[str, str]) -> tuple[Link, ...]:
    """The evidence around the question: what interrupted the run, and where the first candidate can be loaded."""
    links = []
    if answer.candidates:
        first = to_text(answer.candidates[0].checkpoint.id)
        links.append(Link("Where and how to restore it", f"/checkpoints/{first}#restore"))
        links.append(Link("Where it comes from", f"/checkpoints/{first}/provenance"))
    if fields["run"]:
        links.append(Link("Interruptions of this run", address("/incidents", run=fields["run"])))
        links.append(Link("Findings on this run", address("/findings", run=fields["run"])))
    return (*links, Link("Keep this answer", "#keep"))


def _answer(answer: RollbackAnswer) -> Answer:
    """Where to go back to comes first; what fell or spiked, and since when, is its detail."""
    said = _sentence(answer)
    if not answer.candidates:
        return Answer(said, "warn")
    if answer.spike is not None and not answer.spike.spike.recovered:
        return Answer(said, "good")  # it says to rewind, and what to leave out
    before, go_back, where = said.partition("Go back to ")
    return Answer(f"{go_back}{where}", "good", before.strip()) if go_back else Answer(said, "good")


def _sentence(answer: RollbackAnswer) -> str:
    """The domain's sentence; where nothing is left, with the page's own words for the filter to loosen."""
    said = grouped_steps(answer.sentence)
    if answer.candidates or not answer.excluded_counts:
        return said
    name = next(iter(answer.excluded_counts))
    return f"{said.partition('To loosen that: ')[0]}To loosen that: {LOOSER.get(name) or LOOSEN[name]}."


def _common_reasons(candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """The reasons that every one of several candidates has: said once, below the table."""
    if len(candidates) < 2:
        return ()
    return tuple(text for text in candidates[0].reasons if all(text in each.reasons for each in candidates))


def filter_in_words(name: str) -> str:
    """The hard filter of a rollback, as a reader of the page would say it."""
    return IN_WORDS.get(name, filters.words(name))


def _row(
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


def _where(answer: RollbackAnswer) -> Command | None:
    if not answer.candidates:
        return None
    copy = answer.candidates[0].copy
    host = f" (on {copy.host})" if copy.host else ""
    return Command(f"Load it from its copy on {copy.tier} storage{host}:", copy.uri, "path")


def _spike_facts(found: SpikeFound | None) -> tuple[Fact, ...]:
    if found is None:
        return ()
    spike = found.spike
    facts = [
        Fact("steps", f"{filters.grouped(spike.from_step)} to {filters.grouped(spike.to_step)}"),
        Fact("loss", f"{filters.number(spike.level, 3)} to {filters.number(spike.peak, 3)}", found.curve),
        Fact("shape", spike.shape),
        Fact("came back", "by itself" if spike.recovered else "not yet"),
    ]
    if found.rewind_to is not None:
        skipped = ", ".join(f"{filters.grouped(start)} to {filters.grouped(end)}" for start, end in found.skip)
        facts.append(Fact("data to skip", f"steps {skipped}"))
    return tuple(facts)


def _new_attempt(found: SpikeFound | None) -> Command | None:
    """What the new attempt sends, so that the run remembers what it left out, and why."""
    if found is None or found.attempt is None:
        return None
    run = to_text(found.rewind_to.run.id) if found.rewind_to is not None else ""
    body = json.dumps(found.attempt, ensure_ascii=False)
    text = (
        f"curl -X POST $CAIRN_URL/api/v1/runs/{run}/attempts \\\n"
        '  -H "Authorization: Bearer $CAIRN_TOKEN" -H "Content-Type: application/json" \\\n'
        f"  -d '{body}'"
    )
    return Command("The new attempt says what it loads, which data it skips, and why:", text)


def _watch_form(fields: Mapping[str, str]) -> dict[str, str]:
    """The fields of a standing watch of what the question is about."""
    subject = {"alias": fields["alias"]} if fields["alias"] else {"run": fields["run"]}
    return subject | {"watch": fields["watch"] or ("" if fields["alias"] else "the loss")}


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
        y_label="normalised score",
        marks=tuple(marks),
        bands=bands,
        x_log=crowded_at_start([int(point.x) for point in points]),
    )
    kinds = tuple(kind for kind in ("checkpoint", "good") if any(mark.kind == kind for mark in marks))
    band = " The shaded range is where the fall began." if bands else ""
    caption = (
        f"Bars are ± one standard error; 0 is guessing, 1 perfect, larger is better; diamonds are candidates.{band}"
    )
    href = address("/rollback.csv", **{name: value for name, value in fields.items() if value})
    return Plot(chart, caption, href, "#watched", kinds)


def _watched_rows(answer: RollbackAnswer, briefs: Mapping[int, Brief]) -> tuple[WatchedRow, ...]:
    if answer.onset is None:
        return ()
    return tuple(
        WatchedRow(ref_of(briefs[each.checkpoint.id]), each.value, each.stderr, each.p_bad)
        for each in answer.onset.points[: -SHOWN_POINTS - 1 : -1]
    )
