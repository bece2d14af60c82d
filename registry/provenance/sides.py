"""What is recorded of checkpoints that are compared: each a side, and the bodies that several of them share."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.checkpoints.errors import CheckpointNotFound
from registry.checkpoints.rows import CheckpointIdentity, RunName
from registry.ids import to_text
from registry.models import Attempt, Checkpoint, CodeVersion, Config, DataVersion, Environment, Layout, Project, Run
from registry.provenance.config_diff import Scalar
from registry.provenance.data_seen import Mix, read_mixes
from registry.provenance.late import config_of, environment_of
from registry.provenance.past import Past, Place, read_past
from registry.snapshots import CodeSpec, flatten
from registry.upsert import chunks

CACHED_BODIES = 64  # configs that are kept flattened: what a digest names never changes


@dataclass(frozen=True, slots=True)
class Side:
    """One checkpoint with what was recorded of it; what it did not say itself it has from its attempt or run."""

    identity: CheckpointIdentity
    project_id: int
    model_family: str | None
    parameter_count: int | None
    tokens_seen: int | None
    config_id: int | None
    config_whose: str  # attempt or run, where it was recorded after the checkpoint
    environment_id: int | None
    environment_whose: str
    layout: Layout | None
    data_version: DataVersion | None
    code: CodeSpec | None
    attempt_changes: str | None
    place: Place


@dataclass(frozen=True, slots=True)
class Recorded:
    """What some sides share, by id: configs and environments flattened, mixes; and what the sides came from."""

    configs: Mapping[int, Mapping[str, Scalar]] = field(default_factory=dict)
    environments: Mapping[int, Mapping[str, Scalar]] = field(default_factory=dict)
    past: Past = field(default_factory=Past)
    mixes: Mapping[int, Mix] = field(default_factory=dict)


Pair = tuple[Side, Side]


def read_sides(session: Session, checkpoint_ids: Sequence[int]) -> dict[int, Side]:
    """The sides by id; one statement for each 500. Raises CheckpointNotFound."""
    own = (Checkpoint.project_id, Checkpoint.id)
    query = (
        select(Checkpoint, Project.name, Run, Attempt, Layout, DataVersion, CodeVersion)
        .join(Project, Project.id == Checkpoint.project_id)
        .join(Run, (Run.project_id == own[0]) & (Run.id == Checkpoint.run_id))
        .join(Attempt, (Attempt.project_id == own[0]) & (Attempt.id == Checkpoint.attempt_id))
        .outerjoin(Layout, (Layout.project_id == own[0]) & (Layout.id == Checkpoint.layout_id))
        .outerjoin(DataVersion, (DataVersion.project_id == own[0]) & (DataVersion.id == Checkpoint.data_version_id))
        .outerjoin(CodeVersion, (CodeVersion.project_id == own[0]) & (CodeVersion.id == Checkpoint.code_version_id))
    )
    found = {
        row[0].id: _side(*row)
        for chunk in chunks(dict.fromkeys(checkpoint_ids))
        for row in session.execute(query.where(Checkpoint.id.in_(chunk)))
    }
    for wanted in checkpoint_ids:
        if wanted not in found:
            raise CheckpointNotFound(f"There is no checkpoint {to_text(wanted)}. GET /api/v1/checkpoints lists them.")
    return found


def _side(
    checkpoint: Checkpoint,
    project: str,
    run: Run,
    attempt: Attempt,
    layout: Layout | None,
    data: DataVersion | None,
    code: CodeVersion | None,
) -> Side:
    config = config_of(checkpoint.config_id, attempt, run)
    environment = environment_of(checkpoint.environment_id, attempt)
    return Side(
        identity=CheckpointIdentity(
            id=checkpoint.id,
            project=project,
            run=RunName(checkpoint.run_id, run.name),
            attempt=checkpoint.attempt_number,
            step=checkpoint.step,
            kind=checkpoint.kind,
            saved_at=checkpoint.saved_at,
        ),
        project_id=checkpoint.project_id,
        model_family=run.model_family,
        parameter_count=run.parameter_count,
        tokens_seen=checkpoint.tokens_seen,
        config_id=config.id,
        config_whose=config.whose,
        environment_id=environment.id,
        environment_whose=environment.whose,
        layout=layout,
        data_version=data,
        code=None if code is None else CodeSpec(code.commit, code.dirty, code.diff_digest, code.remote),
        attempt_changes=attempt.changes,
        place=Place(
            *(checkpoint.id, checkpoint.project_id, checkpoint.attempt_id, checkpoint.step, checkpoint.tokens_seen),
            *(data, attempt.resumed_from_step is not None, attempt.resumed_from_checkpoint_id),
        ),
    )


def read_recorded(session: Session, pairs: Sequence[Pair]) -> Recorded:
    """What the sides of these pairs share: four statements for any number of pairs, more where they have parents."""
    sides = list({side.identity.id: side for pair in pairs for side in pair}.values())
    past = read_past(session, [each.place for each in sides])
    found = (place.data_version for place in past.places.values())
    versions = {version.id: version for version in found if version is not None}
    differing = [
        [(side.project_id, getattr(side, name)) for pair in pairs if _differ(pair, name) for side in pair]
        for name in ("config_id", "environment_id")
    ]
    return Recorded(
        _bodies(session, Config, differing[0]),
        _bodies(session, Environment, differing[1]),
        past,
        read_mixes(session, list(versions.values())),
    )


def _differ(pair: Pair, name: str) -> bool:
    ids = [getattr(side, name) for side in pair]
    return None not in ids and ids[0] != ids[1]


def _bodies(session: Session, table: Any, sides: Iterable[tuple[int, int]]) -> dict[int, Mapping[str, Scalar]]:
    """The flattened objects by id."""
    wanted = dict.fromkeys(sides)
    found: dict[int, Mapping[str, Scalar]] = {}
    for chunk in chunks(wanted):
        query = select(table.id, table.body).where(
            table.project_id.in_({project for project, _ in chunk}), table.id.in_({each for _, each in chunk})
        )
        found.update((identity, flat_body(body)) for identity, body in session.execute(query))
    return found


@lru_cache(maxsize=CACHED_BODIES)
def flat_body(body: bytes) -> Mapping[str, Scalar]:
    """Dotted paths and values of a stored object."""
    return dict(flatten(strict_json.unpack(body)))
