"""Import eval result files: read by the client's readers (`cairn.formats`), kept as scores of the checkpoints named.

A file is imported whole or not at all; what a reader left out is reported with its reason. Values are kept as they
are published: one that cannot be of its benchmark's scale is noted, never rescaled.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from cairn.formats import EvalFile, EvalScore, Refused
from cairn.formats.evals import read_eval_folder, read_evals, together
from sqlalchemy.orm import Session

from registry.errors import FieldError, Invalid, RegistryError
from registry.evals.import_models import mixed_notes, other_model_notes
from registry.evals.import_places import (
    Known,
    NoTarget,
    Placed,
    Spot,
    Target,
    checkpoints_at,
    checkpoints_of_project,
    find_known,
    place_scores,
)
from registry.evals.samples import Sampled, keep_samples
from registry.evals.scales import scale_notes
from registry.evals.scores import NewScore, record_scores
from registry.ids import to_text
from registry.projects import ProjectNotFound, find_project

__all__ = ["FileReport", "Into", "NoTarget", "NothingImported", "ReadUpload", "SkippedItem", "Target", "Upload"]

MAX_SCORES: Final = 50_000  # of one file; what is read here is written in one transaction


class NothingImported(Invalid):
    code = "nothing-imported"
    title = "None of the files could be imported"


@dataclass(frozen=True)
class Upload:
    name: str
    content: bytes


@dataclass(frozen=True)
class ReadUpload:
    """One result, of one file or of several that belong together; `refusal` where it cannot be read.

    `places` are those of its files among the uploads.
    """

    places: Sequence[int]
    names: Sequence[str]
    found: EvalFile | None
    refusal: str = ""


@dataclass(frozen=True)
class SkippedItem:
    item: str
    reason: str


@dataclass(frozen=True)
class Into:
    """How many scores of a file went to a checkpoint."""

    checkpoint_id: int
    step: int
    imported: int


@dataclass(frozen=True)
class FileReport:
    """What became of one file. `imported` counts its scores; `recorded` those that were new."""

    file: str
    format: str | None
    imported: int
    recorded: int
    checkpoints: Sequence[Into]
    skipped: Sequence[SkippedItem]
    notes: Sequence[str] = ()

    @property
    def checkpoint_id(self) -> int | None:
        """The checkpoint that all scores went to; None where they went to several, or nowhere."""
        return self.checkpoints[0].checkpoint_id if len(self.checkpoints) == 1 else None


def import_results(
    session: Session, uploads: Sequence[Upload], target: Target, *, format: str = "auto"
) -> list[FileReport]:
    """Import each file into its checkpoints, which are made where missing. Raises NoTarget, NothingImported."""
    return import_read(session, read_uploads(uploads, format=format), target)


def read_uploads(uploads: Sequence[Upload], *, format: str = "auto") -> list[ReadUpload]:
    """What the files say: no database is needed, so nobody waits for a write while megabytes are parsed."""
    names = [upload.name for upload in uploads]
    return [_within_limit(_read(names, uploads, group, format)) for group in together(names)]


def _within_limit(upload: ReadUpload) -> ReadUpload:
    if upload.found is None or len(upload.found.scores) <= MAX_SCORES:
        return upload
    reason = f"it holds {len(upload.found.scores):,} scores; at most {MAX_SCORES:,} of one file are taken"
    return ReadUpload(upload.places, upload.names, None, reason)


def _read(names: Sequence[str], uploads: Sequence[Upload], group: Sequence[int], format: str) -> ReadUpload:
    own = [names[at] for at in group]
    try:
        if len(group) == 1:
            return ReadUpload(group, own, read_evals(uploads[group[0]].content, format=format, name=own[0]))
        folder = own[0].replace("\\", "/").rpartition("/")[0].rpartition("/")[2]
        return ReadUpload(group, own, read_eval_folder({names[at]: uploads[at].content for at in group}, folder=folder))
    except Refused as refusal:
        return ReadUpload(group, own, None, str(refusal))


def import_read(session: Session, uploads: Sequence[ReadUpload], target: Target) -> list[FileReport]:
    """As `import_results`, of files that were read before."""
    if target.checkpoint_id is None and not target.project:
        message = "give checkpoint_id, or project and run (and step, unless the files say it)"
        raise NoTarget(
            f"Where do these results belong? {message[0].upper()}{message[1:]}.", errors=[FieldError("", message)]
        )
    known = None if target.checkpoint_id is None else find_known(session, target.checkpoint_id)
    placed = [pair for upload in uploads for pair in _import_one(session, upload, target, known)]
    reports = [report for _, report in sorted(placed, key=lambda pair: pair[0])]
    if not any(report.format for report in reports):
        errors = [
            FieldError(f"/file/{at}", item.reason) for at, report in enumerate(reports) for item in report.skipped[:1]
        ]
        first = reports[0]
        raise NothingImported(
            f"{len(reports)} file(s) refused. The first, {first.file!r}: {first.skipped[0].reason}", errors=errors
        )
    return _with_mixed(uploads, reports)


def _with_mixed(uploads: Sequence[ReadUpload], reports: Sequence[FileReport]) -> list[FileReport]:
    """The reports, with what only all files together show: two models in one checkpoint."""
    read = {upload.places[0]: upload.found for upload in uploads}
    files = [
        (report.file, read.get(at), [each.checkpoint_id for each in report.checkpoints])
        for at, report in enumerate(reports)
    ]
    mixed = mixed_notes(files)
    pairs = zip(reports, mixed, strict=True)
    return [replace(each, notes=[*each.notes, *notes]) if notes else each for each, notes in pairs]


def _import_one(
    session: Session, upload: ReadUpload, target: Target, known: Known | None
) -> Iterator[tuple[int, FileReport]]:
    """The place and report of each file. What fails while it is written is taken back to the start of this file."""
    first, *others = upload.names
    report = _refused(first, upload.refusal)
    if upload.found is not None:
        try:
            with session.begin_nested():
                report = _record(session, first, upload.found, target, known)
        except RegistryError as refusal:
            report = _refused(first, " ".join([refusal.message, *(error.message for error in refusal.errors[:3])]))
    yield upload.places[0], report
    for place, name in zip(upload.places[1:], others, strict=True):
        if report.format:
            yield place, FileReport(name, report.format, 0, 0, (), (), (f"read together with {first}",))
        else:
            yield place, _refused(name, f"it belongs to {first}, which was refused")


def _refused(name: str, reason: str) -> FileReport:
    return FileReport(name, None, 0, 0, (), [SkippedItem(name, reason)])


def _record(session: Session, name: str, found: EvalFile, target: Target, known: Known | None) -> FileReport:
    placed = place_scores(found, target, known)
    project_id, scored, notes = _resolved(session, placed, target, known)
    times: dict[str, int] = {}
    new = [(checkpoint_id, _score(score, times)) for checkpoint_id, score in scored]
    recorded = record_scores(session, project_id, new)
    sampled = [
        Sampled(checkpoint_id, score, read.samples)
        for (checkpoint_id, score), (_, read) in zip(new, scored, strict=True)
        if read.samples
    ]
    unkept = keep_samples(session, project_id, sampled) if sampled else []
    skipped = [SkippedItem(item.item, item.reason) for item in found.skipped]
    skipped += [SkippedItem(f"{count} scores", reason) for reason, count in placed.left_out.items()]
    notes = [
        *found.problems,
        *placed.notes,
        *notes,
        *other_model_notes(session, found, {checkpoint_id for checkpoint_id, _ in scored}),
        *unkept,
        *scale_notes(session, project_id, (score for _, score in scored)),
        *_time_notes(times),
    ]
    return FileReport(name, found.format, len(new), recorded, _into(session, project_id, scored), skipped, notes)


def _resolved(
    session: Session, placed: Placed, target: Target, known: Known | None
) -> tuple[int, list[tuple[int, EvalScore]], list[str]]:
    """The id of the project, each score with the id of its checkpoint, and notes. What is unknown is left out."""
    if known:
        return known.project_id, [(known.id, score) for _, score in placed.scores], []
    assert target.project is not None
    spots = [spot for spot, _ in placed.scores if isinstance(spot, Spot)]
    at, made = checkpoints_at(session, target.project, spots) if spots else ({}, [])
    try:
        project_id = find_project(session, target.project).id
    except ProjectNotFound:
        raise NoTarget(f"There is no project {target.project!r} with the checkpoints that the file names.") from None
    named = checkpoints_of_project(session, project_id, [spot for spot, _ in placed.scores if isinstance(spot, int)])
    scored = []
    for spot, score in placed.scores:
        if isinstance(spot, Spot):
            scored.append((at[spot], score))
        elif spot in named:
            scored.append((spot, score))
        else:
            placed.left_out[f"project {target.project!r} has no checkpoint {to_text(spot)}"] += 1
    if not scored:
        raise NoTarget("; ".join(list(placed.left_out)[:5]) + ".")
    return project_id, scored, _made_notes(made)


def _made_notes(made: Sequence[Spot]) -> list[str]:
    if not made:
        return []
    steps = ", ".join(str(spot.step) for spot in made[:8]) + (", ..." if len(made) > 8 else "")
    count = "1 checkpoint was" if len(made) == 1 else f"{len(made)} checkpoints were"
    return [f"{count} not recorded yet and made, with pieces unknown, at step {steps}"]


def _into(session: Session, project_id: int, scored: Sequence[tuple[int, EvalScore]]) -> list[Into]:
    counts: dict[int, int] = {}
    for checkpoint_id, _ in scored:
        counts[checkpoint_id] = counts.get(checkpoint_id, 0) + 1
    steps = checkpoints_of_project(session, project_id, list(counts))
    return [Into(number, steps[number], count) for number, count in counts.items()]


def _score(score: EvalScore, times: dict[str, int]) -> NewScore:
    values: Mapping[str, Any] = {name: getattr(score, name) for name in NewScore._fields if hasattr(score, name)}
    when = _time(score.evaluated_at)
    if score.evaluated_at is not None and when is None:
        times[score.evaluated_at] = times.get(score.evaluated_at, 0) + 1
    return NewScore(**{**values, "evaluated_at": when})


def _time(text: str | None) -> datetime | None:
    """A time with a zone. Without one it is no moment: it could be any of 26 hours, and is left unknown."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return None if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _time_notes(times: Mapping[str, int]) -> list[str]:
    if not times:
        return []
    first, count = next(iter(times)), sum(times.values())
    return [
        f"the time of evaluation of {count} scores ({first[:40]!r}) names no zone or is none, so it is left unknown"
    ]
