"""Shapes of imports."""

from collections.abc import Sequence
from typing import Self

from api.schemas.common import Answer, Id
from registry.evals.imports import FileReport, SkippedItem


class SkippedOut(Answer):
    item: str
    reason: str

    @classmethod
    def from_item(cls, item: SkippedItem) -> Self:
        return cls.model_construct(item=item.item, reason=item.reason)


class IntoOut(Answer):
    """How many scores of a file went to a checkpoint."""

    checkpoint_id: Id
    step: int
    imported: int


class FileOut(Answer):
    """What became of one file. `imported` counts its scores, `recorded` those that were new.

    `checkpoint_id` is the one checkpoint that they went to; where a file holds several, `checkpoints` names each.
    """

    file: str
    format: str | None
    imported: int
    recorded: int
    checkpoint_id: Id | None
    checkpoints: list[IntoOut]
    skipped: list[SkippedOut]
    notes: list[str]


class ImportOut(Answer):
    format: str | None
    imported: int
    recorded: int
    skipped: list[SkippedOut]
    files: list[FileOut]

    @classmethod
    def from_reports(cls, reports: Sequence[FileReport]) -> Self:
        formats = {report.format for report in reports if report.format}
        files = [
            FileOut.model_construct(
                file=report.file,
                format=report.format,
                imported=report.imported,
                recorded=report.recorded,
                checkpoint_id=report.checkpoint_id,
                checkpoints=[
                    IntoOut.model_construct(checkpoint_id=into.checkpoint_id, step=into.step, imported=into.imported)
                    for into in report.checkpoints
                ],
                skipped=[SkippedOut.from_item(item) for item in report.skipped],
                notes=list(report.notes),
            )
            for report in reports
        ]
        return cls.model_construct(
            format=formats.pop() if len(formats) == 1 else ("mixed" if formats else None),
            imported=sum(report.imported for report in reports),
            recorded=sum(report.recorded for report in reports),
            skipped=[item for file in files for item in file.skipped],
            files=files,
        )
