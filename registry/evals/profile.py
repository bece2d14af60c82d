"""What a checkpoint can do: each capability's percentile among its project's checkpoints, and the scores behind it.

The arrays live in modules that are imported on the first profile asked for.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.checkpoints.errors import CheckpointNotFound
from registry.evals.catalogue import LOWER_METRICS, catalogue
from registry.ids import to_text
from registry.models import Checkpoint, CurrentScore, Run

if TYPE_CHECKING:
    from registry.evals.capability import Ranking
    from registry.evals.columns import Column, ScoreTable
    from registry.evals.percentiles import Booleans


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
    """`not_evaluated`: capabilities without a score here. `unknown`: benchmarks that no capability claims."""

    checkpoint_id: int
    capabilities: tuple[CapabilityStanding, ...]
    not_evaluated: tuple[str, ...]
    unknown: tuple[str, ...]


def profile(session: Session, checkpoint_id: int) -> Profile:
    """The profile of a checkpoint, superseded and pending ones included. Raises CheckpointNotFound."""
    from registry.evals.capability import rank_capability
    from registry.evals.score_table import read_columns, read_table

    project_id = session.scalar(select(Checkpoint.project_id).where(Checkpoint.id == checkpoint_id))
    if project_id is None:
        raise CheckpointNotFound(f"There is no checkpoint {to_text(checkpoint_id)}.")
    columns, metric_ids = read_columns(session, [project_id])
    wanted = [column for column in columns if column.benchmark.capability is not None]
    table = read_table(session, [project_id], wanted, columns, metric_ids, include=checkpoint_id)
    own = _own_scores(session, project_id, checkpoint_id)
    errors = {columns[metric_ids[metric]]: stderr for metric, stderr in own.items() if metric in metric_ids}
    unknown = {each.name for each in errors if each.benchmark.capability is None and each.metric not in LOWER_METRICS}
    names = [each.name for each in catalogue().capabilities]
    if checkpoint_id not in table.checkpoints:
        return Profile(checkpoint_id, (), tuple(names), tuple(sorted(unknown)))
    place = int(table.checkpoints.searchsorted(checkpoint_id))
    peers = _peers(session, project_id, table, place)
    standings = []
    for name in names:
        ranking = rank_capability(table, name)
        if ranking.evaluated[place]:
            of_size = rank_capability(table, name, peers) if peers is not None else None
            standings.append(_standing(table, ranking, of_size, place, errors))
    evaluated = {standing.capability for standing in standings}
    return Profile(
        checkpoint_id,
        tuple(standings),
        tuple(name for name in names if name not in evaluated),
        tuple(sorted(unknown)),
    )


def _own_scores(session: Session, project_id: int, checkpoint_id: int) -> dict[int, float | None]:
    query = select(CurrentScore.score_metric_id, CurrentScore.stderr).where(
        CurrentScore.project_id == project_id, CurrentScore.checkpoint_id == checkpoint_id
    )
    return {row.score_metric_id: row.stderr for row in session.execute(query)}


def _peers(session: Session, project_id: int, table: "ScoreTable", place: int) -> "Booleans | None":
    """Which checkpoints are of the same power-of-two size as this one; None where its size is not known."""
    import numpy as np

    rows = session.execute(select(Run.id, Run.parameter_count).where(Run.project_id == project_id))
    band = {row.id: row.parameter_count.bit_length() for row in rows if row.parameter_count}
    mine = band.get(int(table.runs[place]))
    if mine is None:
        return None
    same = [run for run, size in band.items() if size == mine]
    return np.isin(table.runs, np.array(same, dtype=np.int64))


def _standing(
    table: "ScoreTable",
    ranking: "Ranking",
    of_size: "Ranking | None",
    place: int,
    errors: dict["Column", float | None],
) -> CapabilityStanding:
    known = catalogue().capability(ranking.capability)
    assert known is not None
    ranked = ranking.basis == "percentile"
    sized = of_size is not None and of_size.basis == "percentile"
    return CapabilityStanding(
        capability=known.name,
        title=known.title,
        title_zh=known.title_zh,
        percentile=_or_none(ranking.percentile[place]) if ranked else None,
        percentile_for_size=_or_none(of_size.percentile[place]) if sized and of_size else None,
        composite=_or_none(ranking.composite[place]),
        coverage=round(float(ranking.coverage[place]), 4),
        population_size=ranking.size,
        population_runs=ranking.runs,
        benchmarks=tuple(_scores(table, ranking, place, errors)),
        warning=_warning(ranking, place),
    )


def _scores(
    table: "ScoreTable", ranking: "Ranking", place: int, errors: dict["Column", float | None]
) -> Sequence[ProfileScore]:
    """Those that the percentile rests on first, then the others of the capability; parts only where nothing else."""
    from registry.evals.columns import off_scale

    used = [int(column) for column in ranking.chosen[place] if column >= 0]
    present = [
        number
        for number, column in enumerate(table.columns)
        if column.benchmark.capability == ranking.capability and math.isfinite(table.values[place, number])
    ]
    others = [number for number in present if number not in used and table.columns[number].benchmark.part_of is None]
    found = []
    for number in (*used, *others) or present:
        column, value = table.columns[number], table.values[place, number : number + 1]
        found.append(
            ProfileScore(
                column.name,
                column.metric,
                column.filter,
                float(value[0]),
                errors.get(column),
                _or_none(ranking.ranks[place, number]),
                column.parts,
                bool(table.via[place, number]),
                bool(off_scale(value, column.benchmark)[0]),
            )
        )
    return found


def _warning(ranking: "Ranking", place: int) -> str | None:
    from registry.evals.percentiles import MINIMUM_CHECKPOINTS, MINIMUM_RUNS

    if ranking.basis == "absolute":
        return (
            f"{ranking.size} checkpoints of {ranking.runs} runs are too few for a percentile: "
            f"it takes {MINIMUM_CHECKPOINTS} of {MINIMUM_RUNS}."
        )
    if not math.isfinite(ranking.percentile[place]):
        return "Evaluated on too few of the benchmarks that others were evaluated on to be ranked."
    return None


def _or_none(number: float) -> float | None:
    return round(float(number), 6) if math.isfinite(number) else None
