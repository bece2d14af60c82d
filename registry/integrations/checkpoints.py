"""Bringing a tracker's models and artifacts into the registry as checkpoints, with their scores.

One that is here already (recorded by its training, or by an earlier import) is met at its step: only what is missing is
added. What cannot become a checkpoint is given back with the reason.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from registry.checkpoints.commands import BatchItem, register_batch
from registry.db import now, split_number
from registry.errors import RegistryError
from registry.evals.scores import record_scores
from registry.ids import from_text
from registry.integrations.registrations import (
    Found,
    Key,
    Usable,
    aliases_tag,
    aliases_text,
    metrics_of,
    registration_of,
    scores_of,
)
from registry.integrations.shapes import Skipped
from registry.models import Attempt, Checkpoint, CheckpointMetric, CheckpointTag
from registry.models import TrackerCheckpoint as Known
from registry.types import INT64_MAX
from registry.upsert import chunks, insert_missing


@dataclass
class Counts:
    """What came of checkpoints. `created` and `scores` count what was new."""

    created: int = 0
    met: int = 0
    scores: int = 0
    skipped: list[Skipped] = field(default_factory=list)


def runs_with_new_steps(session: Session, project_id: int, all_found: Sequence[Found]) -> set[int]:
    """The runs of which a checkpoint would be made."""
    keys = {
        (found.applied.run_id, each.step) for found in all_found for each in found.checkpoints if each.step is not None
    }
    return {run_id for run_id, _ in keys - set(_at_steps(session, project_id, keys))}


def apply_checkpoints(session: Session, project_id: int, project: str, all_found: Sequence[Found]) -> Counts:
    """Register what is missing, add what is new to the rest, and remember which is which there."""
    counts = Counts()
    known = _known(session, project_id, all_found)
    usable = [
        each for found in all_found for each in _usable(found, known, _made_here(session, project_id, found), counts)
    ]
    at = _at_steps(session, project_id, {each.key for each in usable})
    fresh: dict[Key, Usable] = {}
    for each in usable:
        if each.key not in at and each.place not in known:
            fresh.setdefault(each.key, each)
    made = _register(session, project, list(fresh.values()), counts)
    ids = {each.place: _id_of(each, known, at, made) for each in usable}
    there = [(each, number) for each in usable if (number := ids[each.place]) is not None]
    old = [(each, number) for each, number in there if made.get(each.key) != number]
    counts.met += len(old)
    rows = [_row(project_id, each, number) for each, number in there if each.place not in known]
    insert_missing(session, Known, rows)
    _add_metrics(session, project_id, [(number, metrics_of(each)) for each, number in old])
    for kind in {found.run.kind for found in all_found}:
        aliases = {number: each.checkpoint.aliases for each, number in old if each.found.run.kind == kind}
        _follow_aliases(session, project_id, aliases_tag(kind), aliases)
    scored = [(number, score) for each, number in old for score in scores_of(each)]
    counts.scores += record_scores(session, project_id, scored)
    return counts


def _id_of(each: Usable, known: Mapping[tuple[int, str], int], *others: Mapping[Key, int]) -> int | None:
    return known.get(each.place) or next((by_key[each.key] for by_key in others if each.key in by_key), None)


def _known(session: Session, project_id: int, all_found: Sequence[Found]) -> dict[tuple[int, str], int]:
    """The checkpoints that were read before or told there, by link and id there."""
    known: dict[tuple[int, str], int] = {}
    for chunk in chunks(found.applied.link.id for found in all_found):
        for row in session.scalars(select(Known).where(Known.project_id == project_id, Known.link_id.in_(chunk))):
            known[row.link_id, row.external_id] = row.checkpoint_id
    return known


def _made_here(session: Session, project_id: int, found: Found) -> set[str]:
    """Which of the tracker's records this registry made itself, of a checkpoint that it still has."""
    ids = {from_text(each.cairn_id): each.external_id for each in found.checkpoints if each.cairn_id is not None}
    if not ids:
        return set()
    there = (Known.project_id == project_id, Known.link_id == found.applied.link.id, Known.origin == "there")
    imported = set(session.scalars(select(Known.external_id).where(*there)))
    own = (Checkpoint.project_id == project_id, Checkpoint.run_id == found.applied.run_id)
    here: set[str] = set()
    for chunk in chunks(number for number in ids if number is not None):
        here |= {ids[number] for number in session.scalars(select(Checkpoint.id).where(*own, Checkpoint.id.in_(chunk)))}
    return here - imported


def _usable(
    found: Found, known: Mapping[tuple[int, str], int], made_here: set[str], counts: Counts
) -> Iterator[Usable]:
    """One a step, the first; those that this registry made there are its own."""
    taken: dict[int, str] = {}
    for each in found.checkpoints:
        counts.skipped += [Skipped(f"{each.name}: {skip.item}", skip.reason) for skip in each.skipped]
        if any(skip.item == each.name for skip in each.skipped):
            continue
        if each.step is None or not 0 <= each.step <= INT64_MAX:
            counts.skipped.append(Skipped(each.name, "nobody says its step"))
            continue
        usable = Usable(found, each.step, each)
        if each.external_id in made_here:
            counts.met += 1
        elif each.step in taken and usable.place not in known:
            counts.skipped.append(Skipped(each.name, f"{taken[each.step]} is of the same step {each.step}"))
        else:
            taken[each.step] = each.name
            yield usable


def _at_steps(session: Session, project_id: int, keys: Collection[Key]) -> dict[Key, int]:
    """The checkpoint of each run and step, a live one before superseded ones, the newest attempt before older ones."""
    live = Attempt.live_through_step.is_(None) | (Attempt.live_through_step >= Checkpoint.step)
    runs = sorted({run_id for run_id, _ in keys})
    found: dict[Key, int] = {}
    for chunk in chunks(sorted({step for _, step in keys})):
        query = (
            select(Checkpoint.run_id, Checkpoint.step, Checkpoint.id)
            .join(Attempt, Attempt.id == Checkpoint.attempt_id)
            .where(Checkpoint.project_id == project_id, Checkpoint.run_id.in_(runs), Checkpoint.step.in_(chunk))
            .order_by(live.desc(), Checkpoint.attempt_number.desc(), Checkpoint.kind)
        )
        for run_id, step, identity in session.execute(query):
            found.setdefault((run_id, step), identity)
    return found


def _register(session: Session, project: str, fresh: Sequence[Usable], counts: Counts) -> dict[Key, int]:
    """The ids of what was made. One that is refused does not take the others with it."""
    made: dict[Key, int] = {}
    items = [(each, BatchItem(project, each.found.applied.run_name, registration_of(each))) for each in fresh]
    for chunk in chunks(items):
        try:
            with session.begin_nested():
                done = register_batch(session, [item for _, item in chunk])
            made |= {each.key: row.checkpoint_id for (each, _), row in zip(chunk, done, strict=True)}
        except RegistryError:
            for each, item in chunk:
                try:
                    with session.begin_nested():
                        made[each.key] = register_batch(session, [item])[0].checkpoint_id
                except RegistryError as problem:
                    where = f"step {each.step} of {each.found.applied.run_name}"
                    counts.skipped.append(Skipped(where, problem.message))
    counts.created += len(made)
    counts.scores += sum(len(item.registration.scores) for each, item in items if each.key in made)
    return made


def _follow_aliases(session: Session, project_id: int, tag: str, aliases: Mapping[int, Sequence[str]]) -> None:
    """Aliases move there: the tag that names those of each checkpoint says what they are now."""
    own = (CheckpointTag.project_id == project_id, CheckpointTag.name == tag)
    before: dict[int, str] = {}
    for chunk in chunks(aliases):
        these = select(CheckpointTag).where(*own, CheckpointTag.checkpoint_id.in_(chunk))
        before |= {row.checkpoint_id: row.value for row in session.scalars(these)}
    now_said = {number: text for number, names in aliases.items() if (text := aliases_text(names))}
    stale = [number for number, value in before.items() if now_said.get(number) != value]
    for chunk in chunks(stale):
        session.execute(delete(CheckpointTag).where(*own, CheckpointTag.checkpoint_id.in_(chunk)))
    fresh = [
        {"project_id": project_id, "checkpoint_id": number, "name": tag, "value": text}
        for number, text in now_said.items()
        if before.get(number) != text
    ]
    insert_missing(session, CheckpointTag, fresh)


def _add_metrics(session: Session, project_id: int, all_metrics: Sequence[tuple[int, Mapping[str, float]]]) -> None:
    rows: list[dict[str, Any]] = []
    for checkpoint_id, metrics in all_metrics:
        for name, number in metrics.items():
            value, special = split_number(number)
            key = {"project_id": project_id, "checkpoint_id": checkpoint_id, "name": name}
            rows.append(key | {"value": value, "special": special})
    insert_missing(session, CheckpointMetric, rows)


def _row(project_id: int, each: Usable, checkpoint_id: int) -> dict[str, Any]:
    link_id, external_id = each.place
    return {
        "project_id": project_id,
        "link_id": link_id,
        "checkpoint_id": checkpoint_id,
        "external_id": external_id,
        "origin": "there",
        "changed_at": now(),
    }
