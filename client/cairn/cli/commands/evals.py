"""`cairn evals`: send result files of evaluations."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from cairn.cli.output import clean, json_option, print_json, print_rows, say
from cairn.cli.targets import find_checkpoint_id
from cairn.client import Client
from cairn.results import Asked, Planned, Refusal, Sent, gather, place, send
from cairn.results.gather import Gathered
from cairn.results.places import Plan

SHOWN_ROWS, SHOWN_REMARKS = 40, 20


@click.command()
@click.argument(
    "paths", nargs=-1, required=True, metavar="FILE|FOLDER...", type=click.Path(exists=True, path_type=Path)
)
@click.option("--checkpoint", help="The checkpoint that was evaluated.")
@click.option("--project", help="Or: its project, made where it is absent,")
@click.option("--run", "run_", help="its run, made where it is absent (default: found through the model's path),")
@click.option("--step", type=click.IntRange(0), help="and its step. Default: the step that each file states.")
@click.option("--model", help="Of a file with several models (the columns of OpenCompass), the one to take.")
@click.option("--format", "format_", default="auto", show_default=True)
@click.option("--dry-run", is_flag=True, help="Only show where each result would go.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
def evals(
    paths: Sequence[Path],
    checkpoint: str | None,
    project: str | None,
    run_: str | None,
    step: int | None,
    model: str | None,
    format_: str,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Send result files of evaluations, or whole folders of them; the format is found by content.

    \b
    cairn evals results.json --checkpoint pythia/1b@143000
    cairn evals runs/*/trainer_state.json --project pythia --run 1b
    cairn evals results/ --project pythia --dry-run

    Read are lm-evaluation-harness 0.3 and 0.4 (results, samples, markdown tables), lighteval, OpenCompass, HELM,
    inspect-ai, every_eval_ever, DCLM, trainer_state.json, and plain tables (CSV, JSON lines) with the columns
    checkpoint or step, benchmark, value. Where each result goes is shown before anything is written, and on a
    terminal asked.
    """
    if checkpoint and (project or run_ or step is not None):
        raise click.UsageError("Name --checkpoint, or --project, --run and --step, not both.")
    if run_ and not project:
        raise click.UsageError("--run needs its --project.")
    with _bar("Reading", None) as progress:
        found = gather(paths, format=format_, progress=progress)
    with Client() as client:
        target = find_checkpoint_id(client, checkpoint) if checkpoint and found.results else checkpoint
        plan = place(client, found.results, Asked(target, project, run_, step, model))
        refused = [*found.refused, *plan.refused]
        if not as_json:
            _print_plan(plan, found)
            if not found.results and not refused:
                say("No result file was found: files that end with .json, .jsonl, .csv and the like are looked into.")
        sent = Sent()
        if plan.planned and not dry_run and _agreed(plan, yes):
            with _bar("Importing", len(plan.planned)) as progress:
                sent = send(client, plan.planned, progress=progress)
        elif plan.planned and not as_json:
            say("Nothing was written.")
    return _finish(plan, sent, [*refused, *sent.refused], dry_run, as_json)


def _agreed(plan: Plan, yes: bool) -> bool:
    """On a terminal always asked; elsewhere only a run that nobody named needs `--yes`."""
    if yes:
        return True
    if sys.stdin.isatty() and sys.stdout.isatty():
        scores = sum(each.result.scores for each in plan.planned)
        return click.confirm(f"Import up to {scores:,} scores?", err=True)
    if plan.guessed:
        first = plan.guessed[0]
        raise click.UsageError(
            f"{first.result.name} would go to {first.where} (found through {first.source}). Say --yes, or name "
            f"--project and --run."
        )
    return True


def _print_plan(plan: Plan, found: Gathered) -> None:
    rows = [_plan_row(each) for each in plan.planned]
    shown = rows if len(rows) <= SHOWN_ROWS else rows[:SHOWN_ROWS]
    for file, kind, scores, where, new, source in shown:
        say(f"{file}: {kind}, {scores:,} scores → {where}{new} (by {source})")
    if len(rows) > len(shown):
        say(f"and {len(rows) - len(shown):,} more files; --dry-run --json shows all.")
    if found.passed_over:
        say(f"{found.passed_over:,} files that end like no result file were not opened.")


def _plan_row(each: Planned) -> tuple[Any, ...]:
    new = "" if not each.new else ", new" if len(each.steps) == 1 else f", {len(each.new)} of them new"
    return each.result.name, each.result.format, each.result.scores, each.where, new, each.source


def _finish(plan: Plan, sent: Sent, refused: Sequence[Refusal], dry_run: bool, as_json: bool) -> int:
    if as_json:
        print_json(_as_json(plan, sent, refused, dry_run))
    else:
        _print_sent(sent)
        for each in refused[:SHOWN_REMARKS]:
            say(f"{each.file}: {each.reason}")
        if len(refused) > SHOWN_REMARKS:
            say(f"and {len(refused) - SHOWN_REMARKS:,} more files were refused; --json shows all.")
        _print_summary(sent, refused)
    if refused or _left_by_service(sent):
        return 2
    return 0 if (dry_run and plan.planned) or any(each.imported for each in sent.reports) else 1


def _left_by_service(sent: Sent) -> list[Any]:
    """Files that the service refused beside others that it took."""
    return [file for report in sent.reports for file in report.files if file.format is None]


def _print_sent(sent: Sent) -> None:
    files = [file for report in sent.reports for file in report.files]
    remarks = [f"{file.file}: {note}" for file in files for note in file.notes]
    remarks += [f"{file.file}: left out {item.item}: {item.reason}" for file in files for item in file.skipped]
    for remark in remarks[:SHOWN_REMARKS]:
        say(remark)
    if len(remarks) > SHOWN_REMARKS:
        say(f"and {len(remarks) - SHOWN_REMARKS:,} more remarks; --json shows all.")
    if files and (len(files) <= SHOWN_ROWS or not sys.stdout.isatty()):
        columns = ("file", "format", "scores", "new", "left out", "id")
        rows = [(f.file, f.format, f.imported, f.recorded, len(f.skipped), _into(f)) for f in files]
        print_rows(columns, rows)


def _into(file: Any) -> str | None:
    several = len(file.raw.get("checkpoints") or ())
    return file.checkpoint_id if file.checkpoint_id or not several else f"{several} checkpoints"


def _print_summary(sent: Sent, refused: Sequence[Refusal]) -> None:
    files = [file for report in sent.reports for file in report.files]
    if len(files) + len(refused) < 2 or not files:
        return
    taken = [file for file in files if file.format]
    into = {each["checkpoint_id"] for file in taken for each in file.raw.get("checkpoints") or ()}
    left = len(refused) + len(files) - len(taken)
    scores, new = (sum(getattr(file, name) for file in taken) for name in ("imported", "recorded"))
    say(
        f"{len(taken):,} files imported: {scores:,} scores, {new:,} of them new, into {len(into):,} checkpoints. "
        f"{left:,} refused."
    )


def _as_json(plan: Plan, sent: Sent, refused: Sequence[Refusal], dry_run: bool) -> dict[str, Any]:
    answer: dict[str, Any] = {"refused": [vars(each) for each in refused]}
    if dry_run:
        answer["plan"] = [_planned_json(each) for each in plan.planned]
        return answer
    return {"reports": [each.raw for each in sent.reports], **answer}


def _planned_json(each: Planned) -> dict[str, Any]:
    file = {"file": each.result.name, "format": each.result.format, "scores": each.result.scores}
    place = {"checkpoint": each.where, "steps": each.steps, "new_steps": each.new}
    return {**file, **place, "found_by": each.source, "guessed": each.guessed}


@contextmanager
def _bar(title: str, total: int | None) -> Iterator[Callable[[int], None] | None]:
    """A progress bar on a terminal; nothing elsewhere, and nothing for a moment's work."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(clean(title)), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda count: bar.advance(task, count)
