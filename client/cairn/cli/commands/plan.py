"""`cairn plan`: what restoring a checkpoint would take, copy by copy."""

import socket
from collections.abc import Sequence
from typing import Any

import click

from cairn.cli.output import json_option, print_json, print_rows, say
from cairn.cli.quantities import DURATION, LAYOUT, size
from cairn.cli.targets import find_checkpoint_id
from cairn.client import Client
from cairn.numbers import number_from_wire
from cairn.types import CopyOption, RestorePlan

TERMS = {
    "detect_decide_schedule_seconds": "notice and schedule",
    "thaw_seconds": "thaw",
    "transfer_seconds": "read",
    "verify_seconds": "verify",
    "convert_seconds": "convert",
    "load_seconds": "load",
}


@click.command()
@click.argument("checkpoint", metavar="CHECKPOINT")
@click.option("--layout", type=LAYOUT, help="Today's ranks, e.g. tp=4,pp=2,dp=8. Default: as it was saved.")
@click.option("--rto", "rto_seconds", type=DURATION, help="How long a restore may take, e.g. 10m.")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    help="A host that is there, which local copies need; again for more. Default: this one, where it holds a copy.",
)
@json_option
def plan(
    checkpoint: str, layout: dict[str, int] | None, rto_seconds: float | None, hosts: tuple[str, ...], as_json: bool
) -> int:
    """Show what restoring a checkpoint would take from each of its copies, the fastest feasible first.

    \b
    cairn plan llm/7b-a@41000
    cairn plan llm/7b-a@41000 --layout tp=4,pp=2,dp=8 --rto 10m --host node1 --host node2

    Nothing is read or copied. What is not feasible comes with the reason; what has to be trained again since the
    checkpoint (replay) stands beside the time of the restore, and is no part of it.
    Exit codes: 0 it can be restored; 1 no copy can be, or none within --rto; 2 usage; 3 the service failed.
    """
    with Client() as client:
        identity = find_checkpoint_id(client, checkpoint)
        found = client.restore_plan(identity, layout=layout, rto_seconds=rto_seconds, hosts=hosts)
        if not hosts and _lies_here(found):
            here = [socket.gethostname()]
            found = client.restore_plan(identity, layout=layout, rto_seconds=rto_seconds, hosts=here)
    if as_json:
        print_json(found.raw)
    else:
        _print(found)
    return 1 if found.chosen is None or found.obstacle else 0


def _lies_here(found: RestorePlan) -> bool:
    """Whether a copy is on this host's own disks: the host that asks is there."""
    here = socket.gethostname()
    return any(
        each.tier == "local" and here in (each.host, *(part.host for part in each.parts)) for each in found.copies
    )


def _print(found: RestorePlan) -> None:
    say(f"{found.checkpoint}: {found.sentence}")
    if found.copies:
        columns = ("copy", "tier", "feasible", "size", "expected", "95 %", "takes", "why", "drills", "id")
        print_rows(columns, [_row(each) for each in found.copies])
    if replay := found.replay.get("words"):
        say(f"Replay: {replay}.")
    if proof := found.restorable.get("words"):
        say(f"Proof: {proof}.")
    fits = found.compatibility.pieces if found.compatibility is not None else None
    if fits is not None:
        rows = [
            (name.replace("_", " "), fit.verdict, fit.words)
            for name in ("weights", "optimizer", "data_position", "random_state")
            if (fit := getattr(fits, name)) is not None
        ]
        print_rows(("piece", "loads", "words"), rows)
    for note in found.notes:
        say(f"Note: {note.removesuffix('.')}.")
    for assumption in found.assumptions:
        say(f"Assumed: {assumption.removesuffix('.')}.")


def _row(each: CopyOption) -> tuple[Any, ...]:
    return (
        each.uri,
        each.tier,
        each.feasible,
        None if each.bytes is None else size(each.bytes),
        shown(each.seconds),
        shown(each.p95_seconds),
        takes(each),
        each.reason,
        each.reliability.get("words"),
        each.replica_id,
    )


def takes(each: CopyOption) -> str:
    """What the time is made of: 'notice and schedule 8.0 min, read 20 s, verify 6.2 s, load 20 s'."""
    known: Sequence[tuple[str, float | None]] = [
        (words, number_from_wire((each.terms or {}).get(name))) for name, words in TERMS.items()
    ]
    return ", ".join(f"{words} {shown(seconds)}" for words, seconds in known if seconds)


def shown(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    if seconds < 120:
        return f"{seconds:.3g} s" if seconds >= 0.001 else "0 s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
