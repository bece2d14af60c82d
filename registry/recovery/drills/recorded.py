"""What is recorded around a checkpoint that a drill is held against: the loss, the layout, the software."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.db import join_number
from registry.models import Attempt, Checkpoint, Environment, SeriesChunk
from registry.recovery.drills.compare import Recorded
from registry.recovery.losses import decode
from registry.series import LOSS_NAMES

NEIGHBOURS: Final = 64  # points before and after the checkpoint that its noise is measured over
CHUNKS_BEFORE: Final = 8  # they hold a few points each, or thousands
FIRST_STEPS: Final = 100  # a loss beyond says nothing of a cold start
# Libraries that do not compute anything of a training.
BESIDE: Final = frozenset({"cairn-client", "wandb", "mlflow", "mlflow-skinny"})


def read_recorded(session: Session, row: Checkpoint, last_step: int) -> Recorded:
    """The loss about a checkpoint, through `last_step`: of its own attempt, else of one that resumed from it."""
    attempt = session.get_one(Attempt, row.attempt_id)
    own = _curve(session, attempt, row.step, last_step)
    after = {step: value for step, value in own.items() if step > row.step}
    source = f"attempt {attempt.number}"
    for other in () if after else _resumed(session, row):
        after = {step: value for step, value in _curve(session, other, row.step, last_step).items() if step > row.step}
        if after:
            source = f"attempt {other.number}, which resumed from it"
            break
    past = [own[step] for step in sorted(own) if step <= row.step]
    come = [after[step] for step in sorted(after)]
    loss = join_number(row.loss, row.loss_special)
    at = loss if loss is not None else past[-1] if past and max(own) >= row.step else None
    around = [*past[-NEIGHBOURS:], *come[:NEIGHBOURS]]
    return Recorded(after, around, _first(session, row), source, at)


def _resumed(session: Session, row: Checkpoint) -> Sequence[Attempt]:
    query = select(Attempt).where(
        Attempt.project_id == row.project_id,
        Attempt.resumed_from_checkpoint_id == row.id,
        Attempt.run_id == row.run_id,
    )
    return session.scalars(query.order_by(Attempt.number).limit(10)).all()


def _first(session: Session, row: Checkpoint) -> list[float]:
    """The losses that the run began with; none where it began from another run's checkpoint."""
    query = select(Attempt).where(Attempt.project_id == row.project_id, Attempt.run_id == row.run_id)
    begun = session.scalars(query.order_by(Attempt.number).limit(1)).one()
    if begun.resumed_from_step is not None:
        return []
    most = min(FIRST_STEPS, row.step // 2)
    found = _curve(session, begun, 0, most)
    return [found[step] for step in sorted(found) if step <= most]


def _curve(session: Session, attempt: Attempt, around: int, last: int) -> dict[int, float]:
    """The likeliest loss of an attempt, from a few chunks before `around` through `last`."""
    mine = (SeriesChunk.project_id == attempt.project_id, SeriesChunk.attempt_id == attempt.id)
    names = set(session.scalars(select(SeriesChunk.name).where(*mine, SeriesChunk.name.in_(LOSS_NAMES)).distinct()))
    name = next((each for each in LOSS_NAMES if each in names), None)
    if name is None:
        return {}
    before = select(SeriesChunk.first_step).where(*mine, SeriesChunk.name == name, SeriesChunk.first_step <= around)
    start = min(session.scalars(before.order_by(SeriesChunk.first_step.desc()).limit(CHUNKS_BEFORE)), default=0)
    query = (
        select(SeriesChunk.body)
        .where(*mine, SeriesChunk.name == name, SeriesChunk.first_step <= last, SeriesChunk.last_step >= start)
        .order_by(SeriesChunk.arrival)
    )
    found: dict[int, float] = {}
    for body in session.scalars(query):
        steps, values = decode(body)
        found.update(zip(steps.tolist(), values.tolist(), strict=True))
    return found


def read_software(session: Session, row: Checkpoint) -> dict[str, str]:
    """Name to version, of the environment that the checkpoint was saved in; else of its attempt's."""
    query = (
        select(Environment.body)
        .join(Attempt, Attempt.id == row.attempt_id)
        .where(Environment.id == func.coalesce(row.environment_id, Attempt.environment_id))
    )
    body = session.scalars(query).one_or_none()
    return {} if body is None else _versions(strict_json.unpack(body))


def _versions(environment: Any) -> dict[str, str]:
    """What an environment says of libraries: under `libraries`, as the recorder writes it, else at its top."""
    if not isinstance(environment, dict):
        return {}
    listed = environment.get("libraries")
    named = listed if isinstance(listed, dict) else environment
    return {name: version for name, version in named.items() if isinstance(version, str)}


def same_software(recorded: Mapping[str, str], now: Mapping[str, str]) -> tuple[bool | None, str]:
    """(whether every library that both name has one version; None: they name none together, what differs)."""
    then, today = _by_name(recorded), _by_name(now)
    both = then.keys() & today.keys()
    changed = [f"{name} {then[name]} to {today[name]}" for name in sorted(both) if then[name] != today[name]]
    return (not changed if both else None), _listed(changed)


def _by_name(versions: Mapping[str, str]) -> dict[str, str]:
    plain = {re.sub(r"[-_.]+", "-", name.lower()): version for name, version in versions.items()}
    return {name: version for name, version in plain.items() if name not in BESIDE}


def _listed(words: Collection[str]) -> str:
    shown = list(words)[:3]
    return ", ".join(shown) + (f" and {len(words) - 3} more" if len(words) > 3 else "")


def last_of(steps: Sequence[int], at: int) -> int:
    """How far the recorded curve is needed: through the drill's last step, and some points more for its noise."""
    return max([at, *steps]) + NEIGHBOURS
