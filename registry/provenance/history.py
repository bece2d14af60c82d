"""Earlier pairs of checkpoints of a project: what changed between the two, and which capabilities fell.

A pair is a scored checkpoint and the one before it: the checkpoint that it came from (resumed, fine-tuned), else the
last scored one of the same run. Of each run family the pairs in which something recorded changed come first, the
newest before the others. A family is a model family where the runs name one, else the runs that came from each other.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from registry.evals.results import results_of
from registry.models import Attempt, Checkpoint, CurrentScore, LineageEdge, Run
from registry.provenance.association import PastPair
from registry.provenance.changes import config_changes, data_changes, environment_changes, possible_suspects
from registry.provenance.code_changes import compare_code
from registry.provenance.score_changes import compare_scores
from registry.provenance.sides import read_recorded, read_sides
from registry.provenance.suspects import Change
from registry.provenance.ways import lineage_suspects, way_between
from registry.types import LOSSLESS
from registry.upsert import chunks

MOST_SCORED: Final = 5_000  # newest scored checkpoints that are looked at
MOST_PAIRS: Final = 100
MOST_OF_A_FAMILY: Final = 6
MOST_CACHED: Final = 5_000


@dataclass(frozen=True, slots=True)
class _Scored:
    """A scored checkpoint, with what tells at little cost whether anything recorded differs from another."""

    id: int
    run_id: int
    attempt: int
    step: int
    family: str
    arrival: int  # of its newest score
    recorded: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a pair shows: the keys that changed, and what fell among what was comparable."""

    changed: frozenset[str]
    fell: frozenset[str]
    compared: frozenset[str]


_CHILD, _PARENT = aliased(Checkpoint), aliased(Checkpoint)  # made once: it takes milliseconds
_Key = tuple[int, int, int, int]
_outcomes: "OrderedDict[_Key, _Outcome]" = OrderedDict()
_lock = threading.Lock()


def past_pairs(
    session: Session,
    project_id: int,
    capabilities: Sequence[str],
    *,
    without: tuple[int, int],
    mirrors: Path | None = None,
) -> list[PastPair]:
    """Earlier pairs of the project in which one of `capabilities` was comparable; all but the pair `without`.

    The outcome of a pair is remembered until a new score of one of the two arrives.
    """
    scored = _scored(session, project_id)
    pairs = [pair for pair in _chosen(session, project_id, scored) if not {each.id for each in pair} & set(without)]
    outcomes = _outcomes_of(session, project_id, pairs, mirrors)
    wanted = set(capabilities)
    return [
        PastPair(new.family, outcome.changed, bool(outcome.fell & wanted))
        for (_, new), outcome in zip(pairs, outcomes, strict=True)
        if outcome.compared & wanted
    ]


def _scored(session: Session, project_id: int) -> dict[int, _Scored]:
    newest = (
        select(CurrentScore.checkpoint_id, func.max(CurrentScore.arrival).label("arrival"))
        .where(CurrentScore.project_id == project_id)
        .group_by(CurrentScore.checkpoint_id)
        .order_by(func.max(CurrentScore.arrival).desc())
        .limit(MOST_SCORED)
        .subquery()
    )
    query = (
        select(
            *(Checkpoint.id, Checkpoint.run_id, Checkpoint.attempt_number, Checkpoint.step, newest.c.arrival),
            *(Run.model_family, Checkpoint.config_id, Checkpoint.data_version_id, Checkpoint.code_version_id),
            *(Checkpoint.environment_id, Checkpoint.layout_id),
        )
        .join(newest, newest.c.checkpoint_id == Checkpoint.id)
        .join(Run, (Run.project_id == Checkpoint.project_id) & (Run.id == Checkpoint.run_id))
        .where(Checkpoint.project_id == project_id)
    )
    rows = session.execute(query).all()
    home = _Families(session, project_id)
    return {
        row[0]: _Scored(row[0], row[1], row[2], row[3], row[5] or f"run {home(row[1])}", row[4], tuple(row[6:]))
        for row in rows
    }


class _Families:
    """Run id to the least run id of its family."""

    def __init__(self, session: Session, project_id: int) -> None:
        self._home: dict[int, int] = {}
        own = Checkpoint.project_id == project_id
        resumed = (
            select(Attempt.run_id, Checkpoint.run_id)
            .join(Checkpoint, (Checkpoint.id == Attempt.resumed_from_checkpoint_id) & own)
            .where(Attempt.project_id == project_id, Attempt.run_id != Checkpoint.run_id)
        )
        linked = (
            select(_CHILD.run_id, _PARENT.run_id)
            .select_from(LineageEdge)
            .join(_CHILD, (_CHILD.project_id == LineageEdge.project_id) & (_CHILD.id == LineageEdge.child_id))
            .join(_PARENT, (_PARENT.project_id == LineageEdge.project_id) & (_PARENT.id == LineageEdge.parent_id))
            .where(LineageEdge.project_id == project_id, _CHILD.run_id != _PARENT.run_id)
            .distinct()
        )
        for query in (resumed, linked):
            for left, right in session.execute(query):
                self._join(left, right)

    def __call__(self, run_id: int) -> int:
        while (above := self._home.get(run_id, run_id)) != run_id:
            run_id = above
        return run_id

    def _join(self, left: int, right: int) -> None:
        least, other = sorted((self(left), self(right)))
        self._home[other] = least


def _chosen(session: Session, project_id: int, scored: dict[int, _Scored]) -> list[tuple[_Scored, _Scored]]:
    """At most MOST_PAIRS pairs, those of a family in the order in which they count."""
    families: dict[str, list[tuple[bool, int, _Scored, _Scored]]] = {}
    for old, new in _all_pairs(session, project_id, scored):
        families.setdefault(new.family, []).append((old.recorded == new.recorded, -new.arrival, old, new))
    chosen: list[tuple[_Scored, _Scored]] = []
    newest_first = sorted(families.values(), key=lambda pairs: min(order for _, order, _, _ in pairs))
    for pairs in newest_first:
        pairs.sort(key=lambda each: each[:2])
        chosen += [(old, new) for _, _, old, new in pairs[:MOST_OF_A_FAMILY]]
    return chosen[:MOST_PAIRS]


def _all_pairs(session: Session, project_id: int, scored: dict[int, _Scored]) -> Iterator[tuple[_Scored, _Scored]]:
    parents = _parents(session, project_id, scored)
    last: dict[int, _Scored] = {}
    for new in sorted(scored.values(), key=lambda each: (each.run_id, each.attempt, each.step)):
        before = last.get(new.run_id)
        first_of_attempt = before is None or before.attempt != new.attempt
        named = [scored[each] for each in parents.get(new.id, ()) if each in scored] if first_of_attempt else []
        for old in named or ([before] if before is not None else []):
            yield old, new
        last[new.run_id] = new


def _parents(session: Session, project_id: int, scored: Iterable[int]) -> dict[int, list[int]]:
    """What scored checkpoints came from: recorded edges that train, and what their attempts loaded."""
    found: dict[int, list[int]] = {}
    for chunk in chunks(scored):
        edges = select(LineageEdge.child_id, LineageEdge.parent_id).where(
            LineageEdge.project_id == project_id,
            LineageEdge.child_id.in_(chunk),
            LineageEdge.relation.not_in([relation.value for relation in LOSSLESS]),
        )
        loaded = (
            select(Checkpoint.id, Attempt.resumed_from_checkpoint_id)
            .join(Attempt, (Attempt.project_id == Checkpoint.project_id) & (Attempt.id == Checkpoint.attempt_id))
            .where(
                Checkpoint.project_id == project_id,
                Checkpoint.id.in_(chunk),
                Attempt.resumed_from_checkpoint_id.is_not(None),
            )
        )
        for query in (edges, loaded):
            for child, parent in session.execute(query):
                if parent is not None:
                    found.setdefault(child, []).append(parent)
    return found


def _outcomes_of(
    session: Session, project_id: int, pairs: Sequence[tuple[_Scored, _Scored]], mirrors: Path | None
) -> list[_Outcome]:
    keys: list[_Key] = [(old.id, new.id, old.arrival, new.arrival) for old, new in pairs]
    with _lock:
        known = {key: _outcomes[key] for key in keys if key in _outcomes}
    missing = [key for key in keys if key not in known]
    if missing:
        known |= dict(zip(missing, _computed(session, project_id, missing, mirrors), strict=True))
        with _lock:
            _outcomes.update((key, known[key]) for key in missing)
            while len(_outcomes) > MOST_CACHED:
                _outcomes.popitem(last=False)
    return [known[key] for key in keys]


def _computed(session: Session, project_id: int, keys: Sequence[_Key], mirrors: Path | None) -> list[_Outcome]:
    ids = list(dict.fromkeys(each for old, new, _, _ in keys for each in (old, new)))
    sides = read_sides(session, ids)
    recorded = read_recorded(session, [(sides[old], sides[new]) for old, new, _, _ in keys])
    results, readings = results_of(session, project_id, ids)
    outcomes = []
    for old_id, new_id, _, _ in keys:
        old, new = sides[old_id], sides[new_id]
        scores = compare_scores(results[old_id], results[new_id], readings)
        changes: list[Change] = possible_suspects(
            old,
            new,
            lineage_suspects(way_between(recorded.past, old_id, new_id), {}),
            config_changes(old, new, recorded),
            data_changes(old, new, recorded),
            compare_code(old.code, new.code, mirrors),
            environment_changes(old, new, recorded),
        )
        outcomes.append(
            _Outcome(
                frozenset(change.key for change in changes),
                frozenset(scores.fallen_capabilities()),
                frozenset(each.capability for each in scores.capabilities),
            )
        )
    return outcomes
