"""`cairn show`: one checkpoint, with everything that decides whether and how to use it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from cairn.cli.output import json_option, points, print_facts, print_json, print_rows, say
from cairn.cli.quantities import size
from cairn.cli.targets import find_checkpoint
from cairn.client import Client
from cairn.types import Checkpoint, Finding, Lineage, Profile, Suspicion

SCORES, RELATIVES = 30, 20  # rows, unless --all
SCORE_COLUMNS = ("benchmark", "metric", "filter", "value", "stderr", "samples", "shots", "evaluated")


@dataclass(frozen=True)
class Told:
    """All that is asked of the service about one checkpoint."""

    checkpoint: Checkpoint
    profile: Profile
    lineage: Lineage
    suspicion: Suspicion
    findings: Sequence[Finding]


@click.command()
@click.argument("checkpoint", metavar="CHECKPOINT")
@click.option("--all", "show_all", is_flag=True, help="Every score and every parent and child.")
@json_option
def show(checkpoint: str, show_all: bool, as_json: bool) -> None:
    """One checkpoint: pieces, copies, scores, where it stands, lineage, and what speaks against it.

    \b
    cairn show llm/7b@41000          of its newest attempt
    cairn show llm/7b@2.41000        of attempt 2
    cairn show llm/production        what an alias points at
    """
    with Client() as client:
        told = _read(client, find_checkpoint(client, checkpoint))
    if as_json:
        others = {name: getattr(told, name).raw for name in ("profile", "lineage", "suspicion")}
        print_json({"checkpoint": told.checkpoint.raw, **others, "findings": [each.raw for each in told.findings]})
        return
    print_facts(_facts(told))
    click.echo()
    print_rows(("piece", "state", "evidence"), _pieces(told.checkpoint))
    _print_copies(told.checkpoint)
    _print_scores(told, show_all)
    _print_relatives(told.lineage, show_all)


def _read(client: Client, found: Checkpoint) -> Told:
    detail = client.get_checkpoint(found)  # a listing says less
    findings = client.iter_findings(run=detail.run.id) if detail.run else ()
    own = [each for each in findings if each.checkpoint is not None and each.checkpoint.id == detail.id]
    return Told(detail, client.profile(detail), client.lineage(detail), client.get_suspicion(detail), own)


def _facts(told: Told) -> Iterator[tuple[str, Any]]:
    own = told.checkpoint
    raw = own.raw
    yield "run", f"{own.project}/{own.run.name if own.run else '?'}"
    yield "attempt, step", f"{own.attempt}, {own.step}" + (" (light)" if own.kind == "light" else "")
    yield "id", own.id
    yield "state", own.state
    if own.superseded:
        yield "superseded", "a newer attempt went back to before this step"
    yield from _verdicts(told)
    yield "resumability", own.resumability
    yield "saved", own.saved_at
    if raw.get("saved_at_assumed"):
        yield "saved, assumed", "when the record arrived; nobody said"
    for name in ("loss", "lr", "tokens_seen", "epoch", "save_seconds", "stall_seconds"):
        yield name.replace("_", " "), getattr(own, name)
    yield "layout", _known(own.layout)
    yield "format", " ".join(filter(None, (own.format, raw.get("format_version"))))
    yield "data version", _named(own.data_version)
    yield "code", _code(own.code)
    yield "aliases", ", ".join(own.aliases)
    yield "milestone", own.milestone or None
    yield "tags", own.tags
    yield "note", own.notes
    yield "metrics", own.metrics


def _verdicts(told: Told) -> Iterator[tuple[str, Any]]:
    """What speaks against loading it, or was found on it."""
    whole = told.suspicion.suspicion
    if told.suspicion.suspect and whole:
        yield "suspect", f"{whole.get('reason')}. {(whole.get('instead') or {}).get('sentence', '')}".strip()
    for copy in told.suspicion.copies:
        yield "suspect copy", f"{copy.get('replica_id')}: {copy.get('reason')}"
    for finding in told.findings:
        yield f"finding, {finding.state}", finding.sentence


def _known(values: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (values or {}).items() if value not in (None, {})}


def _named(data: Any) -> Any:
    return data.get("name") if isinstance(data, Mapping) else data


def _code(code: Any) -> str | None:
    if not isinstance(code, Mapping) or not code.get("commit"):
        return None
    return f"{code['commit']}{' with local changes' if code.get('dirty') else ''}"


def _pieces(checkpoint: Checkpoint) -> Iterator[tuple[Any, ...]]:
    said = checkpoint.raw.get("piece_evidence") or {}
    for name, presence in checkpoint.pieces.items():
        told = said.get(name) or {}
        kind = {"state": "a loader state", "counter": "a counter of samples"}.get(told.get("position_evidence") or "")
        yield name, presence, ", ".join(filter(None, (told.get("evidence"), kind)))


def _print_copies(checkpoint: Checkpoint) -> None:
    if not checkpoint.replicas:
        say("No copy of its files is recorded. `cairn record --path` or `cairn scan` records one.")
        return
    columns = ("copy", "tier", "host", "state", "content", "size", "files", "copy id")
    click.echo()
    print_rows(
        columns,
        [
            (
                *(each.get(name) for name in ("uri", "tier", "host", "state", "verification")),
                None if each.get("bytes") is None else size(each["bytes"]),
                each.get("file_count"),
                each.get("id"),
            )
            for each in checkpoint.replicas
        ],
    )


def _print_scores(told: Told, show_all: bool) -> None:
    if told.profile.capabilities:
        columns = ("capability", "percentile", "normalised", "measured", "benchmarks")
        click.echo()
        print_rows(columns, [_standing_row(each) for each in told.profile.capabilities])
    scores = [each for each in told.checkpoint.scores if each.raw.get("current", True)]
    if not scores:
        say("It was not evaluated: `cairn evals FILE --checkpoint ID` sends results. Unknown is not weak.")
        return
    first = {(one.benchmark, one.metric) for each in told.profile.capabilities for one in each.benchmarks}
    scores.sort(key=lambda each: ((each.benchmark, each.metric) not in first, each.benchmark, each.metric))
    shown = scores if show_all else scores[:SCORES]
    names = ("benchmark", "metric", "filter", "value", "stderr", "n_samples", "n_shot", "evaluated_at")
    click.echo()
    print_rows(SCORE_COLUMNS, [tuple(getattr(each, name) for name in names) for each in shown])
    if len(shown) < len(scores):
        say(f"{len(shown)} of {len(scores)} scores are shown; --all shows the others.")


def _standing_row(each: Any) -> tuple[Any, ...]:
    measured = ", ".join(dict.fromkeys(one.benchmark for one in each.benchmarks))
    return each.capability, points(each.percentile), each.composite, points(each.coverage), measured


def _print_relatives(found: Lineage, show_all: bool) -> None:
    """Its own parents and children; `cairn lineage` has the rest of the tree."""
    from cairn.cli.commands.lineage import WORDS

    own = found.checkpoint.id
    near = [edge for edge in (*found.ancestors, *found.descendants) if own in (edge.child, edge.parent)]
    if not near:
        return
    named = {each.id: f"{each.project}/{each}" for each in found.checkpoints}
    rows = []
    for edge in near if show_all else near[:RELATIVES]:
        upwards = edge.child == own
        other, word = (edge.parent, "") if upwards else (edge.child, "child, ")
        rows.append((f"{word}{WORDS.get(edge.relation, edge.relation)}", named.get(other, "?"), other))
    click.echo()
    print_rows(("lineage", "checkpoint", "id"), rows)
    if len(rows) < len(found.ancestors) + len(found.descendants):
        say(f"`cairn lineage {own}` shows the whole tree.")
