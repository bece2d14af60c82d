"""Shapes of what lies in storage."""

from collections.abc import Sequence
from typing import Any, Self

from api.schemas.common import Answer, Id, RunRef
from registry.storage.files import ManifestRow
from registry.storage.usage import Usage


class UsageOut(Answer):
    """What the checkpoints of one run hold in one tier; `tier` null: no copy of them is recorded.

    `state`: of the checkpoints, pending, committed or deleted. `unknown_sizes`: copies whose size nobody recorded,
    which `bytes` leaves out.
    """

    project: str
    run: RunRef
    tier: str | None
    state: str
    superseded: bool
    checkpoints: int
    copies: int
    bytes: int
    unknown_sizes: int

    @classmethod
    def from_row(cls, row: Usage) -> Self:
        own = ("project", "tier", "state", "superseded", "checkpoints", "copies", "bytes", "unknown_sizes")
        return cls.model_construct(
            run=RunRef.model_construct(id=row.run.id, name=row.run.name), **{name: getattr(row, name) for name in own}
        )


class TotalOut(Answer):
    """The same of every run together."""

    tier: str | None
    state: str
    superseded: bool
    checkpoints: int
    copies: int
    bytes: int
    unknown_sizes: int


class StorageUsageOut(Answer):
    """The largest entries first; `left_out` counts those beyond the limit, which `totals` and `bytes` hold as well."""

    bytes: int
    entries: list[UsageOut]
    left_out: int
    totals: list[TotalOut]

    @classmethod
    def from_rows(cls, rows: Sequence[Usage], limit: int) -> Self:
        return cls.model_construct(
            bytes=sum(row.bytes for row in rows),
            entries=[UsageOut.from_row(row) for row in rows[:limit]],
            left_out=max(0, len(rows) - limit),
            totals=_totals(rows),
        )


def _totals(rows: Sequence[Usage]) -> list[TotalOut]:
    sums: dict[tuple[str | None, str, bool], list[int]] = {}
    for row in rows:
        figures = sums.setdefault((row.tier, row.state, row.superseded), [0, 0, 0, 0])
        for place, figure in enumerate((row.checkpoints, row.copies, row.bytes, row.unknown_sizes)):
            figures[place] += figure
    names = ("checkpoints", "copies", "bytes", "unknown_sizes")
    totals = []
    for (tier, state, beyond), figures in sorted(sums.items(), key=lambda item: -item[1][2]):
        known: dict[str, Any] = dict(zip(names, figures, strict=True))
        totals.append(TotalOut.model_construct(tier=tier, state=state, superseded=beyond, **known))
    return totals


class FileOut(Answer):
    path: str
    bytes: int
    digest: str | None


class ManifestOut(Answer):
    """The files of a copy. `algorithm`: of the digests, where it was recorded."""

    replica_id: Id
    uri: str
    algorithm: str | None
    digest: str | None
    files: list[FileOut]

    @classmethod
    def from_row(cls, row: ManifestRow) -> Self:
        return cls.model_construct(
            replica_id=row.replica_id,
            uri=row.uri,
            algorithm=row.algorithm,
            digest=row.digest,
            files=[FileOut.model_construct(path=path, bytes=size, digest=digest) for path, size, digest in row.files],
        )
