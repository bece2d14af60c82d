"""A fall between two checkpoints, and where between them it lies, as a rollback speaks of it."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from sqlalchemy.orm import Session

from registry.evals.catalogue import catalogue, key_of
from registry.evals.percentiles import Floats, Integers
from registry.evals.significance import REGRESSED
from registry.provenance.bisect import Target
from registry.provenance.compare import score_changes
from registry.recovery.onset import SAFE, Onset

Found = tuple[Onset, Floats | None]  # what was found, and P(already bad) along the path


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """The live path by step. `runs`: the run of each; `names`: 'project/run' by its id."""

    project_id: int
    ids: Integers
    steps: Integers
    runs: Integers
    names: Mapping[int, str]

    def command(self, after: int, by: int) -> str:
        ends = [
            f"{self.names[int(self.runs[place])]}@{step}"
            for step, place in ((step, int(np.searchsorted(self.steps, step))) for step in (after, by))
        ]
        return f"`cairn why {' '.join(map(shlex.quote, ends))} --bisect`"

    def has_between(self, after: int, by: int) -> bool:
        return bool(((self.steps > after) & (self.steps < by)).any())


@dataclass(frozen=True, slots=True)
class Fall:
    """The newer of two checkpoints against the older, on the common scale, where below 0 is worse."""

    delta: float
    stderr: float
    q_value: float
    is_proven: bool

    @property
    def words(self) -> str:
        """How far it is below."""
        return f"{100 * -self.delta:.1f} ± {100 * self.stderr:.1f} points (q = {self.q_value:.2g})"


def compared(session: Session, baseline_id: int, candidate_id: int, target: Target) -> Fall | None:
    """The two checkpoints in what is meant, as a comparison of all their scores says; None where it cannot."""
    changes = score_changes(session, baseline_id, candidate_id)
    if target.capability is not None:
        known = catalogue().capability(target.capability)
        name = known.name if known is not None else target.capability
        composite = next((each for each in changes.capabilities if each.capability == name), None)
        if composite is None:
            return None
        return Fall(composite.delta, composite.stderr, composite.q_value, composite.verdict == REGRESSED)
    for row in changes.scores:  # the surest fall first
        if row.normalised is None or row.normalised_stderr is None or row.q_value is None:
            continue
        if _is_meant(row.benchmark, row.metric, row.filter, target):
            return Fall(row.normalised, row.normalised_stderr, row.q_value, row.verdict == REGRESSED)
    return None


def _is_meant(benchmark: str, metric: str, filter: str, target: Target) -> bool:
    named = target.benchmark is not None and is_same(benchmark, target.benchmark)
    return named and target.metric in (None, metric) and target.filter in (None, filter)


def is_same(benchmark: str, other: str) -> bool:
    entry = catalogue().get(other)
    return key_of(benchmark) in {key_of(other), key_of(entry.name) if entry is not None else ""}


def fallen(
    steps: Integers, chances: Floats, fall: Fall, gap: tuple[int, int], told: str, by: str, bisect_id: int | None = None
) -> Onset:
    good = int(steps[int(np.flatnonzero(chances <= SAFE)[-1])])
    return Onset(
        steps=tuple(steps.tolist()),
        p_no_change=float("nan"),
        p_bad=tuple(chances.tolist()),
        is_established=True,
        shape="unclear",
        drop=-fall.delta,
        drop_stderr=fall.stderr,
        after_step=gap[0],
        by_step=gap[1],
        last_known_good=good,
        sentence=f"{told} Step {good} is the last known good.",
        found_by=by,
        q_value=fall.q_value,
        bisect_id=bisect_id,
    )
