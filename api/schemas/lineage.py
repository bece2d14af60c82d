"""Shapes of lineage."""

from typing import Self

from api.schemas.common import Answer, CheckpointRef, Id
from registry.checkpoints.rows import CheckpointIdentity
from registry.lineage import Edge


class EdgeOut(Answer):
    """`child` came from `parent`. Over a lossless edge the weights have the same values."""

    child: Id
    parent: Id
    relation: str
    lossless: bool

    @classmethod
    def from_edge(cls, edge: Edge) -> Self:
        return cls.model_construct(
            child=edge.child_id, parent=edge.parent_id, relation=edge.relation, lossless=edge.lossless
        )


class LineageOut(Answer):
    """Where a checkpoint comes from and what came from it; `checkpoints` describes every id that the edges name."""

    checkpoint: CheckpointRef
    ancestors: list[EdgeOut]
    descendants: list[EdgeOut]
    checkpoints: list[CheckpointRef]

    @classmethod
    def from_edges(cls, target: int, up: list[Edge], down: list[Edge], known: dict[int, CheckpointIdentity]) -> Self:
        return cls.model_construct(
            checkpoint=CheckpointRef.from_row(known[target]),
            ancestors=[EdgeOut.from_edge(edge) for edge in up],
            descendants=[EdgeOut.from_edge(edge) for edge in down],
            checkpoints=[CheckpointRef.from_row(row) for row in known.values()],
        )
