"""`cairn import wandb`: offline folders read here, or a project of a W&B service read by the service's worker."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from cairn.cli.commands.import_ import follow
from cairn.cli.output import clean, json_option, print_json, print_rows, say
from cairn.client import Client
from cairn.formats.wandb_offline import find_files
from cairn.wandb_import import FileReport, import_folder
from cairn.wandb_import.describe import project_name
from cairn.wandb_import.send import Progress

SHOWN_REMARKS = 20


@click.command("wandb")
@click.argument("places", nargs=-1, metavar="[PATH]...", type=click.Path(exists=True, path_type=Path))
@click.option("--project", metavar="ENTITY/PROJECT", help="Instead of folders: a project of the W&B service.")
@click.option(
    "--into", metavar="NAME", help="The registry's project, made where it is absent. Default: named like W&B's."
)
@click.option(
    "--tier",
    type=click.Choice(["shared", "local"]),
    default="shared",
    show_default=True,
    help="Of checkpoints that were logged by reference to a file.",
)
@click.option("--base-url", help="The W&B service that is meant. Default: WANDB_BASE_URL, else W&B's own.")
@click.option("--no-wait", is_flag=True, help="With --project: only ask for it; `cairn import job ID` follows it.")
@json_option
def wandb(
    places: tuple[Path, ...],
    project: str | None,
    into: str | None,
    tier: str,
    base_url: str | None,
    no_wait: bool,
    as_json: bool,
) -> int:
    """Import W&B runs: configs, tags, curves, and their model artifacts as checkpoints.

    \b
    cairn import wandb ./wandb                        # folders of offline (or online) runs, read here
    cairn import wandb --project team/llm             # by the service, with its own API key

    Safe to run again, also while a run is being written: only what is new is added. Each folder is an attempt of its
    run. Without --project nothing is asked of W&B; with it the service's worker does the work, so it goes on where
    this command is interrupted, and W&B's host must be among CAIRN_TRACKER_HOSTS of the worker.
    """
    if bool(places) == bool(project):
        raise click.UsageError("Name folders, such as ./wandb, or say --project entity/project.")
    with Client() as client:
        if project:
            return _ask(client, project, into, base_url, no_wait, as_json)
        return _read(client, places, into, tier, base_url, as_json)


def _ask(client: Client, project: str, into: str | None, base_url: str | None, no_wait: bool, as_json: bool) -> int:
    entity, slash, name = project.partition("/")
    if not slash or not entity or not name or "/" in name:
        raise click.UsageError(f"--project is {clean(project)!r}; expected entity/project, as in W&B's address.")
    own = client.create_project(into or project_name(name)).name
    job = client.import_tracker("wandb", own, uri=base_url, entity=entity, external_project=name)
    return follow(client, job, no_wait=no_wait, as_json=as_json)


def _read(
    client: Client, places: Iterable[Path], into: str | None, tier: str, base_url: str | None, as_json: bool
) -> int:
    count = sum(len(find_files(place)) for place in places)
    if not count:
        say("Holds no .wandb file: " + ", ".join(map(str, places)))
        return 1
    with _bar(count) as progress:
        reports = import_folder(client, *places, project=into, tier=tier, base_url=base_url, progress=progress)
    if as_json:
        print_json({"files": [report.to_json() for report in reports]})
    else:
        _print(reports)
    return 0 if any(report.run_id for report in reports) else 1


def _print(reports: list[FileReport]) -> None:
    columns = ("file", "run", "attempt", "state", "checkpoints", "known", "scores", "points")
    print_rows(columns, [_row(each) for each in reports])
    remarks = [f"{each.run or each.file}: {note}" for each in reports for note in each.notes]
    remarks += [
        f"{each.run}: {each.state}: {each.state_reason}" for each in reports if each.state in ("running", "crashed")
    ]
    for line in remarks[:SHOWN_REMARKS]:
        say(line)
    _print_skipped(reports)


def _row(report: FileReport) -> tuple[object, ...]:
    state = "unchanged" if report.unchanged else report.state
    counted = (report.checkpoints, report.known, report.scores, report.points)
    return (report.file, report.run, report.attempt, state, *counted)


def _print_skipped(reports: list[FileReport]) -> None:
    """The same reason of many items as one line."""
    counts = Counter(each.reason for report in reports for each in report.skipped)
    first = {each.reason: each.item for report in reversed(reports) for each in reversed(report.skipped)}
    for reason, count in counts.most_common(SHOWN_REMARKS):
        more = f" and {count - 1:,} more" if count > 1 else ""
        say(f"Left out {first[reason]}{more}: {reason}")
    if len(counts) > SHOWN_REMARKS:
        say(f"and {len(counts) - SHOWN_REMARKS:,} other reasons; --json shows all.")


@contextmanager
def _bar(count: int) -> Iterator[Progress | None]:
    """A progress bar over files, on a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Reading", total=count)

        def done(report: FileReport) -> None:
            bar.update(task, advance=1, description=clean(report.run or report.file)[:60])

        yield done
