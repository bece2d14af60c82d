"""What decides whether a recorded checkpoint can be loaded: its pieces, its layout, and the model that it is of."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.checkpoints.detail import read_config
from registry.checkpoints.registration import PieceSpec
from registry.layout.model_shape import other_model
from registry.layout.resharding import CALLED, COUNTER, Compatibility, compatibility
from registry.layout.spec import Degrees
from registry.models import Attempt, Checkpoint, Layout, Piece, Run
from registry.provenance.config_diff import classify, diff_configs
from registry.recovery.reshape import degrees_of, saved_of
from registry.snapshots import LayoutSpec, flatten
from registry.types import PieceName, Presence
from registry.upsert import chunks
from registry.wording import listed

# What going on without a piece costs.
CONSEQUENCES: Final = {
    PieceName.WEIGHTS: "there is nothing to load",
    PieceName.OPTIMIZER: "its moments would be forgotten",
    PieceName.DATA_POSITION: "data would be repeated or left out",
    PieceName.RANDOM_STATE: "dropout and shuffling would take another course",
}
NOTHING_SAID: Final[Mapping[PieceName, PieceSpec]] = dict.fromkeys(PieceName, PieceSpec(Presence.UNKNOWN))
# Settings of the class data that say how it is loaded, not which sample comes when.
_HOW_IT_IS_LOADED: Final = ("num_workers", "prefetch", "pin_memory", "persistent_workers", "micro_batch", "per_gpu")


@dataclass(frozen=True, slots=True)
class Facts:
    """Of one checkpoint. `counted`: the samples or tokens that it has seen are recorded. `config` is flat."""

    format: str | None
    layout: Layout | LayoutSpec | None
    pieces: Mapping[PieceName, PieceSpec]
    counted: bool
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def presence(self) -> dict[PieceName, Presence]:
        return {name: Presence(self.pieces[name].presence) for name in PieceName}

    @property
    def position(self) -> str | None:
        """The evidence of its data position: a loader's `state`, or a `counter`."""
        return self.pieces[PieceName.DATA_POSITION].position_evidence


def read_facts(session: Session, project_id: int, checkpoint_ids: Collection[int]) -> dict[int, Facts]:
    """By checkpoint. A layout or config that its own record leaves out is that of its attempt, then of its run."""
    found: dict[int, Facts] = {}
    layouts: dict[int, Layout] = {}
    configs: dict[int, Mapping[str, Any]] = {}
    for chunk in chunks(sorted(checkpoint_ids)):
        pieces = _read_pieces(session, project_id, chunk)
        query = (
            select(
                Checkpoint.id,
                Checkpoint.format,
                Checkpoint.tokens_seen,
                Checkpoint.data_cursor,
                func.coalesce(Checkpoint.layout_id, Attempt.layout_id).label("layout_id"),
                func.coalesce(Checkpoint.config_id, Attempt.config_id, Run.config_id).label("config_id"),
            )
            .join(Attempt, (Attempt.project_id == Checkpoint.project_id) & (Attempt.id == Checkpoint.attempt_id))
            .join(Run, (Run.project_id == Checkpoint.project_id) & (Run.id == Checkpoint.run_id))
            .where(Checkpoint.project_id == project_id, Checkpoint.id.in_(chunk))
        )
        rows = session.execute(query).all()
        wanted = {row.layout_id for row in rows if row.layout_id is not None} - layouts.keys()
        layouts |= {each.id: each for each in session.scalars(select(Layout).where(Layout.id.in_(sorted(wanted))))}
        for config_id in {row.config_id for row in rows if row.config_id is not None} - configs.keys():
            configs[config_id] = dict(flatten(read_config(session, config_id)))
        for row in rows:
            cursor = strict_json.loads(row.data_cursor.encode()) if row.data_cursor else None
            found[row.id] = Facts(
                format=row.format,
                layout=layouts.get(row.layout_id),
                pieces=pieces.get(row.id, NOTHING_SAID),
                counted=has_counted(row.tokens_seen, cursor),
                config=configs.get(row.config_id, {}),
            )
    return found


def _read_pieces(
    session: Session, project_id: int, checkpoint_ids: Collection[int]
) -> dict[int, dict[PieceName, PieceSpec]]:
    query = select(Piece).where(Piece.project_id == project_id, Piece.checkpoint_id.in_(checkpoint_ids))
    found: dict[int, dict[PieceName, PieceSpec]] = {}
    for row in session.scalars(query):
        own = found.setdefault(row.checkpoint_id, dict(NOTHING_SAID))
        own[PieceName(row.name)] = PieceSpec(row.presence, row.evidence, row.position_evidence, row.moment)
    return found


def compatibility_of(facts: Facts, target: LayoutSpec | None, config: Mapping[str, Any] | None = None) -> Compatibility:
    """What of a checkpoint the target can load. `config`: today's, as it was written; its model is compared.

    Raises ContradictoryLayout.
    """
    today = dict(flatten(config)) if config else {}
    if target is not None:
        today |= dict(target.extra)
    version = str(target.extra.get("mcore_version", "")) if target is not None else ""
    parts = version.split(".")[:2]
    return compatibility(
        saved_of(facts.layout, facts.format),
        degrees_of(target) if target is not None else Degrees(),
        facts.presence,
        position=facts.position,
        counted=facts.counted,
        impossible=other_model(facts.config, today) if today else "",
        mcore=tuple(map(int, parts)) if all(part.isascii() and part.isdigit() for part in parts) else None,
    )


def mixed_moments(pieces: Mapping[PieceName, PieceSpec]) -> str:
    """Why the pieces are not of one save, in words; '' where nothing says so."""
    said = {name: piece.moment for name, piece in pieces.items() if piece.moment and piece.presence == Presence.PRESENT}
    if len(set(said.values())) < 2:
        return ""
    told = ", ".join(f"{CALLED[name]} of {moment}" for name, moment in said.items())
    return f"its pieces are of different saves: {told}"


def counter_broken(saved: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """Why a counter of samples no longer tells the position: what of data, seed and batch size differs; '' nothing.

    `saved` is flat, `config` as it was written. What only one side says is not held against it.
    """
    changes = [
        f"{each.path} {each.old} to {each.new}"
        for each in diff_configs(saved, dict(flatten(config)))
        if each.change == "changed" and classify(each.path) == "data" and not _how_it_is_loaded(each.path)
    ]
    return listed(changes, 5)


def _how_it_is_loaded(path: str) -> bool:
    return any(word in path.lower() for word in _HOW_IT_IS_LOADED)


def is_counter(facts: Facts) -> bool:
    return facts.position == COUNTER and facts.presence[PieceName.DATA_POSITION] is Presence.PRESENT


def has_counted(tokens_seen: int | None, cursor: Any) -> bool:
    """Whether the samples seen are recorded beside a loader's own state."""
    keys = " ".join(map(str, cursor)).lower() if isinstance(cursor, Mapping) else ""
    return tokens_seen is not None or "consumed" in keys or "samples" in keys
