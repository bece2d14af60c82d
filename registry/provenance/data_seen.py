"""Which data a checkpoint has seen, source by source: its own version's, and before it that of what it resumed from.

A run that went on from a checkpoint of another run, or an attempt that changed the data, has seen the earlier data
for as many tokens as that checkpoint had seen. So the tokens by source add up to the tokens seen in all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import literal, select
from sqlalchemy.orm import Session, aliased

from registry.models import Attempt, Checkpoint, DataSource, DataVersion
from registry.provenance.data_mix import Source, shares

MAX_RESUMES = 1_000  # loads from a checkpoint that are followed back

Mix = dict[str, Source]


@dataclass(frozen=True, slots=True)
class Stage:
    """A checkpoint on the way: the data version recorded for it and the tokens seen until then, None where unknown."""

    data_version: DataVersion | None
    tokens_seen: int | None


@dataclass(frozen=True, slots=True)
class DataSeen:
    """`mix` None: not known. `by_lineage`: the shares are of the tokens seen, over more than one data version.

    `note` says what of the past could not be counted.
    """

    mix: Mapping[str, Source] | None
    by_lineage: bool = False
    note: str = ""


def earlier_stages(session: Session, checkpoint_ids: Sequence[int]) -> dict[int, list[Stage]]:
    """For each checkpoint, what its attempt loaded, what the attempt of that one loaded and so on, newest first.

    One statement. What was loaded and has no record here yet ends the list with an unknown stage.
    """
    attempt, parent = aliased(Attempt), aliased(Checkpoint)
    first = (
        select(
            Checkpoint.id.label("origin"),
            Checkpoint.project_id.label("project_id"),
            attempt.resumed_from_checkpoint_id.label("loaded"),
            literal(1).label("depth"),
        )
        .join(attempt, (attempt.project_id == Checkpoint.project_id) & (attempt.id == Checkpoint.attempt_id))
        .where(Checkpoint.id.in_(sorted(checkpoint_ids)), attempt.resumed_from_step.is_not(None))
        .cte("path", recursive=True)
    )
    further = (
        select(first.c.origin, first.c.project_id, attempt.resumed_from_checkpoint_id, first.c.depth + 1)
        .join(parent, (parent.project_id == first.c.project_id) & (parent.id == first.c.loaded))
        .join(attempt, (attempt.project_id == parent.project_id) & (attempt.id == parent.attempt_id))
        .where(attempt.resumed_from_step.is_not(None), first.c.depth < MAX_RESUMES)
    )
    path = first.union_all(further)
    query = (
        select(path.c.origin, Checkpoint.tokens_seen, DataVersion)
        .outerjoin(Checkpoint, (Checkpoint.project_id == path.c.project_id) & (Checkpoint.id == path.c.loaded))
        .outerjoin(
            DataVersion,
            (DataVersion.project_id == Checkpoint.project_id) & (DataVersion.id == Checkpoint.data_version_id),
        )
        .order_by(path.c.origin, path.c.depth)
    )
    found: dict[int, list[Stage]] = {each: [] for each in checkpoint_ids}
    for origin, tokens, version in session.execute(query):
        found[origin].append(Stage(version, tokens))
    return found


def read_mixes(session: Session, versions: Sequence[DataVersion]) -> dict[int, Mix]:
    """The sources of each data version that has some, by its id; one statement."""
    if not versions:
        return {}
    query = select(DataSource).where(
        DataSource.project_id.in_({each.project_id for each in versions}),
        DataSource.data_version_id.in_({each.id for each in versions}),
    )
    found: dict[int, Mix] = {}
    for row in session.scalars(query):
        found.setdefault(row.data_version_id, {})[row.source] = Source(row.weight, row.tokens)
    return found


def data_seen(own: Stage, earlier: Sequence[Stage], mixes: Mapping[int, Mix]) -> DataSeen:
    """The sources that a checkpoint has seen. Of one data version only, its mix as it is recorded.

    A stage whose mix is unknown counts as one source, named as its data version is.
    """
    if own.data_version is None:
        return DataSeen(None)
    declared = mixes.get(own.data_version.id)
    if all(stage.data_version is not None and stage.data_version.id == own.data_version.id for stage in earlier):
        return DataSeen(declared)
    tokens: dict[str, float] = {}
    stages = [own, *earlier]
    for place, stage in enumerate(stages):
        before = stages[place + 1].tokens_seen if place + 1 < len(stages) else 0
        if stage.data_version is None or stage.tokens_seen is None or before is None or before > stage.tokens_seen:
            return DataSeen(declared, note="what was seen before it resumed from another checkpoint is not counted")
        for source, share in _shares(stage.data_version, mixes).items():
            tokens[source] = tokens.get(source, 0.0) + share * (stage.tokens_seen - before)
    if not any(tokens.values()):
        return DataSeen(declared)
    seen = {source: Source(None, amount) for source, amount in tokens.items() if amount}
    return DataSeen(seen, by_lineage=True)


def _shares(version: DataVersion, mixes: Mapping[int, Mix]) -> Mapping[str, float]:
    return shares(mixes.get(version.id, {})) or {version.name: 1.0}
