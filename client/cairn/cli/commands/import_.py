"""`cairn import`: runs and checkpoints of an experiment tracker."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click

from cairn.cli.lazy import LazyGroup
from cairn.cli.output import clean, json_option, print_facts, print_json, say
from cairn.client import Client
from cairn.types import Job

SHOWN_REASONS = 20
COUNTS = (
    *("runs", "runs_created", "runs_unchanged", "checkpoints_created", "checkpoints_met", "scores_recorded"),
    *("points_recorded", "fields_changed"),
)


@click.group("import", cls=LazyGroup)
def import_() -> None:
    """Bring runs and checkpoints of MLflow or W&B into the registry. Safe to run again: what is there is met."""


assert isinstance(import_, LazyGroup)
import_.homes = {"wandb": "cairn.cli.commands.import_wandb:wandb"}


@import_.command()
@click.option("--experiment", required=True, help="The experiment's name or id.")
@click.option("--uri", help="The tracking server's address. Default: the one that the service's worker knows.")
@click.option("--project", help="The project to import into, made where it is absent. Default: the experiment's name.")
@click.option("--no-wait", is_flag=True, help="Only ask for it; `cairn import job ID` follows it.")
@json_option
def mlflow(experiment: str, uri: str | None, project: str | None, no_wait: bool, as_json: bool) -> int:
    """Import an MLflow experiment: runs with configs, tags and curves, and their models as checkpoints with scores.

    The service's worker does it, so it goes on where this command is interrupted. Its host must be among
    CAIRN_TRACKER_HOSTS of the worker.
    """
    with Client() as client:
        into = client.create_project(project or experiment).name
        job = client.import_tracker("mlflow", into, uri=uri, experiment=experiment)
        return follow(client, job, no_wait=no_wait, as_json=as_json)


@import_.command("job")
@click.argument("job_id", metavar="ID")
@json_option
def follow_job(job_id: str, as_json: bool) -> int:
    """Follow an import that was asked for before."""
    with Client() as client:
        return follow(client, client.get_job(job_id), no_wait=False, as_json=as_json)


def follow(client: Client, job: Job, *, no_wait: bool, as_json: bool) -> int:
    """Show how a job gets on until it ends; gives the exit code."""
    if not no_wait:
        with _bar() as seen:
            job = client.wait_for_job(job, seen=seen)
    if as_json:
        print_json(job.raw)
    elif no_wait:
        say(f"Job {job.id} was asked for; `cairn import job {job.id}` follows it.")
    else:
        _print(job)
    return 0 if job.state == "done" or no_wait else 3


def _print(job: Job) -> None:
    report: Mapping[str, Any] = job.report or {}
    print_facts([("job", job.id), ("state", job.state), *((name, report.get(name)) for name in COUNTS)])
    if job.error:
        say(f"{job.error_code}: {job.error}")
    skipped = report.get("skipped") or {}
    for reason, entry in list(skipped.items())[:SHOWN_REASONS]:
        say(f"Left out {entry.get('count'):,} × {reason}: {'; '.join(entry.get('examples') or ())}")
    for note in report.get("notes") or ():
        say(note)


@contextmanager
def _bar() -> Iterator[Callable[[Job], None]]:
    """A progress bar on a terminal; elsewhere one line whenever the state or its error changes."""
    said: list[str] = []

    def say_once(job: Job) -> None:
        text = f"{job.state}{': ' + job.error if job.error else ''}"
        if not job.has_ended and said[-1:] != [text]:
            said.append(text)
            say(text)

    if not sys.stderr.isatty():
        yield say_once
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("waiting", total=None)

        def move(job: Job) -> None:
            words = job.error or job.progress.text or job.state
            bar.update(task, completed=job.progress.done, total=job.progress.total, description=clean(words)[:100])

        yield move
