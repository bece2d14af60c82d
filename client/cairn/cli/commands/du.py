"""`cairn du`: how many bytes lie where."""

import click

from cairn.cli.output import counted, json_option, print_json, print_rows, say
from cairn.cli.quantities import size
from cairn.cli.targets import find_run
from cairn.client import Client
from cairn.types import Usage


@click.command()
@click.option("--project", help="Only runs of this project.")
@click.option("--run", "run_", metavar="PROJECT/RUN|ID", help="Only this run.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Lines shown.")
@click.option("--bytes", "in_bytes", is_flag=True, help="Whole bytes instead of three digits and a unit.")
@json_option
def du(project: str | None, run_: str | None, limit: int, in_bytes: bool, as_json: bool) -> int:
    """Show the bytes of checkpoints by run, tier and state, the largest first.

    Superseded checkpoints (left behind by a rollback) and pending ones have lines of their own. Copies whose size
    nobody recorded are counted as such. Exit code 1: there are no checkpoints.
    """
    if project is not None and run_ is not None:
        raise click.UsageError("Name either --project or --run.")
    with Client() as client:
        run = find_run(client, run_) if run_ else None
        found = client.storage_usage(project=project, run=run, limit=limit)
    if as_json:
        print_json(found.raw)
        return 0 if found.entries else 1
    shown = (lambda count: count) if in_bytes else size
    if found.entries:
        columns = ("run", "tier", "state", "checkpoints", "copies", "size", "unknown sizes")
        rows = [
            (
                f"{each.project}/{each.run.name if each.run else '?'}",
                *_cells(each),
                shown(each.bytes) if _is_known(each) else None,
                each.unknown_sizes,
            )
            for each in found.entries
        ]
        print_rows(columns, rows)
    for each in found.totals:
        tier, state, checkpoints, _ = _cells(each)
        amount = counted(checkpoints, "checkpoint")
        known = f"{size(each.bytes)} of {amount}" if _is_known(each) else amount
        unknown = f", {each.unknown_sizes:,} of unknown size" if each.unknown_sizes else ""
        say(f"{tier}, {state}: {known}{unknown}")
    if found.left_out:
        say(f"and {counted(found.left_out, 'more line')}; --limit shows more.")
    if not found.entries:
        say("There are no checkpoints here.")
    elif found.bytes or all(_is_known(each) for each in found.totals):
        say(f"{size(found.bytes)} in all.")
    return 0 if found.entries else 1


def _is_known(each: Usage) -> bool:
    """Nothing known is not nothing there."""
    return bool(each.bytes) or each.unknown_sizes < each.copies


def _cells(each: Usage) -> tuple[str, str, int, int]:
    state = f"{each.state}, superseded" if each.superseded else each.state
    return each.tier or "no copy", state, each.checkpoints, each.copies
