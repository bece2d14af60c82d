"""Where a checkpoint comes from: the whole chain of attempts, runs and parents, with what each was trained on.

The tokens of a stage are those seen in it. A stage that resumed counts on from what it loaded; one that was fine-tuned
or distilled from a parent is taken to count from its own start, and that is said. Copies (converted, resharded,
quantised) add none. A merge mixes weights, not tokens: its parents are named, and their tokens are not added up.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.checkpoints.detail import CheckpointDetail, get_checkpoint, read_identities
from registry.checkpoints.rows import CheckpointIdentity
from registry.db import join_number
from registry.lineage import Edge
from registry.models import (
    Attempt,
    AttemptSkip,
    Checkpoint,
    CodeVersion,
    Config,
    DataVersion,
    Environment,
    Layout,
    LineageEdge,
)
from registry.provenance.data_mix import shares
from registry.provenance.data_seen import OWN_COUNT, Mix, read_mixes
from registry.provenance.past import COPIES
from registry.snapshots import CodeSpec, LayoutSpec
from registry.types import Relation

MAX_STAGES: Final = 200


@dataclass(frozen=True, slots=True)
class StepRange:
    """Both ends included. `attempt`: whose steps they are."""

    first: int
    last: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Stage:
    """What one attempt did on the way, up to `checkpoint`. `came_from`: how it began (None: from nothing).

    `tokens` seen in it, None where unknown. `repeated`: steps that an abandoned attempt had trained before;
    `skipped`: steps whose data it left out. Digests are short names of the whole config and environment.
    """

    checkpoint: CheckpointIdentity
    came_from: str | None
    first_step: int
    tokens: int | None
    data_version: str | None
    mix: Mapping[str, float] | None
    config_digest: str | None
    environment_digest: str | None
    layout: LayoutSpec | None
    code: CodeSpec | None
    command: str | None
    reason: str | None
    changes: str | None
    repeated: tuple[StepRange, ...]
    skipped: tuple[StepRange, ...]
    loss: float | None


@dataclass(frozen=True, slots=True)
class Provenance:
    """`stages`: newest first. `tokens_by_source` adds up what is known; `unknown` says in words what is not.

    `parents`: every recorded edge from a checkpoint of the chain to where it came from.
    """

    detail: CheckpointDetail
    stages: tuple[Stage, ...]
    parents: tuple[Edge, ...]
    names: Mapping[int, CheckpointIdentity]
    tokens_by_source: Mapping[str, float]
    tokens_total: int | None
    dirty: tuple[CheckpointIdentity, ...]
    unknown: tuple[str, ...]


def read_provenance(session: Session, checkpoint_id: int) -> Provenance:
    """Raises CheckpointNotFound. The chain is followed through at most MAX_STAGES attempts."""
    detail = get_checkpoint(session, checkpoint_id)
    walk = _Walk(session, detail.project_id)
    walk.follow(checkpoint_id)
    names = read_identities(session, sorted({each for edge in walk.edges for each in (edge.child_id, edge.parent_id)}))
    by_source: dict[str, float] = {}
    for stage in walk.stages:
        if stage.tokens:
            mix = stage.mix or {stage.data_version or "not recorded": 1.0}
            for source, share in mix.items():
                by_source[source] = by_source.get(source, 0.0) + share * stage.tokens
    total = detail.tokens_seen
    if total is None:  # a copy has seen what its source saw
        copied = itertools.dropwhile(lambda stage: stage.came_from in COPIES and stage.tokens == 0, walk.stages)
        copied_from = next((stage.checkpoint.id for stage in copied), checkpoint_id)
        total = None if copied_from == checkpoint_id else get_checkpoint(session, copied_from).tokens_seen
    if any(stage.came_from in OWN_COUNT for stage in walk.stages):
        known = [stage.tokens for stage in walk.stages]
        total = sum(each for each in known if each is not None) if None not in known else None
    return Provenance(
        detail=detail,
        stages=tuple(walk.stages),
        parents=tuple(walk.edges),
        names=names,
        tokens_by_source=dict(sorted(by_source.items(), key=lambda item: (-item[1], item[0]))),
        tokens_total=total,
        dirty=tuple(stage.checkpoint for stage in walk.stages if stage.code is not None and stage.code.dirty),
        unknown=tuple(dict.fromkeys(walk.unknown)),
    )


class _Walk:
    """From a checkpoint back to where training began; one stage an attempt."""

    def __init__(self, session: Session, project_id: int) -> None:
        self._session, self._project_id = session, project_id
        self.stages: list[Stage] = []
        self.edges: list[Edge] = []
        self.unknown: list[str] = []
        self._mixes: dict[int, Mix] = {}
        self._digests: dict[tuple[Any, int], str] = {}

    def follow(self, checkpoint_id: int) -> None:
        todo: list[int] = [checkpoint_id]
        been: set[int] = set()
        while todo:
            here_id = todo.pop(0)
            if here_id in been:
                continue
            if len(self.stages) == MAX_STAGES:
                self.unknown.append(f"the chain is longer than {MAX_STAGES} stages; what is before is not shown")
                return
            been.add(here_id)
            todo += self._stage(here_id)

    def _stage(self, checkpoint_id: int) -> list[int]:
        """Adds the stage that ends with a checkpoint; gives what it came from."""
        row, attempt, layout, data, code = self._rows(checkpoint_id)
        parents = self._parents(row, attempt)
        self.edges += [each for each in parents if each not in self.edges]
        relation = parents[0].relation if parents else None
        trained_on = bool(parents) and parents[0].child_id != checkpoint_id  # after an earlier one began so
        loaded = self._checkpoint(parents[0].parent_id) if parents else None
        name = read_identities(self._session, [checkpoint_id])[checkpoint_id]
        self.stages.append(
            Stage(
                checkpoint=name,
                came_from=relation or self._unresolved(attempt),
                first_step=self._first_step(row, attempt),
                tokens=self._tokens(row, _as_begun(relation, trained_on), loaded, name, attempt),
                data_version=data.name if data is not None else None,
                mix=self._mix(data),
                config_digest=self._digest(Config, row.config_id),
                environment_digest=self._digest(Environment, row.environment_id),
                layout=_layout(layout),
                code=None if code is None else CodeSpec(code.commit, code.dirty, code.diff_digest, code.remote),
                command=attempt.command,
                reason=attempt.reason,
                changes=attempt.changes,
                repeated=self._repeated(row, attempt),
                skipped=self._skipped(row, attempt),
                loss=join_number(row.loss, row.loss_special),
            )
        )
        return list(dict.fromkeys(each.parent_id for each in parents))

    def _rows(
        self, checkpoint_id: int
    ) -> tuple[Checkpoint, Attempt, Layout | None, DataVersion | None, CodeVersion | None]:
        own = Checkpoint.project_id
        query = (
            select(Checkpoint, Attempt, Layout, DataVersion, CodeVersion)
            .join(Attempt, (Attempt.project_id == own) & (Attempt.id == Checkpoint.attempt_id))
            .outerjoin(Layout, (Layout.project_id == own) & (Layout.id == Checkpoint.layout_id))
            .outerjoin(DataVersion, (DataVersion.project_id == own) & (DataVersion.id == Checkpoint.data_version_id))
            .outerjoin(CodeVersion, (CodeVersion.project_id == own) & (CodeVersion.id == Checkpoint.code_version_id))
            .where(Checkpoint.id == checkpoint_id)
        )
        row, attempt, layout, data, code = self._session.execute(query).one()
        return row, attempt, layout, data, code

    def _parents(self, row: Checkpoint, attempt: Attempt) -> list[Edge]:
        """The recorded edges of the checkpoint itself; else what its attempt loaded, or the attempt's own edges."""
        own = self._edges_of(LineageEdge.child_id == row.id)
        if own:
            return own
        if attempt.resumed_from_checkpoint_id is not None:
            return [Edge(row.id, attempt.resumed_from_checkpoint_id, Relation.RESUMED.value)]
        earlier = select(Checkpoint.id).where(
            Checkpoint.project_id == self._project_id,
            Checkpoint.attempt_id == attempt.id,
            Checkpoint.step < row.step,
        )
        return self._edges_of(LineageEdge.child_id.in_(earlier))

    def _edges_of(self, condition: Any) -> list[Edge]:
        query = select(LineageEdge.child_id, LineageEdge.parent_id, LineageEdge.relation).where(
            LineageEdge.project_id == self._project_id, LineageEdge.parent_project_id == self._project_id, condition
        )
        return [Edge(*each) for each in self._session.execute(query.order_by(LineageEdge.parent_id).limit(64))]

    def _unresolved(self, attempt: Attempt) -> str | None:
        if attempt.resumed_from_step is None or attempt.resumed_from_checkpoint_id is not None:
            return None
        run = f"run {attempt.resumed_from_run!r}" if attempt.resumed_from_run else "the same run"
        self.unknown.append(f"what was loaded from step {attempt.resumed_from_step:,} of {run} is not recorded here")
        return Relation.RESUMED.value

    def _checkpoint(self, checkpoint_id: int) -> Checkpoint:
        return self._session.get_one(Checkpoint, checkpoint_id)

    def _first_step(self, row: Checkpoint, attempt: Attempt) -> int:
        """After what it loaded, where its steps count on from there; else the first."""
        loaded = attempt.resumed_from_step
        if loaded is None or loaded >= row.step:
            return min(1, row.step)
        saved = select(func.min(Checkpoint.step)).where(
            Checkpoint.project_id == self._project_id, Checkpoint.attempt_id == attempt.id
        )
        first = self._session.scalar(saved)
        return loaded + 1 if first is not None and first > loaded else min(1, row.step)

    def _tokens(
        self,
        row: Checkpoint,
        relation: str | None,
        loaded: Checkpoint | None,
        name: CheckpointIdentity,
        attempt: Attempt,
    ) -> int | None:
        where = f"{name.run.name} step {name.step:,}"
        if relation in COPIES or relation == Relation.MERGED.value:
            if relation == Relation.MERGED.value:
                self.unknown.append(f"{where} merges weights: the tokens of its parents are listed, none are its own")
            return 0
        if row.tokens_seen is None:
            self.unknown.append(f"tokens seen are not recorded for {where}")
            return None
        if relation in OWN_COUNT:
            self.unknown.append(f"tokens of {where} are taken to count from the start of its own training (assumed)")
            return row.tokens_seen
        if loaded is None:
            if attempt.resumed_from_step is not None:
                return None
            return row.tokens_seen
        if loaded.tokens_seen is None or loaded.tokens_seen > row.tokens_seen:
            self.unknown.append(f"what {where} saw before it resumed is not recorded")
            return None
        return row.tokens_seen - loaded.tokens_seen

    def _mix(self, data: DataVersion | None) -> Mapping[str, float] | None:
        if data is None:
            return None
        if data.id not in self._mixes:
            self._mixes |= {data.id: {}} | read_mixes(self._session, [data])
        return shares(self._mixes[data.id])

    def _digest(self, table: Any, identity: int | None) -> str | None:
        if identity is None:
            return None
        key = (table, identity)
        if key not in self._digests:
            query = select(table.digest).where(table.project_id == self._project_id, table.id == identity)
            self._digests[key] = self._session.scalars(query).one().hex()[:16]
        return self._digests[key]

    def _skipped(self, row: Checkpoint, attempt: Attempt) -> tuple[StepRange, ...]:
        query = (
            select(AttemptSkip.from_step, AttemptSkip.to_step)
            .where(AttemptSkip.project_id == self._project_id, AttemptSkip.attempt_id == attempt.id)
            .order_by(AttemptSkip.from_step)
        )
        return tuple(StepRange(first, last, row.attempt_number) for first, last in self._session.execute(query))

    def _repeated(self, row: Checkpoint, attempt: Attempt) -> tuple[StepRange, ...]:
        """Steps of this run that earlier attempts had trained beyond the point where this one went on."""
        if attempt.resumed_from_step is None or attempt.resumed_from_run is not None:
            return ()
        loaded = attempt.resumed_from_checkpoint_id
        if loaded is not None and self._checkpoint(loaded).run_id != row.run_id:
            return ()
        query = (
            select(Checkpoint.attempt_number, func.max(Checkpoint.step), func.max(Attempt.heartbeat_step))
            .join(Attempt, (Attempt.project_id == Checkpoint.project_id) & (Attempt.id == Checkpoint.attempt_id))
            .where(
                Checkpoint.project_id == self._project_id,
                Checkpoint.run_id == row.run_id,
                Checkpoint.attempt_number < attempt.number,
            )
            .group_by(Checkpoint.attempt_number)
            .order_by(Checkpoint.attempt_number)
        )
        found = []
        for number, saved, beaten in self._session.execute(query):
            last = min(max(saved, beaten or 0), row.step)
            if last > attempt.resumed_from_step:
                found.append(StepRange(attempt.resumed_from_step + 1, last, number))
        return tuple(found)


def _as_begun(relation: str | None, trained_on: bool) -> str | None:
    """How the tokens of a stage count: one that trained on from a copy has seen more than its source."""
    return Relation.RESUMED.value if trained_on and relation in COPIES else relation


def _layout(row: Layout | None) -> LayoutSpec | None:
    if row is None:
        return None
    names = ("world_size", "tp", "pp", "dp", "cp", "ep", "sharding")
    return LayoutSpec(**{name: getattr(row, name) for name in names})


def config_text(detail: CheckpointDetail) -> str | None:
    """The config as canonical JSON, with its numbers as they were written."""
    return None if detail.config is None else strict_json.canonical(detail.config)


def ways(edges: Sequence[Edge]) -> list[str]:
    """The relations that occur, in the order of the chain."""
    return list(dict.fromkeys(each.relation for each in edges))
