"""A comparison in words and rows: the answer first, then what proves it."""

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from registry.evals.catalogue import catalogue
from registry.evals.normalise import TOP
from registry.evals.project_table import ProjectTable
from registry.ids import to_text
from registry.provenance.compare import ANOTHER_VERSION, CodeChanges, Comparison, DataChanges
from registry.provenance.composites import CapabilityComparison
from registry.provenance.config_diff import ConfigChange
from registry.provenance.score_changes import ScoreComparison
from registry.provenance.suspects import Suspect, standing_out
from ui import filters
from ui.contexts import Answer, CheckpointRef, Fact, Link
from ui.contexts.compare import ChangeRow, CommitRow, CompareContext, MixRow, SuspectRow, VerdictRow
from ui.links import address
from ui.refs import config_text

MOVED = ("regressed", "suspected", "improved")
SHOWN_UNMOVED = 8  # benchmarks that did not move which are shown unasked
SHOWN_SOURCES = 40
SHOWN_COMMITS = 20
LEAST_REACH = 0.01  # half width of the interval column, as a share of the scale: one point
NOTHING_DETECTABLE = "none"  # no change that the scale allows
BETTER = {"lower": "lower is better", "target": "nearer to its target is better"}


def compare_context(
    found: Comparison,
    old: CheckpointRef,
    new: CheckpointRef,
    typed: tuple[str, str],
    table: ProjectTable,
    *,
    every: bool,
) -> CompareContext:
    """Everything that the page shows of a comparison.

    `typed`: the two sides as the URL names them; `table`: how the benchmarks of their projects read.
    """
    scores = found.scores.scores
    shown = scores if every else _leading(scores)
    rows = tuple(_score_row(each, table) for each in shown)
    capabilities = tuple(_capability_row(each) for each in found.scores.capabilities)
    here = {"baseline": typed[0], "candidate": typed[1]}
    config = [_change_row(each) for each in found.config_changes if each.kind != "inert"]
    return CompareContext(
        baseline=old,
        candidate=new,
        answer=compare_answer(found),
        capabilities=capabilities,
        scores=rows,
        show_all=_show_all(here, len(scores) - len(shown), every),
        reach=_reach([*capabilities, *rows]),
        config_changes=tuple(config),
        config_words=_config_words(found),
        inert_changes=len(found.config_changes) - len(config),
        mix=_mix_rows(found.data_changes),
        mix_words=_mix_words(found.data_changes),
        code_words=_code_words(found.code_changes),
        code_files=tuple(ChangeRow(each.path, each.change, each.kind, "", "") for each in found.code_changes.files),
        environment_changes=tuple(_change_row(each) for each in found.environment_changes),
        environment_words=_environment_words(found),
        suspects=tuple(_suspect_row(each) for each in found.suspects),
        log=tuple(
            CommitRow(each.commit[:12], datetime.fromtimestamp(each.at, UTC), each.subject)
            for each in found.code_changes.log[:SHOWN_COMMITS]
        ),
        search=_search_for(found),
        only_baseline=len(found.scores.only_baseline),
        only_candidate=len(found.scores.only_candidate),
        actions=_actions(found, old, new),
        swap_href=address("/compare", baseline=typed[1], candidate=typed[0]),
        csv_href=address("/compare.csv", **here),
    )


def _actions(found: Comparison, old: CheckpointRef, new: CheckpointRef) -> tuple[Link, ...]:
    """What a reader of the comparison goes on to do."""
    links = [Link("After which checkpoint did it fall?", "#search")] if _search_for(found) else []
    return (
        *links,
        Link("Roll the candidate's run back", address("/rollback", run=new.run_id)),
        Link("Where the candidate comes from", f"/checkpoints/{new.id}/provenance"),
        Link("Where the baseline comes from", f"/checkpoints/{old.id}/provenance"),
        Link("Keep this answer", "#keep"),
    )


def _suspect_row(each: Suspect) -> SuspectRow:
    """In words; the figures behind them apart."""
    figures = [
        Fact("prior, assumed", filters.number(each.prior, 2)),
        Fact("size of the change", filters.number(each.magnitude, 2), "0 to 1"),
        Fact("likelihood ratio", filters.number(each.likelihood_ratio, 3), "from earlier pairs; 1 where too few"),
    ]
    past = each.association
    if past is not None:
        counts = past.counts
        figures += [
            Fact("fell with it", f"{counts.a} of {counts.a + counts.b}", "run families, one pair each"),
            Fact("fell without it", f"{counts.c} of {counts.c + counts.d}", "run families, one pair each"),
            Fact("q", filters.number(past.q_value, 2), "Fisher's exact test, corrected over the changes"),
        ]
    tested = each.tested.verdict if each.tested is not None else ""
    return SuspectRow(each.changes, each.strength, each.share, each.reasons, tuple(figures), tested)


def _search_for(found: Comparison) -> dict[str, str] | None:
    """What a search for the checkpoint after which it fell would ask: the benchmark that fell most surely."""
    first = next((each for each in found.scores.scores if each.verdict in ("regressed", "suspected")), None)
    if first is None or found.baseline.project != found.candidate.project:
        return None
    named = {"benchmark": first.benchmark, "metric": first.metric, "filter": first.filter}
    return {"good": to_text(found.baseline.id), "bad": to_text(found.candidate.id), **named}


def compare_answer(found: Comparison | None) -> Answer:
    """What a person wants to know first: what fell, by how much, and what changed most."""
    if found is None:
        return Answer("Two checkpoints side by side: which scores really changed, and what else did.")
    scores = found.scores
    fell = [each for each in scores.capabilities if each.verdict == "regressed"]
    maybe = [each for each in scores.capabilities if each.verdict == "suspected"]
    rose = [each for each in scores.capabilities if each.verdict == "improved"]
    single = [each for each in scores.scores if each.verdict == "regressed"]
    if fell:
        return Answer(f"{_moved(fell, 'fell')}; {_cause(found)}.", "bad", _also(rose, "rose"))
    if single:
        names = _listed([each.benchmark for each in single])
        return Answer(
            f"{names} got worse, though no capability did as a whole; {_cause(found)}.", "bad", _also(rose, "rose")
        )
    if maybe:
        return Answer(f"{_moved(maybe, 'may have fallen')}; {_cause(found)}.", "warn", _also(rose, "rose"))
    if rose:
        return Answer(f"{_moved(rose, 'rose')}; nothing fell beyond its uncertainty.", "good")
    if not scores.scores:
        return Answer(
            "The scores cannot be compared: no benchmark was evaluated on both.", "unknown", _cause_alone(found)
        )
    if all(each.verdict == "not_comparable" for each in scores.scores):
        return Answer("The scores cannot be compared: they were evaluated in different ways.", "unknown")
    return Answer("No score changed beyond its uncertainty.", "plain", _cause_alone(found))


def _title(capability: str) -> str:
    return next((each.title for each in catalogue().capabilities if each.name == capability), capability)


def _moved(rows: Sequence[CapabilityComparison], verb: str) -> str:
    parts = []
    for place, each in enumerate(sorted(rows, key=lambda row: row.delta / (row.stderr or math.inf))[:3]):
        name = _title(each.capability) if place == 0 else _title(each.capability).lower()
        amount = filters.in_points(each.delta, each.stderr, signed=False)
        if each.capability == "lm":  # perplexities are compared as logarithms, which have no points
            amount = f"{filters.number(abs(each.delta), 2)} in −ln of perplexity"
        parts.append(f"{name} {verb} {amount}" if place == 0 else f"{name} {amount}")
    return _listed(parts)


def _also(rows: Sequence[CapabilityComparison], verb: str) -> str:
    return f"{_moved(rows, verb)}." if rows else ""


def _listed(names: Sequence[str]) -> str:
    names = [*names[:3], f"{len(names) - 3} others"] if len(names) > 3 else list(names)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _cause(found: Comparison) -> str:
    """What to look at first: the surest suspect, where one stands out."""
    first = next(iter(standing_out(found.suspects)), None)
    if first is None:
        return "no change stands out" if found.suspects else "no recorded change explains it"
    named = filters.middle(_listed(first.changes), 80)
    if first.changes == ("data_version",):
        data = found.data_changes
        return f"another data version ({data.baseline} → {data.candidate}) is the first suspect"
    if all(change.startswith("data.") for change in first.changes):
        return f"the data mix changed most ({named})"
    return f"{named} is the first suspect"


def _cause_alone(found: Comparison) -> str:
    changes = sum(each.kind != "inert" and each.not_recorded_on is None for each in found.config_changes)
    parts = [f"{filters.plural(changes, 'config value')} {'differs' if changes == 1 else 'differ'}"]
    if found.config_why:
        parts = [*(parts if all(found.config_known) else []), found.config_why]
    data = found.data_changes
    if data.mix.total_variation is not None:
        of = "tokens seen came from other sources" if data.by_lineage else "data mix moved"
        parts.append(f"{filters.percent(data.mix.total_variation)} of the {of}")
    elif data.mix.why.startswith(ANOTHER_VERSION):
        parts.append(data.mix.why)
    else:
        parts.append("the data mix is not known")
    said = "; ".join(parts)
    return f"{said[0].upper()}{said[1:]}."


def _leading(scores: Sequence[ScoreComparison]) -> list[ScoreComparison]:
    moved = [each for each in scores if each.verdict in MOVED]
    others = [each for each in scores if each.verdict not in MOVED]
    return [*moved, *others[: max(0, SHOWN_UNMOVED - len(moved))]]


def _show_all(here: dict[str, str], hidden: int, every: bool) -> Link | None:
    if every:
        return Link("Show only what moved", address("/compare", **here) + "#scores")
    return Link(f"Show the other {hidden}", address("/compare", **here, all="1") + "#scores") if hidden else None


def _reach(rows: Iterable[VerdictRow]) -> float:
    """Half the width of the interval column, in points: it holds all intervals but the widest twentieth."""
    ends = [
        abs(filters.finite(row.delta) or 0.0) + 1.645 * (filters.finite(row.stderr) or 0.0)
        for row in rows
        if row.in_points
    ]
    return max([LEAST_REACH, *sorted(ends)[: max(1, math.ceil(len(ends) * 0.95))]])


def _score_row(each: ScoreComparison, table: ProjectTable) -> VerdictRow:
    scale = table.for_metric(each.benchmark, each.metric, each.filter).scale
    drawn, error = _drawn(each, scale)
    return VerdictRow(
        name=each.benchmark,
        metric=", ".join(filter(None, (each.metric, each.filter, BETTER.get(each.direction, "")))),
        baseline=filters.number(each.baseline),
        candidate=filters.number(each.candidate),
        delta=drawn,
        stderr=error,
        in_points=scale in TOP,
        delta_text=_raw_difference(each.delta, each.stderr, scale),
        p_value=each.p_value,
        q_value=each.q_value,
        minimum_detectable=_raw_size(each.minimum_detectable, scale) if each.detects else NOTHING_DETECTABLE,
        verdict=each.verdict,
        why=each.why_in_points if each.verdict in ("not_comparable", "suspected") or each.q_value is None else "",
        method=f"{each.method}; {each.why_in_points}" if each.q_value is not None else each.method,
        capability=each.capability or "",
    )


def _drawn(each: ScoreComparison, scale: str) -> tuple[float | None, float | None]:
    """(difference, standard error) for the drawn interval, which points the way that the number beside it does.

    As a share of the scale; a score without a top, as a perplexity, by its logarithm.
    """
    if each.delta is None or each.normalised is None:
        return None, None
    top = TOP.get(scale)
    if top is not None:
        return each.delta / top, None if each.stderr is None else each.stderr / top
    return math.copysign(each.normalised, each.delta), each.normalised_stderr


def _raw_difference(delta: float | None, stderr: float | None, scale: str) -> str:
    """In points where the scale is a fraction; a metric with another scale says its difference as it is."""
    if scale == "fraction":
        return filters.in_points(delta, stderr).removesuffix(" points")
    return filters.delta(delta, stderr)


def _raw_size(value: float | None, scale: str) -> str:
    if value is None:
        return filters.MISSING
    return filters.fixed(value * 100, 1) if scale == "fraction" else filters.number(value, 2)


def _capability_row(each: CapabilityComparison) -> VerdictRow:
    points = each.capability != "lm"  # perplexities are compared as logarithms, which have no points
    return VerdictRow(
        name=_title(each.capability),
        metric=filters.plural(len(each.benchmarks), "benchmark") + ("" if points else ", −ln of perplexity"),
        baseline=filters.fixed(each.baseline * 100, 1) if points else filters.number(each.baseline),
        candidate=filters.fixed(each.candidate * 100, 1) if points else filters.number(each.candidate),
        delta=each.delta,
        stderr=each.stderr,
        in_points=points,
        delta_text=filters.in_points(each.delta, each.stderr).removesuffix(" points")
        if points
        else filters.delta(each.delta, each.stderr),
        p_value=each.p_value,
        q_value=each.q_value,
        minimum_detectable=_raw_size(each.minimum_detectable, "fraction" if points else "log")
        if each.detects
        else NOTHING_DETECTABLE,
        verdict=each.verdict,
        why="",
        method=each.why_in_points,
    )


def _change_row(each: ConfigChange) -> ChangeRow:
    def shown(value: Any, missing: bool) -> str:
        return filters.MISSING if missing else filters.middle(config_text(value), 200)

    unknown = each.not_recorded_on
    return ChangeRow(
        each.path,
        each.change if unknown is None else f"not recorded on the {unknown}",
        each.kind,
        shown(each.old, each.change == "added"),
        shown(each.new, each.change == "removed"),
    )


def _config_words(found: Comparison) -> str:
    if found.config_why:
        return f"Unknown: {found.config_why}."
    return "" if found.config_changes else "No config value differs."


def _environment_words(found: Comparison) -> str:
    if found.environment_why:
        return f"Unknown: {found.environment_why}."
    return "" if found.environment_changes else "No recorded value differs."


def _mix_rows(data: DataChanges) -> tuple[MixRow, ...]:
    return tuple(
        MixRow(each.source, each.old_share, each.new_share, each.jensen_shannon_bits, each.old_tokens, each.new_tokens)
        for each in data.mix.sources[:SHOWN_SOURCES]
    )


def _mix_words(data: DataChanges) -> str:
    same = data.baseline == data.candidate and data.baseline is not None
    names = f"Both used {data.baseline}. " if same else ""
    names = names or f"{data.baseline or 'Not recorded'} → {data.candidate or 'not recorded'}. "
    note = f" {data.note[0].upper()}{data.note[1:]}." if data.note else ""
    mix = data.mix
    if mix.total_variation is None or mix.jensen_shannon_bits is None:
        if mix.why.startswith(ANOTHER_VERSION):
            return f"{mix.why[0].upper()}{mix.why[1:]}.{note}"
        why = mix.why or "a mix is not recorded"
        return f"{names}How the mixes differ is unknown: {why}.{note}"
    left_out = len(mix.sources) - SHOWN_SOURCES
    more = f" The {SHOWN_SOURCES} sources that moved most are shown; {left_out} moved less." if left_out > 0 else ""
    divergence = f"Jensen-Shannon {filters.number(mix.jensen_shannon_bits, 3)} bits"
    variation = f"total variation {filters.number(mix.total_variation, 3)}"
    moved = "tokens seen came from other sources" if data.by_lineage else "mix moved"
    past = (
        " What was seen before a side resumed from another checkpoint is counted as it was." if data.by_lineage else ""
    )
    return (
        f"{names}{filters.percent(mix.total_variation)} of the {moved} ({variation}, {divergence}).{past}{note}{more}"
    )


def _code_words(code: CodeChanges) -> str:
    old, new = (commit[:12] if commit else "no commit" for commit in code.commits)
    verdict = {"same": "The same", "known": f"{filters.plural(len(code.files), 'file')} changed", "unknown": "Unknown"}
    named = "" if code.commits == (None, None) else f" ({old} → {new})"
    return f"{verdict[code.status]}{named}: {code.why}." if code.why else f"{verdict[code.status]}{named}."
