"""`cairn scan`: record the checkpoints of a whole tree, bucket or list."""

import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import click

from cairn.cli.count_bar import count_bar
from cairn.cli.output import json_option, print_rows, say
from cairn.client import Client
from cairn.errors import BadSettings, CairnError, ConnectionFailed
from cairn.formats.checkpoints import Unreadable
from cairn.scan import DEFAULT_SETTLE_SECONDS, Plan, compare, register, scan
from cairn.scan.plan import REFUSED
from cairn.stores import is_url

SHOWN_RUNS, SHOWN_REMARKS = 60, 20
UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


@click.command(name="scan")
@click.argument("root", metavar="ROOT")
@click.option("--project", required=True, help="Where to record; made where it is absent.")
@click.option("--run", "run_", help="Name of the run; of several runs, what their names begin with.")
@click.option(
    "--dry-run/--no-dry-run",
    "dry_run",
    default=None,
    help="Only show the plan. The default on a terminal; --no-dry-run shows it and asks.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--tier", type=click.Choice(["local", "shared", "object"]), help="Of the copies; a store's is object.")
@click.option(
    "--settle",
    type=click.FloatRange(0),
    default=DEFAULT_SETTLE_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="What changed since, and holds no file that ends a save, is still being written.",
)
@click.option(
    "--attempts",
    type=click.Choice(["auto", "one"]),
    default="auto",
    show_default=True,
    help="one: never tell attempts apart by the times of files.",
)
@json_option
def scan_command(
    root: str,
    project: str,
    run_: str | None,
    dry_run: bool | None,
    yes: bool,
    tier: str | None,
    settle: float,
    attempts: str,
    as_json: bool,
) -> int:
    """Find the checkpoints below a folder, in a bucket or in a list, and record those that are new.

    \b
    cairn scan /mnt/ckpt --project llm
    cairn scan s3://ckpt/llm --project llm --no-dry-run
    cairn scan OLMo-2-1124-7B.csv --project olmo        # columns of steps and addresses

    Folders are grouped into runs (named by their path) and attempts. A `cairn.json` beside a checkpoint says what it
    was recorded as. Run again, it adds only what is new.
    """
    terminal = sys.stdout.isatty() and sys.stdin.isatty()
    only_show = terminal if dry_run is None else dry_run
    tier = "object" if is_url(root) else tier
    if not is_url(root) and not os.path.lexists(root):
        raise click.UsageError(f"{root}: No such file or folder.")
    given: dict[str, Any] = {"run": run_, "tier": tier, "settle_seconds": settle, "by_time": attempts == "auto"}
    try:
        with ExitStack() as until_done:
            with count_bar("Looking", None) as progress:
                plan = until_done.enter_context(scan(root, project=project, progress=progress, **given))
            return _carry_out(plan, only_show, terminal and not yes, as_json)
    except Unreadable as fault:
        say(str(fault))
        return 1


def _carry_out(plan: Plan, only_show: bool, ask: bool, as_json: bool) -> int:
    with Client() as client:
        compared = _compare(plan, client, only_show)
        if not only_show and not ask and plan.pending_changes() and _lacks_tier(plan):
            raise click.UsageError(f"{plan.root}: is that folder local or shared? Say --tier local or --tier shared.")
        if not as_json:
            _print_plan(plan, compared)
        if not plan.count():
            say("Nothing that can be recorded was found.")
        elif not only_show and _wanted(plan, ask):
            _record(plan, client)
    refused = plan.count(REFUSED)
    if as_json:
        _print_json(plan, only_show, compared)
    elif only_show and plan.pending_changes():
        say("Nothing was recorded. --no-dry-run records it.")
    if refused:
        return 3
    return 0 if plan.count() else 1


def _compare(plan: Plan, client: Client, only_show: bool) -> bool:
    """Whether the plan could be held against what is recorded; a mere look goes on without."""
    try:
        compare(plan, client)
    except (ConnectionFailed, BadSettings) as fault:
        if not only_show:
            raise
        say(f"Not compared with what is recorded: {fault.detail}")
        return False
    return True


def _wanted(plan: Plan, ask: bool) -> bool:
    count = plan.pending_changes()
    if not count:
        return False
    if plan.tier is None and plan.needs_tier():
        if not ask:
            raise click.UsageError(f"{plan.root}: is that folder local or shared? Say --tier local or --tier shared.")
        plan.tier = click.prompt("Is that folder local or shared?", type=click.Choice(["local", "shared"]), err=True)
    return not ask or click.confirm(f"Record {_counted(count)} in {plan.project}?", err=True)


def _lacks_tier(plan: Plan) -> bool:
    return plan.tier is None and plan.needs_tier()


def _record(plan: Plan, client: Client) -> None:
    problems = plan.problem_count()
    with count_bar("Recording", plan.pending_changes()) as progress:
        try:
            done = register(plan, client, progress)
        except CairnError:
            say("Stopped. What was sent before is recorded; run it again to go on.")
            raise
    say(f"Recorded {_counted(done)}.")
    for path, reason in itertools.islice(plan.problems(), problems, problems + SHOWN_REMARKS):
        say(f"{path}: {reason}")
    if (more := plan.problem_count() - problems - SHOWN_REMARKS) > 0:
        say(f"and {more:,} more; --json shows all.")


def _print_plan(plan: Plan, compared: bool) -> None:
    columns = ("run", "attempt", "status", "checkpoints", "steps", "size", "format", "resumable")
    rows = [
        (
            *(each.run, each.attempt, each.status, each.count),
            f"{each.first_step} to {each.last_step}" if each.count > 1 else str(each.first_step),
            _size(each.bytes) if each.bytes else "",
            ", ".join(each.formats),
            ", ".join(each.resumability),
        )
        for each in itertools.islice(plan.runs(), SHOWN_RUNS)
    ]
    if rows:
        print_rows(columns, rows)
    lines = plan.line_count()
    if lines > SHOWN_RUNS:
        say(f"and {lines - SHOWN_RUNS:,} more lines; --json shows all.")
    _say_some((f"{run}: {text}" for run, text in plan.remarks()), plan.remark_count())
    _say_some(*_gathered(plan.noted()))
    _say_some((f"{path}: {text}" for path, text in plan.problems()), plan.problem_count())
    counts = ", ".join(f"{count:,} {status}" for status, count in plan.counts())
    if counts:
        say(f"{_counted(plan.count())}: {counts}{'' if compared else ' (not compared)'}.")


def _gathered(noted: Iterator[tuple[str, str]]) -> tuple[Iterator[str], int]:
    """The same remark on many checkpoints as one line; remarks beyond the first thousand kinds are only counted."""
    first: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for path, text in noted:
        key = text if text in first or len(first) < 1_000 else "other remarks"
        first.setdefault(key, path)
        counts[key] += 1
    more = {text: f" and {count - 1:,} more" if count > 1 else "" for text, count in counts.items()}
    return (f"{first[text]}{more[text]}: {text}" for text, _ in counts.most_common()), len(counts)


def _say_some(lines: Iterator[str], count: int) -> None:
    for line in itertools.islice(lines, SHOWN_REMARKS):
        say(line)
    if count > SHOWN_REMARKS:
        say(f"and {count - SHOWN_REMARKS:,} more; --json shows all.")


def _print_json(plan: Plan, only_show: bool, compared: bool) -> None:
    """One object, written as it is read: a hundred thousand checkpoints need not be in memory."""
    head = {"root": plan.root, "project": plan.project, "dry_run": only_show, "compared": compared}
    click.echo(json.dumps({**head, "counts": dict(plan.counts())}, ensure_ascii=False)[:-1], nl=False)
    parts: list[tuple[str, Iterator[Any]]] = [
        ("runs", (vars(each) for each in plan.runs())),
        ("remarks", ({"run": run, "remark": text} for run, text in plan.remarks())),
        ("problems", ({"item": path, "reason": reason} for path, reason in plan.problems())),
        ("checkpoints", plan.items()),
    ]
    for name, values in parts:
        click.echo(f', "{name}": [', nl=False)
        for place, value in enumerate(values):
            click.echo((",\n" if place else "\n") + json.dumps(value, ensure_ascii=False), nl=False)
        click.echo("]", nl=False)
    click.echo("}")


def _size(count: int) -> str:
    number, unit = float(count), 0
    while number >= 1000 and unit < len(UNITS) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:.3g} {UNITS[unit]}" if unit else f"{count} B"


def _counted(count: int) -> str:
    return "1 checkpoint" if count == 1 else f"{count:,} checkpoints"
