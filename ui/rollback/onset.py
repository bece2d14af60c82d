"""Since when the watched score fell: facts, plot and table; and a loss that spiked."""

import json
import math
from collections.abc import Mapping

from registry.ids import to_text
from registry.overview.briefs import Brief
from registry.recovery.answers import RollbackAnswer, SpikeFound, WatchedOnset
from registry.recovery.spikes import Spike
from registry.wording import listed
from ui import filters
from ui.charts import Band, LineChart, Mark, Point, Series, colour_of
from ui.charts.thin import thin_indexes
from ui.contexts import Command, Fact, Plot
from ui.contexts.rollback import WatchedRow
from ui.curves import crowded_at_start
from ui.links import address
from ui.refs import ref_of

SHOWN_POINTS = 200  # evaluated checkpoints in the table, the newest first; the CSV has all


def spike_facts(found: SpikeFound | None) -> tuple[Fact, ...]:
    if found is None:
        return ()
    spike = found.spike
    facts = [
        Fact("steps", f"{filters.grouped(spike.from_step)} to {filters.grouped(spike.to_step)}"),
        Fact("loss", _height(spike), found.curve),
        Fact("shape", spike.shape),
        Fact("came back", "by itself" if spike.recovered else "not yet"),
    ]
    if found.skip:
        skipped = ", ".join(f"{filters.grouped(start)} to {filters.grouped(end)}" for start, end in found.skip)
        facts.append(Fact("data to skip", f"steps {skipped}"))
    return tuple(facts)


def _height(spike: Spike) -> str:
    """From the level before to the peak; 'not finite' where either is no number."""
    ends = [f"{filters.number(each, 3)}" if math.isfinite(each) else "not finite" for each in (spike.level, spike.peak)]
    return " to ".join(dict.fromkeys(ends))


def new_attempt(found: SpikeFound | None) -> Command | None:
    """What the new attempt sends, so that the run remembers what it left out, and why."""
    if found is None or found.attempt is None:
        return None
    body = json.dumps(found.attempt, ensure_ascii=False)
    text = (
        f"curl -X POST $CAIRN_URL/api/v1/runs/{to_text(found.run_id)}/attempts \\\n"
        '  -H "Authorization: Bearer $CAIRN_TOKEN" -H "Content-Type: application/json" \\\n'
        f"  -d '{body}'"
    )
    says = ["what it loads" if found.rewind_to is not None else "that it starts again"]
    says += ["which data it skips"] if found.skip else []
    return Command(f"The new attempt says {listed([*says, 'why'])}:", text)


def onset_facts(watched: WatchedOnset | None) -> tuple[Fact, ...]:
    if watched is None:
        return ()
    facts = [Fact("watched", watched.watch.words, ", ".join(watched.made_of))]
    if watched.why:
        facts.append(Fact("left out", watched.why))
    onset = watched.onset
    if onset is None:
        return tuple(facts)
    if onset.alone:
        steps = ", ".join(filters.grouped(step) for step in onset.alone)
        facts.append(Fact("stands alone", f"step {steps}: evaluate it again"))
    if onset.after_step is not None and onset.by_step is not None and onset.is_established:
        between = f"after step {filters.grouped(onset.after_step)}, by {filters.grouped(onset.by_step)}"
        facts += [Fact("onset", between), *([Fact("shape", onset.shape)] if onset.found_by == "scores" else [])]
    if onset.drop is not None and onset.is_established:
        facts.append(Fact("fall", filters.in_points(onset.drop, onset.drop_stderr, signed=False)))
    if onset.found_by != "scores":
        facts.append(Fact("found by", {"bisect": "a bisect", "comparison": "two checkpoints compared"}[onset.found_by]))
    elif not math.isnan(onset.p_no_change):
        facts.append(Fact("chance that nothing fell", filters.number(onset.p_no_change, 2)))
    return tuple(facts)


def plot_of(answer: RollbackAnswer, briefs: Mapping[int, Brief], fields: Mapping[str, str]) -> Plot | None:
    watched = answer.onset
    if watched is None or not watched.points:
        return None
    steps = [each.checkpoint.step for each in watched.points]
    odd = [place for place, step in enumerate(steps) if step in watched.alone]
    kept = sorted({*thin_indexes(steps, [each.value for each in watched.points]), *odd})
    points = tuple(
        Point(float(each.checkpoint.step), each.value, each.stderr, f"/checkpoints/{to_text(each.checkpoint.id)}")
        for each in (watched.points[place] for place in kept)
    )
    run = watched.points[-1].checkpoint.run
    marks = [Mark("checkpoint", float(each.checkpoint.step), f"candidate {each.rank}") for each in answer.candidates]
    marks += [Mark("checkpoint", float(step), "stands alone: evaluate it again") for step in watched.alone]
    if answer.last_known_good is not None and answer.speaks_for_going_back:
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
    diamonds = " and the scores that stand alone" if watched.alone else ""
    band = " The shaded range is where the fall began." if bands else ""
    caption = (
        "Bars are ± one standard error; 0 is guessing, 1 perfect, larger is better; diamonds are candidates"
        f"{diamonds}.{band}"
    )
    href = address("/rollback.csv", **{name: value for name, value in fields.items() if value})
    return Plot(chart, caption, href, "#watched", kinds)


def watched_rows(answer: RollbackAnswer, briefs: Mapping[int, Brief]) -> tuple[WatchedRow, ...]:
    if answer.onset is None:
        return ()
    return tuple(
        WatchedRow(
            ref_of(briefs[each.checkpoint.id]),
            *(each.value, each.stderr, each.p_bad),
            each.checkpoint.step in answer.onset.alone,
        )
        for each in answer.onset.points[: -SHOWN_POINTS - 1 : -1]
    )
