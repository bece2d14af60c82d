"""`cairn resume`: the path that a launch script loads."""

import re
import socket
from typing import Any

import click

from cairn.cli.output import json_option, print_json, say
from cairn.cli.quantities import DURATION, LAYOUT, Words
from cairn.client import Client
from cairn.configs import read_config_path
from cairn.errors import CairnError, NotFound
from cairn.resume import Choice, Launch, NothingToResume, choose
from cairn.resume.choosing import PIECES, TIERS
from cairn.transport import Retries

# A launch waits for this: each call ends within 16 s, the fall back to a scan included.
TIMEOUT_SECONDS = 5.0
NUMBERS = re.compile(r"\d[\d,]*")
QUICK = Retries(count=2, wait_seconds=6.0)


@click.command()
@click.option("--run", "run_", metavar="PROJECT/RUN|ID", required=True, help="The run to go on with.")
@click.option("--layout", type=LAYOUT, help="Today's ranks, e.g. tp=4,pp=2,dp=8. Default: as it was saved.")
@click.option("--rto", "rto_seconds", type=DURATION, help="Only copies that are restored within, e.g. 10m.")
@click.option(
    "--require",
    type=Words(PIECES, "pieces"),
    help="Pieces that must be there. Default: optimizer,data_position. 'weights' asks for weights alone.",
)
@click.option(
    "--config", "config", type=click.Path(exists=True, dir_okay=False), help="Today's config, to be compared."
)
@click.option("--tier", "tiers", type=click.Choice(TIERS), multiple=True, help="Only copies there. May be repeated.")
@click.option(
    "--host", "hosts", multiple=True, help="A host of this launch, which local copies need. Default: this one."
)
@click.option("--local-root", "roots", multiple=True, metavar="DIR", help="Where to look without the registry.")
@click.option("--agree", metavar="KEY", help="Load the same as all hosts of this launch; KEY is new for each launch.")
@click.option("--hosts", "count", type=click.IntRange(1, 100_000), help="How many hosts --agree waits for.")
@click.option("--wait", "wait_seconds", type=DURATION, default="10m", show_default=True, help="How long --agree waits.")
@click.option("--or-fresh", is_flag=True, help="End with 0 and print nothing where the run has no checkpoint at all.")
@json_option
def resume(
    run_: str,
    layout: dict[str, int] | None,
    rto_seconds: float | None,
    require: tuple[str, ...] | None,
    config: str | None,
    tiers: tuple[str, ...],
    hosts: tuple[str, ...],
    roots: tuple[str, ...],
    agree: str | None,
    count: int | None,
    wait_seconds: float,
    or_fresh: bool,
    as_json: bool,
) -> int:
    """Print the path to load, and nothing else: the newest checkpoint that fits, at a copy that is whole here.

    \b
    checkpoint="$(cairn resume --run llm/7b-a --layout tp=4,pp=2,dp=8)" || exit
    torchrun train.py --resume "$checkpoint"
    cairn resume --run llm/7b-a --agree "$SLURM_JOB_ID.$SLURM_RESTART_COUNT" --hosts "$SLURM_NNODES"

    Inside the job's own command line a shell starts the job even where this fails, with an empty path.

    What was passed over, and why, is said on standard error. A checkpoint without optimizer or data position is
    refused unless --require leaves it out. Without the registry, the folder of the last success and --local-root are
    scanned. Exit codes: 0 a path was printed; 1 nothing to resume; 2 usage; 3 the service refused, or several hosts
    cannot agree without it. Only 0 comes with a path.
    """
    if (agree is None) != (count is None):
        raise click.UsageError("--agree KEY and --hosts N belong together.")
    told = _Briefly()
    launch = None
    if agree is not None and count is not None:
        poll_seconds = max(2.0, count / 100)  # a hundred questions a second, however many hosts wait
        launch = Launch(agree, count, socket.gethostname(), wait_seconds=wait_seconds, poll_seconds=poll_seconds)
    try:
        with Client(timeout=TIMEOUT_SECONDS, retries=QUICK) as client:
            choice = choose(
                client,
                run_,
                layout=layout,
                rto_seconds=rto_seconds,
                require=require or (),
                hosts=hosts,
                config=_config(config),
                tiers=tiers,
                local_roots=roots,
                launch=launch,
                say=told,
            )
    except CairnError as fault:
        told.end()
        return _nothing(fault, or_fresh, as_json)
    told.end()
    _print(choice, as_json)
    return 0


class _Briefly:
    """Says why checkpoints were passed over: one reason of many in a row is said once, and the others are counted.
    Reasons that differ in numbers alone (a step in a path, a size) are one."""

    def __init__(self) -> None:
        self._reason, self._alike = "", 0

    def __call__(self, text: str) -> None:
        reason = NUMBERS.sub("#", text.partition(": ")[2])
        if reason and reason == self._reason:
            self._alike += 1
            return
        self.end()
        self._reason = reason
        say(text)

    def end(self) -> None:
        if self._alike:
            say(f"  and {self._alike} more for the same reason.")
        self._alike = 0


def _config(path: str | None) -> dict[str, Any] | None:
    return None if path is None else dict(read_config_path(path).values)


def _nothing(fault: CairnError, or_fresh: bool, as_json: bool) -> int:
    """No path is ever printed here. A run or project that the registry does not know has no checkpoint either."""
    none_yet = fault.code in ("run-not-found", "project-not-found") or (
        isinstance(fault, NothingToResume) and fault.has_none
    )
    if or_fresh and (none_yet or (isinstance(fault, NotFound) and not (fault.code or fault.status))):
        say(f"{fault.detail} Starting afresh loses nothing.")
        if as_json:
            print_json({"path": None, "reasons": [fault.detail]})
        return 0
    if isinstance(fault, NothingToResume):
        say(f"cairn: {fault.detail}")
        if any(each.why.startswith("pieces:") for each in fault.passed_over):
            say("  Here that is --require, such as --require weights.")
        if as_json:
            passed = [{"what": each.what, "why": each.why} for each in fault.passed_over]
            print_json({"path": None, "reasons": [fault.detail], "fallbacks": passed})
        return 1
    raise fault


def _print(choice: Choice, as_json: bool) -> None:
    for reason in choice.reasons:
        say(f"{reason}.")
    if as_json:
        print_json(choice.to_wire())
        return
    named = str(choice.checkpoint) if choice.checkpoint is not None else f"step {choice.step}"
    say(f"Resuming from {named}.")
    click.echo(choice.path)
