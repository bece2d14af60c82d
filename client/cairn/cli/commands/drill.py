"""`cairn drill`: a rehearsed restore, kept as evidence."""

import shlex
import socket
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import click

from cairn import wire
from cairn.cli.output import json_option, print_json, print_rows, say
from cairn.cli.progress import bytes_bar
from cairn.cli.quantities import DURATION, LAYOUT, size
from cairn.cli.targets import find_checkpoint, find_run
from cairn.client import Client
from cairn.drill import Asked, NothingToDrill, Rehearsal, Target, check_command, choose_copy, find_due, rehearse
from cairn.errors import CairnError
from cairn.fetch import FetchFailed
from cairn.formats.checkpoints import OutOfReach
from cairn.types import Drill, Run

CHECKS = {
    "read": "every byte read",
    "verify": "content as recorded",
    "files": "files as recorded",
    "run": "command",
    "continuation": "losses as recorded",
    "cold_start": "no cold start",
}


@click.command()
@click.argument("checkpoint", metavar="CHECKPOINT", required=False)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option(
    "--due",
    type=DURATION,
    metavar="AGE",
    help="Instead of CHECKPOINT: of each run without a drill for so long, e.g. 7d.",
)
@click.option("--project", help="With --due: the runs of this project. Default: all that the token sees.")
@click.option("--run", "runs", multiple=True, metavar="PROJECT/RUN|ID", help="With --due: this run. May be repeated.")
@click.option("--replica", metavar="ID", help="This copy, whatever the plan says of it. Default: the fastest.")
@click.option(
    "--into",
    type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
    help="Copy it into a folder below this one. Default: a path is read in its place.",
)
@click.option("--keep", is_flag=True, help="Leave the copy and the losses where they are.")
@click.option("--layout", type=LAYOUT, help="The layout that COMMAND loads it in, e.g. tp=4,pp=2,dp=8.")
@click.option("--steps", type=click.IntRange(1, 10_000), default=10, show_default=True, help="How many COMMAND trains.")
@click.option("--cold", metavar="COMMAND", help="Trains from nothing; for a run whose first losses are not recorded.")
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1000, min_open=True),
    metavar="N",
    help="How far losses may be off, in times the noise of the recorded curve. Default: 3.",
)
@click.option("--timeout", type=DURATION, help="A command that takes longer has failed, e.g. 30m.")
@json_option
def drill(
    checkpoint: str | None,
    command: tuple[str, ...],
    due: float | None,
    project: str | None,
    runs: tuple[str, ...],
    replica: str | None,
    into: Path | None,
    keep: bool,
    layout: dict[str, int] | None,
    steps: int,
    cold: str | None,
    tolerance: float | None,
    timeout: float | None,
    as_json: bool,
) -> int:
    """Rehearse a restore for real, and keep the verdict and the measured seconds as evidence.

    \b
    cairn drill llm/7b-a@41000
    cairn drill --due 7d --project llm
    cairn drill llm/7b-a@41000 --layout tp=4,pp=2,dp=8 -- \\
        torchrun train.py --load {path} --train-steps {steps} --losses {out}

    The copy is read whole and verified against what is recorded; its files are held against the record. COMMAND then
    loads it and trains {steps} steps. It writes JSON lines {"step": 41001, "loss": 1.75} to the file {out}, or to
    standard output; a line may also hold "software" and "layout" of what really ran. {path} is where the copy is,
    {step} its step. COMMAND runs without a shell.

    COMMAND may be the training itself. CAIRN_DRILL is set for it, and under that nothing is recorded: `cairn.start`
    answers with what records nothing, `cairn exec` only runs its job, and `cairn record`, `watch`, `resume` and calls
    that would write are refused. What it saves it saves all the same: let it save into a folder of its own.

    The service compares the losses with those that the run recorded after the checkpoint, and with its first ones: a
    loss like that of a cold start means that the weights were not loaded. What was not tried is never passed. A failed
    drill is recorded too; ^C or TERM leaves nothing behind and records nothing.

    --due 7d drills the newest checkpoint that can be tried here of each run that nobody has drilled for seven days: for
    cron. A run of which nothing can be tried here is named, and the others are drilled.

    A copy that this host cannot read (another kind of address, no credentials, a file system that is not mounted) is
    not tried, and nothing is recorded of it; a copy that is gone, or is not what is recorded, has failed.

    Exit codes: 0 passed, or nothing was due; 1 failed, or no copy can be tried here; 2 usage; 3 the service refused, or
    this host cannot hold the copy.
    """
    if due is not None and checkpoint is not None:
        command, checkpoint = (checkpoint, *command), None  # what stands after -- is all COMMAND
    _check_target(checkpoint, command, due, project, runs, replica)
    words = _split(cold)
    if command:
        check_command(command)
    if words:
        check_command(words, loads=False)
    if not command and (words or layout or timeout or tolerance):
        raise click.UsageError("--cold, --layout, --timeout and --tolerance are about a COMMAND: give one after --.")
    host = socket.gethostname()
    asked = Asked(host, into, keep, layout, command, words, steps, tolerance, timeout)
    with Client() as client:
        if due is not None:
            chosen = [find_run(client, each) for each in runs] if runs else client.list_runs(project=project)
            return _drill_due(client, chosen, due, asked, as_json)
        assert checkpoint is not None
        try:
            target = choose_copy(client, find_checkpoint(client, checkpoint), host, replica)
        except NothingToDrill as nothing:
            say(nothing.detail)
            return 1
        try:
            done = _rehearsed(target, asked)
        except OutOfReach as fault:
            say(f"Nothing is recorded: this host can no longer read the copy. {fault}")
            return 1
        kept = _recorded(client, target, done)
    if as_json:
        print_json(_as_json(kept, done))
    else:
        _print(kept, done)
    return 0 if kept.verdict == "passed" else 1


def _check_target(
    checkpoint: str | None,
    command: tuple[str, ...],
    due: float | None,
    project: str | None,
    runs: tuple[str, ...],
    replica: str | None,
) -> None:
    if due is None:
        if checkpoint is None:
            raise click.UsageError("Name a CHECKPOINT, or say --due AGE.")
        if project is not None or runs:
            raise click.UsageError("--project and --run belong to --due.")
        return
    if replica is not None or (project is not None and runs):
        raise click.UsageError("--due takes either --project or --run, and chooses the copies itself.")
    if command and "@" in command[0]:
        raise click.UsageError(f"Say either CHECKPOINT ({command[0]}) or --due.")


def _drill_due(client: Client, runs: Iterable[Run], age_seconds: float, asked: Asked, as_json: bool) -> int:
    """One after the other; what goes wrong with one leaves the others."""
    since = datetime.now(timezone.utc) - timedelta(seconds=age_seconds)
    told, codes = [], [0]
    for each in find_due(client, runs, asked.host, since):
        if each.target is None:
            say(f"{each.run} is due, and nothing of it can be tried here. {each.why}")
            codes.append(1)
            continue
        try:
            done = _rehearsed(each.target, asked)
        except (FetchFailed, OutOfReach, OSError) as fault:
            say(f"{each.target.checkpoint} could not be tried: {fault}")
            codes.append(1 if isinstance(fault, OutOfReach) else 3)
            continue
        kept = _recorded(client, each.target, done)
        told.append(_as_json(kept, done))
        codes.append(0 if kept.verdict == "passed" else 1)
        if not as_json:
            _print(kept, done)
    if as_json:
        print_json({"items": told})
    elif len(codes) == 1:
        say("No drill is due.")
    return max(codes)


def _as_json(kept: Drill, done: Rehearsal) -> dict[str, Any]:
    return {**kept.raw, "kept": done.kept or None}


def _split(text: str | None) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text or ""))
    except ValueError as fault:
        raise click.UsageError(f"--cold cannot be split into words: {fault}.") from None
    if text is not None and not words:
        raise click.UsageError("--cold is empty.")
    return words


def _rehearsed(target: Target, asked: Asked) -> Rehearsal:
    say(f"Drilling {target.checkpoint} with the copy on {target.copy.tier}, {target.path}.")
    if target.remark:
        say(f"{target.remark}.")
    with bytes_bar("Reading", target.copy.bytes) as progress:
        return rehearse(target, asked, say=say, progress=progress)


def _recorded(client: Client, target: Target, done: Rehearsal) -> Drill:
    """What the service made of it. A report that it does not take is printed: the work was done."""
    try:
        return client.record_drill(target.checkpoint, **done.report)
    except CairnError:
        body = {"checkpoint_id": target.checkpoint.id, **done.report}
        say(f"The drill is not recorded. Its report: {wire.encode(body).decode()}")
        raise


def _print(kept: Drill, done: Rehearsal) -> None:
    exact = {True: ", exact", False: "", None: ""}[kept.exact]
    say(f"{kept.verdict.capitalize()}{exact}: {kept.checkpoint}, drill {kept.id}.")
    if kept.reason:
        say(f"{kept.reason[0].upper()}{kept.reason[1:].removesuffix('.')}.")
    print_rows(("check", "result", "seconds"), [_row(name, words, kept) for name, words in CHECKS.items()])
    if done.read is not None:
        by = f"verified by {done.read.verified_by}" if done.read.verified else "no digests are recorded: sizes only"
        say(f"{size(done.read.bytes)} in {done.read.files} files; {by}.")
    if kept.comparison:
        say(f"Compared: {kept.comparison}.")
    if done.kept:
        say(f"Kept: {done.kept}")


def _row(name: str, words: str, kept: Drill) -> tuple[Any, ...]:
    times = [kept.seconds.get(stage) for stage in (("load", "run") if name == "run" else (name,))]
    known = [each for each in times if isinstance(each, (int, float))]
    return words, str(kept.checks.get(name)).replace("_", " "), f"{sum(known):.2f}" if known else None
