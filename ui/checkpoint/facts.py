"""The facts of one checkpoint as its page shows them: pieces, copies, layout, data, code, lineage."""

from collections.abc import Mapping, Sequence
from typing import Any

from registry.checkpoints.detail import CheckpointDetail
from registry.checkpoints.registration import PieceSpec
from registry.ids import to_text
from registry.lineage import Edge
from registry.overview.briefs import Brief
from registry.snapshots import flatten
from registry.strict_json import canonical
from registry.types import PieceName, Presence
from ui import filters
from ui.contexts import Fact
from ui.contexts.checkpoint import LineageRow, PieceRow, ReplicaRow, SourceRow
from ui.refs import config_text, ref_of

# What resuming loses without a piece, and what it means not to know.
CONSEQUENCES = {
    PieceName.WEIGHTS: ("Nothing can be loaded.", "Nothing is proven to be loadable."),
    PieceName.OPTIMIZER: ("The moments are forgotten: expect a bump in the loss.", "The moments may be forgotten."),
    PieceName.DATA_POSITION: ("Data will be repeated or skipped.", "Data may be repeated or skipped."),
    PieceName.RANDOM_STATE: ("It continues, but not bit for bit.", "It may not continue bit for bit."),
}


def facts_of(detail: CheckpointDetail, brief: Brief) -> tuple[Fact, ...]:
    saved = filters.absolute(detail.checkpoint.saved_at) + (
        " (arrival; nobody said)" if detail.saved_at_assumed else ""
    )
    facts = [
        Fact("saved", saved),
        Fact("loss", filters.number(detail.loss), filters.exact(detail.loss)),
        Fact("learning rate", filters.number(detail.lr), filters.exact(detail.lr)),
        Fact("tokens seen", filters.count(detail.tokens_seen), filters.exact(detail.tokens_seen)),
        Fact("epoch", filters.number(detail.epoch), filters.exact(detail.epoch)),
        Fact("parameters", filters.count(brief.parameter_count), filters.exact(brief.parameter_count)),
        Fact("size of a copy", filters.size(brief.copies.bytes), filters.exact(brief.copies.bytes)),
        Fact("saving took", filters.duration(detail.save_seconds), filters.exact(detail.save_seconds)),
        Fact("training stalled", filters.duration(detail.stall_seconds), filters.exact(detail.stall_seconds)),
        Fact("format", " ".join(filter(None, (detail.format, detail.format_version))) or filters.MISSING),
    ]
    facts = [fact for fact in facts if fact.value != filters.MISSING]
    if detail.milestone:
        facts.append(Fact("milestone", "kept for ever"))
    if detail.data_cursor is not None:
        text = filters.middle(_cursor_text(detail.data_cursor), 60)
        facts.append(Fact("data cursor", text, canonical(detail.data_cursor)[:2000], mono=True))
    return tuple(facts)


def _cursor_text(cursor: object) -> str:
    """Where the data stood, in the names that the loader gave: offset 60, shard 3."""
    return ", ".join(f"{path} {config_text(value)}".strip() for path, value in flatten(cursor))


def piece_row(name: PieceName, piece: PieceSpec) -> PieceRow:
    evidence = piece.evidence or {"unknown": "nobody said", "absent": "recorded as absent"}.get(
        piece.presence, "recorded as present"
    )
    if piece.position_evidence:
        evidence += ", a loader state" if piece.position_evidence == "state" else ", a counter of samples"
    absent, unknown = CONSEQUENCES[name]
    said = {Presence.ABSENT.value: absent, Presence.UNKNOWN.value: unknown}
    return PieceRow(name.value, str(piece.presence), evidence, said.get(str(piece.presence), ""))


def replica_rows(detail: CheckpointDetail) -> tuple[ReplicaRow, ...]:
    def state(each: Any) -> str:
        if each.state != "present":
            return str(each.state)
        return {"verified": "verified", "corrupt": "corrupt"}.get(each.verification, "present")

    return tuple(
        ReplicaRow(
            id=to_text(each.id),
            uri=each.uri,
            tier=each.tier,
            host=each.host,
            bytes=each.bytes,
            files=each.file_count,
            state=state(each),
            digest=f"{each.digest_algorithm}:{each.digest}" if each.digest else None,
            recorded_at=each.recorded_at,
            managed="managed" if each.managed else "unmanaged",
            parts="; ".join(f"{host}: ranks {ranks}" for host, ranks, _ in each.parts),
        )
        for each in detail.replicas
    )


def layout_facts(detail: CheckpointDetail) -> tuple[Fact, ...]:
    layout = detail.layout
    if layout is None:
        return ()
    named = (
        ("world size", layout.world_size),
        ("tensor parallel", layout.tp),
        ("pipeline parallel", layout.pp),
        ("data parallel", layout.dp),
        ("context parallel", layout.cp),
        ("expert parallel", layout.ep),
    )
    facts = [Fact(name, filters.grouped(value) if value is not None else "unknown") for name, value in named]
    facts.append(Fact("sharding", layout.sharding or "unknown"))
    return (*facts, *flat_facts(layout.extra))


def flat_facts(values: Mapping[str, Any] | None) -> tuple[Fact, ...]:
    return tuple(Fact(path, config_text(value), mono=True) for path, value in flatten(values)) if values else ()


def source_rows(detail: CheckpointDetail) -> tuple[SourceRow, ...]:
    mix = detail.data_version.mix if detail.data_version else {}
    total = sum(source.weight or 0.0 for source in mix.values())
    rows = [
        SourceRow(name, source.weight / total if source.weight is not None and total else None, source.tokens)
        for name, source in mix.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-(row.weight or 0.0), row.name)))


def code_facts(detail: CheckpointDetail) -> tuple[Fact, ...]:
    code = detail.code
    if code is None:
        return ()
    tree = {None: "unknown whether clean", True: "with uncommitted changes", False: "clean"}[code.dirty]
    facts = [Fact("commit", code.commit or "not recorded", mono=code.commit is not None), Fact("tree", tree)]
    if code.diff_digest:
        facts.append(Fact("digest of the changes", filters.middle(code.diff_digest, 40), code.diff_digest, mono=True))
    if code.remote:
        href = code.remote if code.remote.startswith(("https://", "http://")) else None
        facts.append(Fact("repository", code.remote, href=href))
    return tuple(facts)


def lineage_rows(
    own: int, edges: Sequence[Edge], briefs: Mapping[int, Brief], *, cut: bool = False
) -> tuple[LineageRow, ...]:
    """A row for each relation to another attempt: its first checkpoint, and how many more there are.

    Every checkpoint of an attempt comes from what the attempt resumed from. `cut`: there are further edges.
    """
    groups: dict[tuple[str, str, object], list[Brief | None]] = {}
    for edge in edges:
        upwards = edge.child_id == own
        other = briefs.get(edge.parent_id if upwards else edge.child_id)
        attempt = (other.run_id, other.attempt) if other else edge
        direction = "this came from" if upwards else "this led to"
        groups.setdefault((direction, edge.relation, attempt), []).append(other)
    return tuple(_lineage_row(direction, relation, found, cut) for (direction, relation, _), found in groups.items())


def _lineage_row(direction: str, relation: str, found: Sequence[Brief | None], cut: bool) -> LineageRow:
    known = sorted((each for each in found if each is not None), key=lambda each: each.step)
    if not known:
        return LineageRow(direction, relation, None, "not registered")
    more = len(known) - 1
    amount = f"{filters.grouped(more)} or more" if cut else f"{filters.grouped(more)} more"
    words = f"and {amount} of that attempt, up to step {filters.grouped(known[-1].step)}" if more else ""
    return LineageRow(direction, relation, ref_of(known[0]), words)
