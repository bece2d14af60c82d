"""`cairn run`: what was trained."""

import click

from cairn.cli.output import json_option, print_facts, print_json, print_rows, say, say_if_cut
from cairn.cli.targets import find_run
from cairn.client import Client


@click.group()
def run() -> None:
    """List runs, or show one."""


@run.command("list")
@click.option("--project", help="Only runs of this project.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@json_option
def list_runs(project: str | None, limit: int, as_json: bool) -> int:
    """The runs that this token may see."""
    with Client() as client:
        found = list(client.list_runs(project=project, limit=limit))
    if as_json:
        print_json({"items": [each.raw for each in found]})
    elif found:
        columns = ("run", "kind", "owner", "team", "model", "started", "id")
        print_rows(
            columns,
            [
                (str(each), each.kind, each.owner, each.team, each.model_family, each.started_at, each.id)
                for each in found
            ],
        )
        say_if_cut(len(found), limit)
    else:
        say("No runs yet. `cairn record --project P --run R --step N` records the first checkpoint.")
    return 0 if found else 1


@run.command()
@click.argument("run", metavar="PROJECT/RUN|ID")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Newest checkpoints shown.")
@json_option
def show(run: str, limit: int, as_json: bool) -> None:
    """One run and its newest checkpoints."""
    from cairn.cli.commands.find import print_checkpoints

    with Client() as client:
        found = find_run(client, run)
        order = "attempt desc, step desc"
        checkpoints = list(client.iter_checkpoints(filter=f"run.id = '{found.id}'", order_by=order, limit=limit))
    if as_json:
        print_json({"run": found.raw, "checkpoints": [each.raw for each in checkpoints]})
        return
    names = ("kind", "owner", "team", "model_family", "parameter_count", "started_at", "tags")
    print_facts([("run", str(found)), ("id", found.id), *((name, getattr(found, name)) for name in names)])
    if not checkpoints:
        say(f"No checkpoint of it is recorded yet. `cairn record --project {found.project} --run {found.name}` does.")
        return
    click.echo()
    print_checkpoints(checkpoints, ())
    say_if_cut(len(checkpoints), limit)
