"""The scores of one checkpoint by capability, as the benchmark table orders them, with where each stands."""

from collections import Counter
from collections.abc import Mapping, Sequence

from registry.evals.catalogue import catalogue
from registry.evals.profile import CapabilityStanding, Profile, ProfileScore
from registry.evals.read import ScoreRow as RecordedScore
from registry.evals.results import EvalResult, Readings
from registry.ids import to_text
from ui import filters
from ui.contexts.checkpoint import CapabilityRow, ScoreRow

Key = tuple[str, str, str]
FEW = 8


def score_groups(
    scores: Sequence[RecordedScore], results: Sequence[EvalResult], readings: Readings, profile: Profile | None
) -> tuple[CapabilityRow, ...]:
    """The scores that count now, grouped: its own `scores`, then those of `results` that only a lossless copy has.

    `profile` None: nobody ranked them. Parts of a benchmark, such as the 57 subjects of mmlu, come after everything
    else as groups of their own; their mean stands among the wholes.
    """
    standings = {each.capability: each for each in profile.capabilities} if profile else {}
    kept = Counter(_key(score) for score in scores)
    groups: dict[str | None, list[ScoreRow]] = {}
    parts: dict[str, list[ScoreRow]] = {}
    own = [_row(score, kept[_key(score)] - 1) for score in scores if score.current]
    for row in (*own, *_lent(results, {_key(row) for row in own})):
        benchmark = readings(row.benchmark, row.metric, row.filter)
        if benchmark.part_of:
            parts.setdefault(benchmark.part_of, []).append(row)
        else:
            groups.setdefault(benchmark.capability, []).append(row)
    for name, standing in standings.items():
        there = {_key(row) for row in groups.get(name, ())}
        means = [_mean(each) for each in standing.benchmarks if each.parts and _key(each) not in there]
        groups.setdefault(name, []).extend(means)
    order = {capability.name: place for place, capability in enumerate(catalogue().capabilities)}
    ordered = sorted(groups.items(), key=lambda item: order.get(item[0] or "", len(order)))
    whole = [_group(name, rows, standings) for name, rows in ordered if rows]
    return (*whole, *(_folded(rows, f"of parts of {name}") for name, rows in sorted(parts.items())))


def _folded(rows: Sequence[ScoreRow], what: str) -> CapabilityRow:
    return CapabilityRow("", None, "", tuple(rows), f"{filters.plural(len(rows), 'score')} {what}")


def _key(score: RecordedScore | ProfileScore | ScoreRow) -> Key:
    return (score.benchmark, score.metric, score.filter)


def _group(name: str | None, rows: Sequence[ScoreRow], standings: Mapping[str, CapabilityStanding]) -> CapabilityRow:
    if name is None:
        if len(rows) > FEW:
            return _folded(rows, "of no capability in the benchmark table")
        return CapabilityRow("Of no capability in the benchmark table", None, "", tuple(rows))
    titles = {capability.name: capability.title for capability in catalogue().capabilities}
    standing = standings.get(name)
    percentile = standing.percentile if standing else None
    return CapabilityRow(titles.get(name, name), percentile, _standing_words(name, standing), tuple(rows))


def _standing_words(name: str, standing: CapabilityStanding | None) -> str:
    """Among whom the percentile is, and on how much it rests; or why there is none."""
    if name == "lm":
        return "the health of the model, not a skill"
    if standing is None:
        return "not ranked here"
    if standing.percentile is None:
        return standing.warning or f"no percentile: only {filters.percent(standing.coverage)} of the benchmarks in use"
    among = f"among {filters.plural(standing.population_size, 'checkpoint')}"
    size = standing.percentile_for_size
    of_size = f", {filters.ordinal(size)} among those of its size" if size is not None else ""
    return f"{among}{of_size}; {filters.percent(standing.coverage)} of the benchmarks in use"


def _row(score: RecordedScore, earlier: int) -> ScoreRow:
    return ScoreRow(
        benchmark=score.benchmark,
        metric=score.metric,
        filter=score.filter,
        value=score.value,
        stderr=score.stderr,
        n_shot=score.n_shot,
        n_samples=score.n_samples,
        version=score.version,
        evaluated_at=score.evaluated_at,
        earlier=earlier,
    )


def _lent(results: Sequence[EvalResult], own: set[Key]) -> list[ScoreRow]:
    """The newest result of a lossless copy for each score that the checkpoint has not itself."""
    newest: dict[Key, EvalResult] = {}
    for each in results:
        if each.via is not None and each.key not in own:
            newest.setdefault(each.key, each)
    return [
        ScoreRow(
            benchmark=each.benchmark,
            metric=each.metric,
            filter=each.filter,
            value=each.value,
            stderr=each.stderr,
            n_shot=each.n_shot,
            n_samples=each.n_samples,
            version=each.version,
            via=f"/checkpoints/{to_text(each.via)}",
        )
        for each in newest.values()
        if each.via is not None
    ]


def _mean(each: ProfileScore) -> ScoreRow:
    """The mean of a benchmark's parts, which nobody recorded as a score."""
    of = "mean of " + filters.plural(each.parts or 0, "part")
    return ScoreRow(
        benchmark=each.benchmark,
        metric=each.metric,
        filter=each.filter,
        value=each.value,
        stderr=each.stderr,
        note=f"{of}, evaluated on a lossless copy" if each.via else of,
    )
