"""To which checkpoint each score of a result file belongs.

What the caller says goes before what the file says; where both speak and differ, that is noted (a single step) or the
score is left out (a row that names another run, model or checkpoint). Nothing is written before every score of a file
has its place.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cairn.formats.evals import EvalFile, EvalScore, Place
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.checkpoints.commands import BatchItem, register_batch
from registry.checkpoints.detail import project_of
from registry.checkpoints.registration import Registration
from registry.errors import Invalid
from registry.ids import from_text, to_text
from registry.models import Attempt, Checkpoint, Project, Run
from registry.names import run_name
from registry.runs import run_ids_by_name
from registry.types import CheckpointState
from registry.upsert import chunks


class NoTarget(Invalid):
    code = "no-import-target"
    title = "Which checkpoint the results belong to is not known"


@dataclass(frozen=True)
class Target:
    """The checkpoint that was evaluated: its id, or project, run and step (else each file must say its own).

    `model` picks one of the models of a file that holds several.
    """

    checkpoint_id: int | None = None
    project: str | None = None
    run: str | None = None
    step: int | None = None
    model: str | None = None


@dataclass(frozen=True)
class Known:
    """The checkpoint that the caller named."""

    id: int
    project_id: int
    project: str
    run: str
    attempt: int
    step: int


@dataclass(frozen=True)
class Spot:
    """A place within a project. `attempt` None means the one that counts: a live one, the newest."""

    run: str
    step: int
    attempt: int | None = None


@dataclass
class Placed:
    """Scores of a file with the spot (or the id of the checkpoint) of each; what has none, with the reason."""

    scores: list[tuple[Spot | int, EvalScore]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)  # reason -> scores
    notes: list[str] = field(default_factory=list)


def find_known(session: Session, checkpoint_id: int) -> Known:
    """Who the checkpoint is. Raises CheckpointNotFound."""
    project_of(session, checkpoint_id)
    query = (
        select(Checkpoint.id, Checkpoint.project_id, Project.name, Run.name, Checkpoint.attempt_number, Checkpoint.step)
        .join(Run, Run.id == Checkpoint.run_id)
        .join(Project, Project.id == Checkpoint.project_id)
        .where(Checkpoint.id == checkpoint_id)
    )
    return Known(*session.execute(query).one())


def place_scores(found: EvalFile, target: Target, known: Known | None) -> Placed:
    """Raises NoTarget where no score of the file has a place, with the reasons."""
    placed = Placed()
    several = len({place.step for place in found.places if place.step is not None}) > 1
    models = sorted({place.model for place in found.places if place.model is not None})
    if len(models) > 1 and target.model is None:
        listed = ", ".join(models[:8]) + (", ..." if len(models) > 8 else "")
        raise NoTarget(f"The file holds results of {len(models)} models ({listed}); say which one with `model`.")
    asked_step = known.step if known else target.step
    for score in found.scores:
        step = score.place.step if score.place.step is not None else found.step
        spot = _spot(score.place, step, several, target, known)
        if isinstance(spot, str):
            placed.left_out[spot] += 1
        else:
            placed.scores.append((spot, score))
    if not placed.scores:
        raise NoTarget("; ".join(f"{reason}" for reason in list(placed.left_out)[:5]) + ".")
    own = {score.place.step if score.place.step is not None else found.step for _, score in placed.scores} - {None}
    if asked_step is not None and not several and own and own != {asked_step}:
        source = found.step_source or "the file"
        placed.notes.append(f"{source} says step {own.pop()}; recorded at step {asked_step}, as it was asked for")
    return placed


def _spot(place: Place, step: int | None, several: bool, target: Target, known: Known | None) -> Spot | int | str:
    """Where a score belongs; a text is the reason why it belongs nowhere."""
    if target.model is not None and place.model not in (None, target.model):
        return f"it is of the model {place.model!r}, not of {target.model!r}"
    project, run = (known.project, known.run) if known else (target.project, target.run)
    for kind, said, asked in (("project", place.project, project), ("run", place.run, run)):
        if said is not None and asked is not None and run_name(said) != run_name(asked):
            return f"it is of the {kind} {said!r}, not of {asked!r}"
    asked_step = known.step if known else target.step
    if several and asked_step is not None and step != asked_step:
        return (
            "it names no step, in a file of several" if step is None else f"it is of step {step}, not of {asked_step}"
        )
    if known:
        if place.checkpoint is not None and place.checkpoint != to_text(known.id):
            return f"it is of the checkpoint {place.checkpoint}, not of {to_text(known.id)}"
        return known.id
    if place.checkpoint is not None:
        number = from_text(place.checkpoint)
        return f"there is no checkpoint {place.checkpoint}" if number is None else number
    step = asked_step if asked_step is not None else step
    run = run or place.run
    if run is None:
        return "it does not say which run it is of; give a run"
    return (
        "it does not say at which step it was evaluated; give a step"
        if step is None
        else Spot(run, step, place.attempt)
    )


def checkpoints_at(session: Session, project: str, spots: Sequence[Spot]) -> tuple[dict[Spot, int], list[Spot]]:
    """The checkpoint at each spot, made where it is missing (its pieces are unknown then), and those that were made."""
    found = _existing(session, project, spots)
    missing = [spot for spot in dict.fromkeys(spots) if spot not in found]
    if missing:
        items = [BatchItem(project, spot.run, Registration(spot.step, attempt=spot.attempt)) for spot in missing]
        done = register_batch(session, items)
        found |= {spot: made.checkpoint_id for spot, made in zip(missing, done, strict=True)}
    return found, missing


def _existing(session: Session, project: str, spots: Sequence[Spot]) -> dict[Spot, int]:
    """A live checkpoint goes before superseded ones, the newest attempt before older ones; a deleted one is none."""
    runs = run_ids_by_name(session, [(project, run) for run in {spot.run for spot in spots}])
    live = Attempt.live_through_step.is_(None) | (Attempt.live_through_step >= Checkpoint.step)
    found: dict[Spot, int] = {}
    for (_, run), (project_id, run_id) in runs.items():
        wanted = {(spot.step, spot.attempt): spot for spot in spots if spot.run == run}
        for chunk in chunks(sorted({step for step, _ in wanted})):
            query = (
                select(Checkpoint.id, Checkpoint.step, Checkpoint.attempt_number)
                .join(Attempt, Attempt.id == Checkpoint.attempt_id)
                .where(Checkpoint.project_id == project_id, Checkpoint.run_id == run_id, Checkpoint.step.in_(chunk))
                .where(Checkpoint.state != CheckpointState.DELETED)
                .order_by(live.desc(), Checkpoint.attempt_number.desc(), Checkpoint.kind)
            )
            for row in session.execute(query):
                for attempt in (None, row.attempt_number):
                    spot = wanted.get((row.step, attempt))
                    if spot is not None:
                        found.setdefault(spot, row.id)
    return found


def checkpoints_of_project(session: Session, project_id: int, numbers: Sequence[int]) -> Mapping[int, int]:
    """Which of these ids are checkpoints of the project, and not deleted; id to step."""
    found: dict[int, int] = {}
    for chunk in chunks(sorted(set(numbers))):
        query = select(Checkpoint.id, Checkpoint.step).where(
            Checkpoint.project_id == project_id,
            Checkpoint.id.in_(chunk),
            Checkpoint.state != CheckpointState.DELETED,
        )
        found.update(session.execute(query).all())
    return found
