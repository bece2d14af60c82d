"""The stages of the way to a checkpoint: what each stretch of training was made with, and what it has seen."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry.checkpoints.detail import read_identities
from registry.checkpoints.rows import CheckpointIdentity
from registry.db import join_number
from registry.models import (
    Attempt,
    AttemptSkip,
    Checkpoint,
    CodeVersion,
    Config,
    DataVersion,
    Environment,
    Layout,
    Run,
)
from registry.provenance.data_mix import shares
from registry.provenance.data_seen import CONTINUED, OWN_COUNT, read_mixes
from registry.provenance.late import config_of, environment_of
from registry.provenance.stretches import UNTRAINED, Stretch
from registry.snapshots import CodeSpec, LayoutSpec
from registry.types import Relation
from registry.upsert import chunks


@dataclass(frozen=True, slots=True)
class StepRange:
    """Both ends included. `attempt`: whose steps they are."""

    first: int
    last: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Stage:
    """What a stretch of an attempt did on the way, up to `checkpoint`. `came_from`: how it began (None: from nothing).

    `tokens` seen in it, None where unknown. `repeated`: steps that an abandoned attempt had trained before;
    `skipped`: steps whose data it left out. Digests are short names of the whole config and environment: its own, else
    those that its attempt or run was given later.
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
class _Row:
    checkpoint: Checkpoint
    attempt: Attempt
    run: Run
    layout: Layout | None
    data: DataVersion | None
    code: CodeVersion | None

    @property
    def config_id(self) -> int | None:
        return config_of(self.checkpoint.config_id, self.attempt, self.run).id

    @property
    def environment_id(self) -> int | None:
        return environment_of(self.checkpoint.environment_id, self.attempt).id


class Stages:
    """All that the stages need, read together; `unknown` says in words what is not known."""

    def __init__(self, session: Session, project_id: int, stretches: Sequence[Stretch]) -> None:
        self._session, self._project_id, self._stretches = session, project_id, stretches
        self.unknown: list[str] = []
        self._sources = {each.end: each.parents for each in stretches if each.parents}
        ids = dict.fromkeys(each for stretch in stretches for each in (stretch.end, stretch.after) if each is not None)
        ids |= dict.fromkeys(each for stretch in stretches for edge in stretch.parents for each in edge[:2])
        self._rows = _read_rows(session, list(ids))
        self.names = read_identities(session, list(ids))
        rows = self._rows.values()
        self._mixes = _read_mixes(session, rows)
        self._configs = self._digests(Config, {row.config_id for row in rows})
        self._environments = self._digests(Environment, {row.environment_id for row in rows})
        attempts = sorted({row.attempt.id for row in rows})
        self._skips, self._first_saves = self._read_skips(attempts), self._read_first_saves(attempts)
        self._saved = self._read_saved(sorted({row.attempt.run_id for row in rows}))

    def all(self) -> list[Stage]:
        return [self._stage(each) for each in self._stretches]

    def _stage(self, stretch: Stretch) -> Stage:
        found, relation = self._rows[stretch.end], self._relation(stretch)
        row, attempt, code = found.checkpoint, found.attempt, found.code
        first = self._first_step(stretch)
        return Stage(
            checkpoint=self.names[stretch.end],
            came_from=relation,
            first_step=first,
            tokens=self._tokens(stretch, relation),
            data_version=found.data.name if found.data is not None else None,
            mix=self._mixes.get(found.data.id) if found.data is not None else None,
            config_digest=self._configs.get(found.config_id or 0),
            environment_digest=self._environments.get(found.environment_id or 0),
            layout=_layout(found.layout),
            code=None if code is None else CodeSpec(code.commit, code.dirty, code.diff_digest, code.remote),
            command=attempt.command,
            reason=attempt.reason,
            changes=attempt.changes,
            repeated=self._repeated(row, attempt, first),
            skipped=tuple(
                StepRange(*each, row.attempt_number)
                for each in self._skips.get(attempt.id, ())
                if (first <= each[0] or stretch.after is None) and each[0] <= row.step
            ),
            loss=join_number(row.loss, row.loss_special),
        )

    def _relation(self, stretch: Stretch) -> str | None:
        """How it began; says where what was loaded has no record."""
        if stretch.after is not None:
            return CONTINUED
        if stretch.parents:
            return stretch.parents[0].relation
        attempt = self._rows[stretch.end].attempt
        if attempt.resumed_from_step is None or attempt.resumed_from_checkpoint_id is not None:
            return None
        run = f"run {attempt.resumed_from_run!r}" if attempt.resumed_from_run else "the same run"
        self.unknown.append(f"what was loaded from step {attempt.resumed_from_step:,} of {run} is not recorded here")
        return Relation.RESUMED.value

    def _first_step(self, stretch: Stretch) -> int:
        """After what it went on from, where its steps count on from there; else the first."""
        row, attempt = self._rows[stretch.end].checkpoint, self._rows[stretch.end].attempt
        if stretch.after is not None:
            return self._rows[stretch.after].checkpoint.step + 1
        loaded = attempt.resumed_from_step
        if loaded is None or loaded >= row.step:
            return min(1, row.step)
        return loaded + 1 if self._first_saves.get(attempt.id, loaded) > loaded else min(1, row.step)

    def _tokens(self, stretch: Stretch, relation: str | None) -> int | None:
        row, name = self._rows[stretch.end].checkpoint, self.names[stretch.end]
        where = f"{name.run.name} step {name.step:,}"
        if relation == Relation.MERGED:
            self.unknown.append(
                f"{where} merges weights: what was merged is counted by source, each stretch of training once, and is "
                "not what one model has seen"
            )
        if relation in UNTRAINED:
            return 0
        if row.tokens_seen is None:
            self.unknown.append(f"tokens seen are not recorded for {where}")
            return None
        if relation in OWN_COUNT:
            self.unknown.append(f"tokens of {where} are taken to count from the start of its own training (assumed)")
            return row.tokens_seen
        if stretch.after is None and not stretch.parents:
            return row.tokens_seen if self._rows[stretch.end].attempt.resumed_from_step is None else None
        before = stretch.after if stretch.after is not None else stretch.parents[0].parent_id
        seen = self._seen_until(before)
        if seen is None or seen > row.tokens_seen:
            earlier = self.names[before]
            self.unknown.append(f"what {where} saw after {earlier.run.name} step {earlier.step:,} is not recorded")
            return None
        return row.tokens_seen - seen

    def _seen_until(self, checkpoint_id: int) -> int | None:
        """The count of a checkpoint; of a copy that has none, that of its source; of a merge without one, none yet."""
        been: set[int] = set()
        while checkpoint_id not in been:
            been.add(checkpoint_id)
            seen = self._rows[checkpoint_id].checkpoint.tokens_seen
            edges = self._sources.get(checkpoint_id, ())
            if seen is not None or not edges or edges[0].relation not in UNTRAINED:
                return seen
            if edges[0].relation == Relation.MERGED:
                name = self.names[checkpoint_id]
                self.unknown.append(
                    f"tokens after {name.run.name} step {name.step:,} are taken to count from the merge (assumed)"
                )
                return 0
            checkpoint_id = edges[0].parent_id
        return None

    def _repeated(self, row: Checkpoint, attempt: Attempt, first: int) -> tuple[StepRange, ...]:
        """Steps of this stretch that earlier attempts had trained beyond the point where its attempt went on."""
        begun = attempt.resumed_from_step
        if begun is None or attempt.resumed_from_run is not None:
            return ()
        loaded = self._rows.get(attempt.resumed_from_checkpoint_id or 0)
        if loaded is not None and loaded.checkpoint.run_id != row.run_id:
            return ()
        numbers, lasts = self._saved[row.run_id]
        low = max(begun + 1, first)
        earlier = np.flatnonzero((numbers < attempt.number) & (np.minimum(lasts, row.step) >= low))
        return tuple(StepRange(low, min(int(lasts[each]), row.step), int(numbers[each])) for each in earlier)

    def _digests(self, table: Any, ids: set[int | None]) -> dict[int, str]:
        found: dict[int, str] = {}
        for chunk in chunks(sorted(each for each in ids if each is not None)):
            query = select(table.id, table.digest).where(table.project_id == self._project_id, table.id.in_(chunk))
            found.update((identity, digest.hex()[:16]) for identity, digest in self._session.execute(query))
        return found

    def _read_skips(self, attempts: Sequence[int]) -> dict[int, list[tuple[int, int]]]:
        found: dict[int, list[tuple[int, int]]] = {}
        for chunk in chunks(attempts):
            query = select(AttemptSkip.attempt_id, AttemptSkip.from_step, AttemptSkip.to_step).where(
                AttemptSkip.project_id == self._project_id, AttemptSkip.attempt_id.in_(chunk)
            )
            for attempt_id, first, last in self._session.execute(query.order_by(AttemptSkip.from_step)):
                found.setdefault(attempt_id, []).append((first, last))
        return found

    def _read_first_saves(self, attempts: Sequence[int]) -> dict[int, int]:
        """The least step that each attempt saved."""
        found: dict[int, int] = {}
        for chunk in chunks(attempts):
            query = (
                select(Checkpoint.attempt_id, func.min(Checkpoint.step))
                .where(Checkpoint.project_id == self._project_id, Checkpoint.attempt_id.in_(chunk))
                .group_by(Checkpoint.attempt_id)
            )
            found.update((attempt_id, step) for attempt_id, step in self._session.execute(query))
        return found

    def _read_saved(self, runs: Sequence[int]) -> dict[int, tuple[Any, Any]]:
        """By run: the numbers of its attempts that saved, and the last step that each is known to have reached."""
        rows: dict[int, list[tuple[int, int]]] = {each: [] for each in runs}
        for chunk in chunks(runs):
            query = (
                select(Checkpoint.run_id, Checkpoint.attempt_number, func.max(Checkpoint.step))
                .add_columns(func.max(Attempt.heartbeat_step))
                .join(Attempt, (Attempt.project_id == Checkpoint.project_id) & (Attempt.id == Checkpoint.attempt_id))
                .where(Checkpoint.project_id == self._project_id, Checkpoint.run_id.in_(chunk))
                .group_by(Checkpoint.run_id, Checkpoint.attempt_number)
                .order_by(Checkpoint.run_id, Checkpoint.attempt_number)
            )
            for run_id, number, saved, beaten in self._session.execute(query):
                rows[run_id].append((number, max(saved, beaten or 0)))
        columns = {run_id: np.array(each, dtype=np.int64).reshape(-1, 2).T for run_id, each in rows.items()}
        return {run_id: (each[0], each[1]) for run_id, each in columns.items()}


def _read_rows(session: Session, ids: Sequence[int]) -> dict[int, _Row]:
    own, found = Checkpoint.project_id, dict[int, _Row]()
    for chunk in chunks(ids):
        query = (
            select(Checkpoint, Attempt, Run, Layout, DataVersion, CodeVersion)
            .join(Attempt, (Attempt.project_id == own) & (Attempt.id == Checkpoint.attempt_id))
            .join(Run, (Run.project_id == own) & (Run.id == Checkpoint.run_id))
            .outerjoin(Layout, (Layout.project_id == own) & (Layout.id == Checkpoint.layout_id))
            .outerjoin(DataVersion, (DataVersion.project_id == own) & (DataVersion.id == Checkpoint.data_version_id))
            .outerjoin(CodeVersion, (CodeVersion.project_id == own) & (CodeVersion.id == Checkpoint.code_version_id))
            .where(Checkpoint.id.in_(chunk))
        )
        found.update((row[0].id, _Row(*row)) for row in session.execute(query))
    return found


def _read_mixes(session: Session, rows: Iterable[_Row]) -> dict[int, Mapping[str, float] | None]:
    """The shares of the sources by data version; None where they are not recorded."""
    versions = {row.data.id: row.data for row in rows if row.data is not None}
    found: dict[int, Mapping[str, float] | None] = {}
    for chunk in chunks(versions.values()):
        mixes = read_mixes(session, chunk)
        found.update((each.id, shares(mixes.get(each.id, {}))) for each in chunk)
    return found


def _layout(row: Layout | None) -> LayoutSpec | None:
    if row is None:
        return None
    names = ("world_size", "tp", "pp", "dp", "cp", "ep", "sharding")
    return LayoutSpec(**{name: getattr(row, name) for name in names})
