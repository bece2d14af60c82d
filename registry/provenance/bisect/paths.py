"""The checkpoints on the way from a good one to a bad one that came from it: over attempts, runs and merges."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.errors import FieldError, Invalid
from registry.ids import to_text
from registry.models import Attempt, Checkpoint, LineageEdge, Piece, Replica
from registry.types import CheckpointState, Kind, PieceName, Presence
from registry.upsert import chunks

MAX_HOPS = 1_000  # attempts that are followed back
MAX_POINTS = 10_000


class NotOnOnePath(Invalid):
    code = "bisect-not-on-one-path"
    title = "The two checkpoints are not on one path"


def path_between(session: Session, project_id: int, good_id: int, bad_id: int) -> list[int]:
    """Ids from good to bad, both included, in the order of training. Raises NotOnOnePath.

    Followed is what the bad one's attempt saved before it, then what that attempt loaded (or its first checkpoint
    came from), and so on until the good one. Where several parents were merged, the way that meets the good one.
    """
    good = session.get_one(Checkpoint, good_id)
    todo: list[tuple[int, list[int]]] = [(bad_id, [])]
    been: set[int] = set()
    while todo and len(been) < MAX_HOPS:
        here_id, after = todo.pop()
        here = session.get_one(Checkpoint, here_id)
        if here.attempt_id in been:
            continue
        been.add(here.attempt_id)
        segment = _saved_until(session, here)
        if here.attempt_id == good.attempt_id and good.step <= here.step and good_id != here_id:
            whole = [each for each, step in segment if step > good.step]
            return _checked([good_id, *whole, *after], bad_id)
        ids = [each for each, _ in segment]
        for parent in reversed(_came_from(session, here, ids)):
            if parent == good_id:
                return _checked([good_id, *ids, *after], bad_id)
            todo.append((parent, [*ids, *after]))
    message = f"{to_text(bad_id)} does not come from {to_text(good_id)} by any recorded way"
    told = f"There is nothing to search between: {message}. The good one comes first: are the two the wrong way round?"
    raise NotOnOnePath(told, errors=[FieldError("/bad", message)])


def _checked(path: list[int], bad_id: int) -> list[int]:
    if path[-1] != bad_id:
        path.append(bad_id)
    if len(path) > MAX_POINTS:
        message = f"{len(path):,} checkpoints lie on the way; at most {MAX_POINTS:,} are searched: choose nearer ends"
        raise NotOnOnePath(f"The way is too long: {message}.", errors=[FieldError("/good", message)])
    return path


def _saved_until(session: Session, here: Checkpoint) -> list[tuple[int, int]]:
    """(id, step) of what the attempt saved up to a checkpoint, in order; of two at a step the archive, or the end."""
    query = (
        select(Checkpoint.id, Checkpoint.step, Checkpoint.kind)
        .where(
            Checkpoint.project_id == here.project_id,
            Checkpoint.attempt_id == here.attempt_id,
            Checkpoint.step <= here.step,
            Checkpoint.state == CheckpointState.COMMITTED.value,
        )
        .order_by(Checkpoint.step)
        .limit(MAX_POINTS + 1)
    )
    by_step: dict[int, tuple[int, str]] = {}
    for identity, step, kind in session.execute(query):
        if step not in by_step or kind == Kind.ARCHIVE:
            by_step[step] = (identity, kind)
    by_step[here.step] = (here.id, here.kind)
    return [(identity, step) for step, (identity, _) in sorted(by_step.items())]


def _came_from(session: Session, here: Checkpoint, segment: Sequence[int]) -> list[int]:
    """What the attempt loaded, and the recorded parents of what it saved; else the end of the attempt before it."""
    attempt = session.get_one(Attempt, here.attempt_id)
    found = [] if attempt.resumed_from_checkpoint_id is None else [attempt.resumed_from_checkpoint_id]
    own = set(segment)
    for chunk in chunks(segment):
        query = select(LineageEdge.parent_id).where(
            LineageEdge.project_id == here.project_id,
            LineageEdge.parent_project_id == here.project_id,
            LineageEdge.child_id.in_(chunk),
        )
        found += [each for each in session.scalars(query) if each not in own]
    if found or attempt.restart or attempt.number == 1 or attempt.resumed_from_step is not None:
        return list(dict.fromkeys(found))
    earlier = (
        select(Checkpoint.id)
        .where(
            Checkpoint.project_id == here.project_id,
            Checkpoint.run_id == here.run_id,
            Checkpoint.attempt_number < attempt.number,
            Checkpoint.step < here.step,
            Checkpoint.state == CheckpointState.COMMITTED.value,
        )
        .order_by(Checkpoint.attempt_number.desc(), Checkpoint.step.desc())
        .limit(1)
    )
    return list(session.scalars(earlier))


def restorable(session: Session, project_id: int, ids: Sequence[int]) -> dict[int, str]:
    """Where weights of a checkpoint can be loaded from, by id: an address of a present copy that is not corrupt."""
    found: dict[int, str] = {}
    for chunk in chunks(ids):
        lost = select(Piece.checkpoint_id).where(
            Piece.project_id == project_id,
            Piece.checkpoint_id.in_(chunk),
            Piece.name == PieceName.WEIGHTS.value,
            Piece.presence == Presence.ABSENT.value,
        )
        query = (
            select(Replica.checkpoint_id, Replica.uri)
            .join(Checkpoint, (Checkpoint.project_id == Replica.project_id) & (Checkpoint.id == Replica.checkpoint_id))
            .where(
                Replica.project_id == project_id,
                Replica.checkpoint_id.in_(chunk),
                Replica.checkpoint_id.not_in(lost),
                Replica.state == "present",
                Replica.verification != "corrupt",
                Checkpoint.state == CheckpointState.COMMITTED.value,
            )
            .order_by(Replica.tier.desc(), Replica.id)
        )
        for identity, uri in session.execute(query):
            found.setdefault(identity, uri)
    return found
