"""Where a checkpoint comes from: the whole chain of attempts, runs and parents, with what each was trained on.

The tokens of a stage are those seen in it. A stage that resumed counts on from what it loaded; one that was fine-tuned
or distilled from a parent is taken to count from its own start, and that is said. Copies (converted, resharded,
quantised) add none. A merge mixes weights, not tokens: what its parents were trained on is counted by source, each
stretch of training once, and is not called what the model has seen.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from registry import strict_json
from registry.checkpoints.detail import CheckpointDetail, get_checkpoint
from registry.checkpoints.rows import CheckpointIdentity
from registry.lineage import Edge
from registry.provenance.data_seen import OWN_COUNT
from registry.provenance.late import bodies_of
from registry.provenance.past import COPIES
from registry.provenance.stages import Stage, Stages, StepRange
from registry.provenance.stretches import MAX_STRETCHES, way_to
from registry.types import Relation

__all__ = ["Provenance", "Stage", "StepRange", "config_text", "read_provenance", "ways"]


@dataclass(frozen=True, slots=True)
class Provenance:
    """`stages`: newest first. `tokens_by_source` adds up what is known; `unknown` says in words what is not.

    `parents`: every recorded edge from a checkpoint of the chain to where it came from. `config` and `environment`: its
    own, else those that its attempt or run was given later, which `notes` say.
    """

    detail: CheckpointDetail
    config: Mapping[str, Any] | None
    environment: Mapping[str, Any] | None
    notes: tuple[str, ...]
    stages: tuple[Stage, ...]
    parents: tuple[Edge, ...]
    names: Mapping[int, CheckpointIdentity]
    tokens_by_source: Mapping[str, float]
    tokens_total: int | None
    dirty: tuple[CheckpointIdentity, ...]
    unknown: tuple[str, ...]


def read_provenance(session: Session, checkpoint_id: int) -> Provenance:
    """Raises CheckpointNotFound. The chain is followed through at most MAX_STRETCHES stages."""
    detail = get_checkpoint(session, checkpoint_id)
    way = way_to(session, detail.project_id, checkpoint_id)
    read = Stages(session, detail.project_id, way.stretches)
    stages = tuple(read.all())
    unknown = list(read.unknown)
    if way.is_cut:
        unknown.append(f"the chain is longer than {MAX_STRETCHES:,} stages; what is before is not shown")
    named = sorted({each for edge in way.parents for each in (edge.child_id, edge.parent_id)})
    bodies = bodies_of(session, detail)
    return Provenance(
        detail=detail,
        config=bodies.config,
        environment=bodies.environment,
        notes=bodies.notes,
        stages=stages,
        parents=tuple(way.parents),
        names={each: read.names[each] for each in named},
        tokens_by_source=_by_source(stages),
        tokens_total=_total(session, detail, stages),
        dirty=tuple(stage.checkpoint for stage in stages if stage.code is not None and stage.code.dirty),
        unknown=tuple(dict.fromkeys(unknown)),
    )


def _by_source(stages: Sequence[Stage]) -> Mapping[str, float]:
    """The largest first. A stage whose mix is not recorded counts as one source, named as its data version is."""
    found: dict[str, float] = {}
    for stage in stages:
        if stage.tokens:
            mix = stage.mix or {stage.data_version or "not recorded": 1.0}
            for source, share in mix.items():
                found[source] = found.get(source, 0.0) + share * stage.tokens
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _total(session: Session, detail: CheckpointDetail, stages: Sequence[Stage]) -> int | None:
    """As recorded, or of what was copied; over fine-tunings the sum of the stages, where no merge lies between."""
    relations = {stage.came_from for stage in stages}
    if relations & {*OWN_COUNT}:
        known = [stage.tokens for stage in stages if stage.tokens is not None]
        return sum(known) if len(known) == len(stages) and Relation.MERGED not in relations else None
    if detail.tokens_seen is not None:
        return detail.tokens_seen
    copied = itertools.dropwhile(lambda stage: stage.came_from in COPIES and stage.tokens == 0, stages)
    source = next((stage.checkpoint.id for stage in copied), detail.checkpoint.id)
    return None if source == detail.checkpoint.id else get_checkpoint(session, source).tokens_seen


def config_text(detail: CheckpointDetail) -> str | None:
    """The config as canonical JSON, with its numbers as they were written."""
    return None if detail.config is None else strict_json.canonical(detail.config)


def ways(edges: Sequence[Edge]) -> list[str]:
    """The relations that occur, in the order of the chain."""
    return list(dict.fromkeys(each.relation for each in edges))
