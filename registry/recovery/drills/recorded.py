"""What is recorded around a checkpoint that a drill is held against: the loss, the layout, the software."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.db import join_number
from registry.models import Attempt, Checkpoint, Environment, SeriesChunk
from registry.recovery.drills.compare import Recorded
from registry.recovery.losses import decode
from registry.series import LOSS_NAMES
from registry.wording import listed

NEIGHBOURS: Final = 64  # points before and after the checkpoint that its noise is measured over
MOST_ATTEMPTS: Final = 10  # newer ones that are looked at
CHUNKS_BEFORE: Final = 8  # they hold a few points each, or thousands
FIRST_STEPS: Final = 100  # a loss beyond says nothing of a cold start
# Libraries that do not compute anything of a training.
BESIDE: Final = frozenset({"cairn-client", "wandb", "mlflow", "mlflow-skinny"})


@dataclass(frozen=True)
class _Continuation:
    """Losses by step of a training that went on from the checkpoint, and whose they are."""

    source: str
    after: Mapping[int, float]


def read_recorded(session: Session, row: Checkpoint, last_step: int) -> list[Recorded]:
    """The loss about a checkpoint, through `last_step`, once for each training that went on from it: the run's live
    path first, then its own attempt and those that resumed from it. One without any where none is recorded."""
    attempt = session.get_one(Attempt, row.attempt_id)
    own = _curve(session, attempt, row.step, last_step)
    past = [own[step] for step in sorted(own) if step <= row.step]
    loss = join_number(row.loss, row.loss_special)
    at = loss if loss is not None else past[-1] if past and max(own) >= row.step else None
    first = _first(session, row)
    found = []
    for each in _continuations(session, row, attempt, own, last_step) or [_Continuation("", {})]:
        come = [each.after[step] for step in sorted(each.after)]
        around = [*past[-NEIGHBOURS:], *come[:NEIGHBOURS]]
        found.append(Recorded(each.after, around, first, each.source, at))
    return found


def _continuations(
    session: Session, row: Checkpoint, attempt: Attempt, own: Mapping[int, float], last_step: int
) -> list[_Continuation]:
    curves = {attempt.id: {step: loss for step, loss in own.items() if step > row.step}}
    later = _later(session, row, attempt)
    for each in later:
        found = _curve(session, each, row.step, last_step)
        start = row.step if each.resumed_from_step is None else max(row.step, each.resumed_from_step)
        curves[each.id] = {step: loss for step, loss in found.items() if step > start}
    continuations = [_live(row, [attempt, *later], curves)]
    for each in (attempt, *(other for other in reversed(later) if other.resumed_from_checkpoint_id == row.id)):
        continuations.append(_Continuation(_named(each, row, superseded=True), curves[each.id]))
    distinct: list[_Continuation] = []
    for one in continuations:
        if one.after and all(one.after != other.after for other in distinct):
            distinct.append(one)
    return distinct


def _later(session: Session, row: Checkpoint, attempt: Attempt) -> Sequence[Attempt]:
    """The newer attempts whose losses after the checkpoint may count: on the live path, or resumed from it."""
    live = Attempt.live_through_step.is_(None) | (Attempt.live_through_step > row.step)
    query = select(Attempt).where(
        Attempt.project_id == row.project_id,
        Attempt.run_id == row.run_id,
        Attempt.id != attempt.id,
        Attempt.number > attempt.number,
        live | (Attempt.resumed_from_checkpoint_id == row.id),
    )
    resumed = Attempt.resumed_from_checkpoint_id == row.id
    found = session.scalars(query.order_by(resumed.desc(), Attempt.number).limit(MOST_ATTEMPTS)).all()
    return sorted(found, key=lambda each: each.number)


def _live(row: Checkpoint, attempts: Sequence[Attempt], curves: Mapping[int, Mapping[int, float]]) -> _Continuation:
    """What the run's live path went on with, attempt after attempt; nothing where the checkpoint is off that path."""
    after: dict[int, float] = {}
    through: list[Attempt] = []
    if _is_live(attempts[0], row.step):
        for each in attempts:
            part = {step: loss for step, loss in curves[each.id].items() if _is_live(each, step)}
            through += [each] if part else []
            after |= part
    if len(through) < 2:
        return _Continuation(_named(through[0], row) if through else "", after)
    return _Continuation(f"attempts {' and '.join(str(each.number) for each in through)}, the run's live path", after)


def _is_live(attempt: Attempt, step: int) -> bool:
    return attempt.live_through_step is None or step <= attempt.live_through_step


def _named(attempt: Attempt, row: Checkpoint, *, superseded: bool = False) -> str:
    name = f"attempt {attempt.number}"
    if attempt.resumed_from_checkpoint_id == row.id:
        name += ", which resumed from it"
    elif attempt.id != row.attempt_id:
        name += ", the run's live path"
    if superseded and attempt.live_through_step is not None:
        at = attempt.live_through_step
        name += f", superseded beyond step {at}" if at >= 0 else ", superseded"
    return name


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
    return (not changed if both else None), listed(changed, 3)


def _by_name(versions: Mapping[str, str]) -> dict[str, str]:
    plain = {re.sub(r"[-_.]+", "-", name.lower()): version for name, version in versions.items()}
    return {name: version for name, version in plain.items() if name not in BESIDE}


def last_of(steps: Sequence[int], at: int) -> int:
    """How far the recorded curve is needed: through the drill's last step, and some points more for its noise."""
    return max([at, *steps]) + NEIGHBOURS
