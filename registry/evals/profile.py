"""What a checkpoint can do: each capability's percentile among its project's checkpoints, and the scores behind it.

The arrays live in modules that are imported on the first profile asked for.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.checkpoints.errors import CheckpointNotFound
from registry.evals.catalogue import LOWER_METRICS, catalogue
from registry.evals.references import PROJECT, find_reference
from registry.ids import to_text
from registry.models import Checkpoint, CurrentScore, Run
from registry.wording import counted

if TYPE_CHECKING:
    from registry.evals.capability import Place, Ranking
    from registry.evals.columns import Column
    from registry.evals.population.table import Part, Population, Ranked


@dataclass(frozen=True, slots=True)
class ProfileScore:
    """A score of a capability. `parts`: the mean of so many subtasks; `via`: that of a lossless copy.

    `off_scale`: not a figure of the benchmark's scale, so it is shown and not used.
    """

    benchmark: str
    metric: str
    filter: str
    value: float
    stderr: float | None
    percentile: float | None
    parts: int
    via: bool
    off_scale: bool


@dataclass(frozen=True, slots=True)
class CapabilityStanding:
    """`percentile` (0 to 1): among the `population_size` live checkpoints of the project, None where not evaluated or
    where those are too few; `percentile_for_size`: among those within a power of two of parameters. `composite`: the
    chance-normalised mean. `coverage`: the share of the project's benchmarks of this capability.
    """

    capability: str
    title: str
    title_zh: str
    percentile: float | None
    percentile_for_size: float | None
    composite: float | None
    coverage: float
    population_size: int
    population_runs: int
    benchmarks: tuple[ProfileScore, ...]
    warning: str | None


@dataclass(frozen=True, slots=True)
class Profile:
    """`not_evaluated`: capabilities without a score here. `unknown`: benchmarks that no capability claims.

    `population`: whom percentiles are among; `reference` says in words which published figures those are.
    """

    checkpoint_id: int
    capabilities: tuple[CapabilityStanding, ...]
    not_evaluated: tuple[str, ...]
    unknown: tuple[str, ...]
    population: str = PROJECT
    reference: str | None = None


def profile(session: Session, checkpoint_id: int, population: str = PROJECT) -> Profile:
    """The profile of a checkpoint, superseded and pending ones included. Raises CheckpointNotFound, UnknownPopulation.

    `population`: whom percentiles are among, the project's checkpoints or a reference ('reference:pythia').
    """
    from registry.evals.population.against import Against
    from registry.evals.population.keeping import population_of

    project_id = session.scalar(select(Checkpoint.project_id).where(Checkpoint.id == checkpoint_id))
    if project_id is None:
        raise CheckpointNotFound(f"There is no checkpoint {to_text(checkpoint_id)}.")
    reference = find_reference(population)
    kept = population_of(session, [project_id])
    errors = _own_errors(session, project_id, checkpoint_id, kept)
    mine = [kept.columns[place] for place in errors]
    unknown = {each.name for each in mine if each.benchmark.capability is None and each.metric not in LOWER_METRICS}
    known = {each.benchmark.capability for each in mine}
    names = [each.name for each in catalogue().capabilities]
    asked = [name for name in names if name in known]
    row = kept.row_of(checkpoint_id)
    words = None if reference is None else reference.words
    if row is None or not asked:  # registered this moment: it has no score that counts yet
        return Profile(checkpoint_id, (), tuple(names), tuple(sorted(unknown)), population, words)
    kept.load(session, kept.places_of(asked))
    table: Ranked = kept if reference is None else Against(kept, reference)
    peers = _peers(session, kept, row) if reference is None else None
    found = [_standing(table, name, peers, row, errors) for name in asked if _is_evaluated(table, name, row)]
    missing = tuple(name for name in names if name not in {each.capability for each in found})
    return Profile(checkpoint_id, tuple(found), missing, tuple(sorted(unknown)), population, words)


def _own_errors(
    session: Session, project_id: int, checkpoint_id: int, population: "Population"
) -> dict[int, float | None]:
    """The columns in which the checkpoint has a score, with the standard error of each."""
    query = select(CurrentScore.score_metric_id, CurrentScore.stderr).where(
        CurrentScore.project_id == project_id, CurrentScore.checkpoint_id == checkpoint_id
    )
    places = population.head.metric_ids
    return {places[metric]: stderr for metric, stderr in session.execute(query) if metric in places}


def _is_evaluated(table: "Ranked", capability: str, row: int) -> bool:
    return any(math.isfinite(table.values(place)[row]) for place in table.places_of([capability]))


def _peers(session: Session, population: "Population", row: int) -> "Part | None":
    """The checkpoints of the same power-of-two size as this one; None where its size is not known."""
    import numpy as np

    rows = session.execute(select(Run.id, Run.parameter_count).where(Run.project_id.in_(population.project_ids)))
    band = {row.id: row.parameter_count.bit_length() for row in rows if row.parameter_count}
    mine = band.get(int(population.rows.run_ids[row]))
    if mine is None:
        return None
    same = np.array(sorted(run for run, size in band.items() if size == mine), dtype=np.int64)
    return population.narrowed(("size", mine), np.isin(population.rows.run_ids, same))


def _standing(
    table: "Ranked", capability: str, peers: "Part | None", row: int, errors: dict[int, float | None]
) -> CapabilityStanding:
    known = catalogue().capability(capability)
    assert known is not None
    ranking = table.ranking(capability)
    stands = ranking.at(table, row)
    return CapabilityStanding(
        capability=known.name,
        title=known.title,
        title_zh=known.title_zh,
        percentile=_or_none(stands.percentile) if ranking.basis == "percentile" else None,
        percentile_for_size=_among(peers, capability, int(table.checkpoints[row])),
        composite=_or_none(stands.composite),
        coverage=round(stands.coverage, 4),
        population_size=ranking.size,
        population_runs=ranking.runs,
        benchmarks=tuple(_scores(table, capability, stands.chosen, row, errors)),
        warning=_warning(table, ranking, stands, row),
    )


def _among(peers: "Part | None", capability: str, checkpoint_id: int) -> float | None:
    if peers is None:
        return None
    ranking, row = peers.ranking(capability), peers.row_of(checkpoint_id)
    assert row is not None  # it is of its own size
    return _or_none(ranking.at(peers, row).percentile) if ranking.basis == "percentile" else None


def _scores(
    table: "Ranked", capability: str, used: Sequence[int], row: int, errors: dict[int, float | None]
) -> Sequence[ProfileScore]:
    """Those that the percentile rests on first, then the others of the capability; parts only where nothing else."""
    from registry.evals.columns import off_scale

    present = [place for place in table.places_of([capability]) if math.isfinite(table.values(place)[row])]
    others = [place for place in present if place not in used and table.columns[place].benchmark.part_of is None]
    found = []
    for place in (*used, *others) or present:
        column, value = table.columns[place], table.values(place)[row : row + 1]
        via = table.via(place)
        found.append(
            ProfileScore(
                column.name,
                column.metric,
                column.filter,
                float(value[0]),
                errors.get(place),
                _or_none(table.ranks(place)[row]),
                column.parts,
                via is not None and bool(via[row]),
                bool(off_scale(value, column.benchmark)[0]),
            )
        )
    return found


def _warning(table: "Ranked", ranking: "Ranking", stands: "Place", row: int) -> str | None:
    from registry.evals.percentiles import MINIMUM_CHECKPOINTS, MINIMUM_RUNS

    if ranking.basis == "absolute":
        return (
            f"{counted(ranking.size, 'checkpoint')} of {counted(ranking.runs, 'run')} "
            f"{'is' if ranking.size == 1 else 'are'} too few for a percentile: "
            f"it takes {MINIMUM_CHECKPOINTS} of {MINIMUM_RUNS} runs."
        )
    if not math.isfinite(stands.percentile):
        few = "Evaluated on too few of the benchmarks that others were evaluated on to be ranked."
        return " ".join([few, *_other_metrics(table, ranking, row)])
    return None


def _other_metrics(table: "Ranked", ranking: "Ranking", row: int) -> Iterator[str]:
    """For each benchmark that the checkpoint has by another metric than those that are ranked: which ones these are."""
    for members, usable in zip(ranking.families, ranking.usable, strict=True):
        own = [place for place in members if place not in usable and math.isfinite(table.values(place)[row])]
        for column, other in ((table.columns[own[0]], table.columns[usable[0]]) for _ in own[:1] if usable):
            yield (
                f"Its {column.name} is recorded {_metric_words(column)}, and that of others {_metric_words(other)}: "
                "two metrics are never compared."
            )


def _metric_words(column: "Column") -> str:
    return f"as {'.'.join(filter(None, (column.metric, column.filter)))}" if column.metric else "without a metric"


def _or_none(number: float) -> float | None:
    return round(float(number), 6) if math.isfinite(number) else None
