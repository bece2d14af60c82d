"""Two checkpoints side by side: what got worse or better, what changed between them, and which change is suspect."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.orm import Session

from registry.checkpoints.detail import read_identities
from registry.checkpoints.rows import CheckpointIdentity
from registry.evals.results import EvalResult, Readings, results_of
from registry.provenance import late
from registry.provenance.association import PastPair
from registry.provenance.changes import (
    ANOTHER_VERSION,
    DataChanges,
    config_changes,
    data_changes,
    environment_changes,
    not_recorded,
    possible_suspects,
)
from registry.provenance.code_changes import CodeChanges, compare_code
from registry.provenance.config_diff import ConfigChange
from registry.provenance.cuts import with_cuts
from registry.provenance.history import past_pairs
from registry.provenance.paired import find_paired
from registry.provenance.same_weights import of_same_weights
from registry.provenance.score_changes import ScoreChanges, compare_scores
from registry.provenance.sides import Side, read_recorded, read_sides
from registry.provenance.suspect_tests import tests_of
from registry.provenance.suspects import Suspect, rank_suspects, with_tests
from registry.provenance.ways import Way, lineage_suspects, told, way_between

__all__ = [
    "ANOTHER_VERSION",
    "CodeChanges",
    "Comparison",
    "DataChanges",
    "compare_checkpoints",
    "compare_scores",
    "score_changes",
]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that a comparison says. `*_known`: whether each side recorded a config, an environment at all.

    `config_why` and `environment_why` say what is not recorded, and on which side; empty where both are whole.
    `late_why`: whose config or environment was taken, where a side has none of its own.
    `lineage`: how one came from the other, and `lineage_why` the same in words; empty where that is not recorded.
    """

    baseline: CheckpointIdentity
    candidate: CheckpointIdentity
    scores: ScoreChanges
    config_changes: tuple[ConfigChange, ...]
    config_known: tuple[bool, bool]
    config_why: str
    data_changes: DataChanges
    code_changes: CodeChanges
    environment_changes: tuple[ConfigChange, ...]
    environment_known: tuple[bool, bool]
    environment_why: str
    late_why: str
    suspects: tuple[Suspect, ...]
    lineage: Way
    lineage_why: str


def compare_checkpoints(
    session: Session,
    baseline_id: int,
    candidate_id: int,
    history: Iterable[PastPair] | None = None,
    *,
    mirrors: Path | None = None,
) -> Comparison:
    """Compare two checkpoints. Raises CheckpointNotFound.

    Where nothing fell that takes at most ten statements. Suspects are weighed by earlier pairs of the candidate's
    project, or by `history` where it is given. `mirrors`: the folder of code repositories, for what changed in code.
    """
    sides = read_sides(session, [baseline_id, candidate_id])
    old, new = sides[baseline_id], sides[candidate_id]
    recorded = with_cuts(session, read_recorded(session, [(old, new)]), [baseline_id, candidate_id])
    lineage = way_between(recorded.past, baseline_id, candidate_id)
    names = read_identities(session, sorted({each for edge in lineage.edges for each in edge[:2]}))
    scores = _score_changes(session, old, new)
    if lineage.same_weights:
        scores = of_same_weights(scores, baseline_id, candidate_id)
    config = config_changes(old, new, recorded)
    data = data_changes(old, new, recorded)
    code = compare_code(old.code, new.code, mirrors)
    environment = environment_changes(old, new, recorded)
    suspects: list[Suspect] = []
    if scores.fell:
        fallen = scores.fallen_capabilities()
        pair = (baseline_id, candidate_id)
        changes = possible_suspects(old, new, lineage_suspects(lineage, names), config, data, code, environment)
        if history is None:
            history = past_pairs(session, new.project_id, fallen, without=pair, mirrors=mirrors) if changes else ()
        tests = tests_of(session, new.project_id, *pair)
        suspects = with_tests(rank_suspects(changes, fallen, history), tests)
    config_known = (old.config_id is not None, new.config_id is not None)
    environment_known = (old.environment_id is not None, new.environment_id is not None)
    return Comparison(
        baseline=old.identity,
        candidate=new.identity,
        scores=scores,
        config_changes=tuple(config),
        config_known=config_known,
        config_why=not_recorded("config", config_known, config),
        data_changes=data,
        code_changes=code,
        environment_changes=tuple(environment),
        environment_known=environment_known,
        environment_why=not_recorded("environment", environment_known, environment),
        late_why="; ".join(
            filter(
                None,
                (
                    late.told("config", (old.config_whose, new.config_whose)),
                    late.told("environment", (old.environment_whose, new.environment_whose)),
                ),
            )
        ),
        suspects=tuple(suspects),
        lineage=lineage,
        lineage_why=told(lineage, names),
    )


def score_changes(session: Session, baseline_id: int, candidate_id: int) -> ScoreChanges:
    """Only what got worse or better between two checkpoints. Raises CheckpointNotFound."""
    sides = read_sides(session, [baseline_id, candidate_id])
    old, new = sides[baseline_id], sides[candidate_id]
    scores = _score_changes(session, old, new)
    way = way_between(read_recorded(session, [(old, new)]).past, baseline_id, candidate_id)
    return of_same_weights(scores, baseline_id, candidate_id) if way.same_weights else scores


def _score_changes(session: Session, old: Side, new: Side) -> ScoreChanges:
    """Paired where the single results of both are kept, else by their means."""
    ids = list(dict.fromkeys((old.identity.id, new.identity.id)))
    rows: dict[int, list[EvalResult]] = {}
    readings: Readings | None = None
    for project_id in dict.fromkeys((new.project_id, old.project_id)):
        here = [each.identity.id for each in (old, new) if each.project_id == project_id]
        found, readings = results_of(session, project_id, list(dict.fromkeys(here)))
        rows |= found
    assert readings is not None
    paired = find_paired(session, *((each.project_id, each.identity.id) for each in (old, new)))
    return compare_scores(rows[ids[0]], rows[ids[-1]], readings, paired)
