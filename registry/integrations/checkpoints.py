"""Bringing a tracker's models and artifacts into the registry as checkpoints, with their scores.

One that is here already (recorded by its training, or by an earlier import) is met at its step: only what is missing is
added. What cannot become a checkpoint is given back with the reason.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.checkpoints.commands import BatchItem, register_batch
from registry.checkpoints.registration import Registration, ReplicaSpec
from registry.db import now, split_number
from registry.errors import RegistryError
from registry.evals.scores import NewScore, record_scores
from registry.ids import from_text
from registry.integrations.apply import Applied
from registry.integrations.fields import code_of, data_of
from registry.integrations.score_names import score_name
from registry.integrations.shapes import Skipped, TrackerCheckpoint, TrackerRun, TrackerSeries
from registry.models import Attempt, Checkpoint, CheckpointMetric
from registry.models import TrackerCheckpoint as Known
from registry.types import INT64_MAX, CheckpointState, Tier
from registry.upsert import chunks, insert_missing

LOSSES: Final = ("loss", "train_loss", "train/loss", "training_loss", "loss_metrics/global_avg_loss")
RATES: Final = ("lr", "learning_rate", "train/learning_rate", "train/lr")
MAX_METRICS: Final = 500  # of a checkpoint
MAX_TEXT: Final = 4_096


@dataclass(frozen=True)
class Found:
    """A run's checkpoints as the tracker has them, and its curves by name where they were read."""

    applied: Applied
    run: TrackerRun
    checkpoints: Sequence[TrackerCheckpoint]
    curves: Mapping[str, TrackerSeries] = field(default_factory=dict)


@dataclass
class Counts:
    """What came of checkpoints. `created` and `scores` count what was new."""

    created: int = 0
    met: int = 0
    scores: int = 0
    skipped: list[Skipped] = field(default_factory=list)


def new_steps(session: Session, project_id: int, found: Found) -> set[int]:
    """The steps at which a checkpoint would be made."""
    steps = {each.step for each in found.checkpoints if each.step is not None}
    return steps - set(_at_steps(session, project_id, found.applied.run_id, steps))


def apply_checkpoints(session: Session, project_id: int, project: str, all_found: Sequence[Found]) -> Counts:
    """Register what is missing, add what is new to the rest, and remember which is which there."""
    counts = Counts()
    for found in all_found:
        _apply(session, project_id, project, found, counts)
    return counts


def _apply(session: Session, project_id: int, project: str, found: Found, counts: Counts) -> None:
    link_id = found.applied.link.id
    own = (Known.project_id == project_id, Known.link_id == link_id)
    known = {row.external_id: row.checkpoint_id for row in session.scalars(select(Known).where(*own))}
    usable = _usable(found, known, _made_here(session, project_id, found), counts)
    at = _at_steps(session, project_id, found.applied.run_id, {step for step, _ in usable})
    fresh = [(step, each) for step, each in usable if step not in at and each.external_id not in known]
    made = _register(session, project, found, fresh, counts)
    rows, scored = [], []
    for step, each in usable:
        checkpoint_id = known.get(each.external_id) or made.get(step) or at.get(step)
        if checkpoint_id is None:
            continue
        counts.met += step not in made
        if each.external_id not in known:
            rows.append(_row(project_id, link_id, checkpoint_id, each))
        if step not in made:
            scored += [(checkpoint_id, score) for score in _scores(found, step, each)]
            _add_metrics(session, project_id, checkpoint_id, _metrics(found, step, each))
    insert_missing(session, Known, rows)
    counts.scores += record_scores(session, project_id, scored)


def _made_here(session: Session, project_id: int, found: Found) -> set[str]:
    """Which of the tracker's records this registry made itself, of a checkpoint that it still has."""
    ids = {from_text(each.cairn_id): each.external_id for each in found.checkpoints if each.cairn_id is not None}
    there = (Known.project_id == project_id, Known.link_id == found.applied.link.id, Known.origin == "there")
    imported = set(session.scalars(select(Known.external_id).where(*there)))
    own = (Checkpoint.project_id == project_id, Checkpoint.run_id == found.applied.run_id)
    here: set[str] = set()
    for chunk in chunks(number for number in ids if number is not None):
        here |= {ids[number] for number in session.scalars(select(Checkpoint.id).where(*own, Checkpoint.id.in_(chunk)))}
    return here - imported


def _usable(
    found: Found, known: Mapping[str, int], made_here: set[str], counts: Counts
) -> list[tuple[int, TrackerCheckpoint]]:
    """One a step, the first; those that this registry made there are its own."""
    taken: dict[int, str] = {}
    usable = []
    for each in found.checkpoints:
        counts.skipped += [Skipped(f"{each.name}: {skip.item}", skip.reason) for skip in each.skipped]
        if any(skip.item == each.name for skip in each.skipped):
            continue
        if each.step is None or not 0 <= each.step <= INT64_MAX:
            counts.skipped.append(Skipped(each.name, "nobody says its step"))
        elif each.external_id in made_here:
            counts.met += 1
        elif each.step in taken and each.external_id not in known:
            counts.skipped.append(Skipped(each.name, f"{taken[each.step]} is of the same step {each.step}"))
        else:
            taken[each.step] = each.name
            usable.append((each.step, each))
    return usable


def _at_steps(session: Session, project_id: int, run_id: int, steps: set[int]) -> dict[int, int]:
    """The checkpoint at each step, a live one before superseded ones, the newest attempt before older ones."""
    live = Attempt.live_through_step.is_(None) | (Attempt.live_through_step >= Checkpoint.step)
    found: dict[int, int] = {}
    for chunk in chunks(sorted(steps)):
        query = (
            select(Checkpoint.step, Checkpoint.id)
            .join(Attempt, Attempt.id == Checkpoint.attempt_id)
            .where(Checkpoint.project_id == project_id, Checkpoint.run_id == run_id, Checkpoint.step.in_(chunk))
            .order_by(live.desc(), Checkpoint.attempt_number.desc(), Checkpoint.kind)
        )
        for step, identity in session.execute(query):
            found.setdefault(step, identity)
    return found


def _register(
    session: Session, project: str, found: Found, fresh: Sequence[tuple[int, TrackerCheckpoint]], counts: Counts
) -> dict[int, int]:
    """Step to id of what was made. One that is refused does not take the others with it."""
    made: dict[int, int] = {}
    items = [
        (step, BatchItem(project, found.applied.run_name, _registration(found, step, each))) for step, each in fresh
    ]
    for chunk in chunks(items):
        try:
            with session.begin_nested():
                done = register_batch(session, [item for _, item in chunk])
            made |= {step: each.checkpoint_id for (step, _), each in zip(chunk, done, strict=True)}
        except RegistryError:
            for step, item in chunk:
                try:
                    with session.begin_nested():
                        made[step] = register_batch(session, [item])[0].checkpoint_id
                except RegistryError as problem:
                    counts.skipped.append(Skipped(f"step {step} of {found.applied.run_name}", problem.message))
    counts.created += len(made)
    counts.scores += sum(len(item.registration.scores) for step, item in items if step in made)
    return made


def _registration(found: Found, step: int, each: TrackerCheckpoint) -> Registration:
    curves = found.curves
    return Registration(
        step=step,
        attempt=found.applied.attempt,
        state=CheckpointState.COMMITTED,
        saved_at=each.saved_at,
        epoch=each.epoch,
        loss=_first_at(curves, LOSSES, step),
        lr=_first_at(curves, RATES, step),
        metrics=_metrics(found, step, each),
        scores=tuple(_scores(found, step, each)),
        data_version=data_of(found.run),
        code=code_of(found.run),
        replicas=_replicas(each),
        tags=_tags(found, each),
    )


def _replicas(each: TrackerCheckpoint) -> tuple[ReplicaSpec, ...]:
    """The place that the tracker names, unverified: nothing was read there."""
    if not each.uri or len(each.uri) > MAX_TEXT or "\0" in each.uri:
        return ()
    scheme = (
        each.uri.partition(":")[0] if "://" in each.uri or each.uri.startswith(("mlflow-artifacts:", "wandb")) else ""
    )
    tier = Tier.SHARED if scheme in ("", "file") else Tier.OBJECT
    algorithm, _, value = (each.digest or "").rpartition(":")
    known = bool(algorithm and value)
    return (
        ReplicaSpec(
            each.uri,
            tier,
            bytes=each.bytes,
            digest_algorithm=algorithm if known else None,
            digest=value if known else None,
        ),
    )


def _tags(found: Found, each: TrackerCheckpoint) -> dict[str, str]:
    kind = found.run.kind
    tags = {f"{kind}.name": each.name}
    if each.aliases:
        tags[f"{kind}.aliases"] = ", ".join(each.aliases)
    if each.digest and ":" not in each.digest:
        tags[f"{kind}.digest"] = each.digest
    for name, value in each.metadata.items():
        if isinstance(value, str | int | float | bool) and not name.startswith("cairn"):
            tags.setdefault(f"{kind}.{name}", str(value))
    return {
        name: value.replace("\0", " ")
        for name, value in list(tags.items())[:100]
        if len(name) <= 200 and name.isprintable() and len(value) <= MAX_TEXT
    }


def _scores(found: Found, step: int, each: TrackerCheckpoint) -> Iterator[NewScore]:
    """Benchmark scores that the tracker ties to the checkpoint, and those that the run logged at its step."""
    seen = set()
    for score in each.scores:
        name = score_name(score.name)
        if name is not None:
            seen.add(name)
            yield NewScore(name.benchmark, score.value, name.metric, name.filter, evaluated_at=score.at)
    for key, value in _logged_at(found, step):
        name = score_name(key)
        if name is not None and name not in seen:
            seen.add(name)
            yield NewScore(name.benchmark, value, name.metric, name.filter)


def _metrics(found: Found, step: int, each: TrackerCheckpoint) -> dict[str, float]:
    """What is no benchmark score, of the model and of the run at its step."""
    metrics = {score.name: score.value for score in each.scores if score_name(score.name) is None}
    for key, value in _logged_at(found, step):
        if key not in (*LOSSES, *RATES) and score_name(key) is None:
            metrics.setdefault(key, value)
    usable = [(name, value) for name, value in metrics.items() if 0 < len(name) <= 512 and name.isprintable()]
    return dict(usable[:MAX_METRICS])


def _logged_at(found: Found, step: int) -> Iterator[tuple[str, float]]:
    for key, curve in found.curves.items():
        value = _at(curve, step)
        if value is not None:
            yield key, value


def _first_at(curves: Mapping[str, TrackerSeries], names: Sequence[str], step: int) -> float | None:
    for name in names:
        value = _at(curves[name], step) if name in curves else None
        if value is not None:
            return value
    return None


def _at(curve: TrackerSeries, step: int) -> float | None:
    at = bisect_left(curve.steps, step)
    return curve.values[at] if at < len(curve.steps) and curve.steps[at] == step else None


def _add_metrics(session: Session, project_id: int, checkpoint_id: int, metrics: Mapping[str, float]) -> None:
    rows: list[dict[str, Any]] = []
    for name, number in metrics.items():
        value, special = split_number(number)
        key = {"project_id": project_id, "checkpoint_id": checkpoint_id, "name": name}
        rows.append(key | {"value": value, "special": special})
    insert_missing(session, CheckpointMetric, rows)


def _row(project_id: int, link_id: int, checkpoint_id: int, each: TrackerCheckpoint) -> dict[str, Any]:
    return {
        "project_id": project_id,
        "link_id": link_id,
        "checkpoint_id": checkpoint_id,
        "external_id": each.external_id[:1_000],
        "origin": "there",
        "changed_at": now(),
    }
