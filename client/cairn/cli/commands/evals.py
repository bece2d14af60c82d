"""`cairn evals`: send result files of evaluations."""

from collections.abc import Sequence
from pathlib import Path

import click

from cairn.cli.output import json_option, print_json, print_rows, say
from cairn.cli.targets import find_checkpoint_id
from cairn.client import Client
from cairn.errors import Invalid
from cairn.formats import Refused, read_evals
from cairn.types import ImportReport


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--checkpoint", help="The checkpoint that was evaluated.")
@click.option("--project", help="Or: its project, made where it is absent,")
@click.option("--run", "run_", help="its run, made where it is absent,")
@click.option("--step", type=click.IntRange(0), help="and its step. Default: the step that each file states.")
@click.option("--format", "format_", default="auto", show_default=True)
@json_option
def evals(
    files: Sequence[Path],
    checkpoint: str | None,
    project: str | None,
    run_: str | None,
    step: int | None,
    format_: str,
    as_json: bool,
) -> int:
    """Send result files of evaluation harnesses; the format is found by content.

    \b
    cairn evals results.json --checkpoint pythia/1b@143000
    cairn evals evals/*.json --project pythia --run 1b
    """
    by_name = project is not None and run_ is not None
    if (checkpoint is not None) == by_name or (checkpoint and (project or run_ or step is not None)):
        raise click.UsageError("Name --checkpoint, or --project and --run (and --step where the files state none).")
    reports: list[ImportReport] = []
    refused: list[tuple[Path, Invalid]] = []
    with Client() as client:
        target = find_checkpoint_id(client, checkpoint) if checkpoint else None
        for path in files:
            content = path.read_bytes()
            _warn_of_another_step(path, content, step)
            try:
                report = client.import_results(
                    [(str(path), content)], checkpoint=target, project=project, run=run_, step=step, format=format_
                )
                reports.append(report)
            except Invalid as error:
                refused.append((path, error))  # the other files are no worse for it
    if as_json:
        reasons = [{"file": str(path), "reason": refusal.detail} for path, refusal in refused]
        print_json({"reports": [each.raw for each in reports], "refused": reasons})
    else:
        _print(reports)
        for path, refusal in refused:
            say(f"{path}: {refusal}")
    if refused:
        return 2
    return 0 if any(each.imported for each in reports) else 1


def _warn_of_another_step(path: Path, content: bytes, given: int | None) -> None:
    """The service may read more formats than this client: a file that cannot be read here is not refused here."""
    if given is None:
        return
    try:
        found = read_evals(content, name=path.name)
    except Refused:
        return
    if found.step is not None and found.step != given:
        say(f"{path}: its {found.step_source} says step {found.step}; recorded at {given} as you said.")


def _print(reports: Sequence[ImportReport]) -> None:
    rows = []
    for file in (each for report in reports for each in report.files):
        rows.append((file.file, file.format, file.imported, file.recorded, len(file.skipped), file.checkpoint_id))
        for note in file.notes:
            say(f"{file.file}: {note}")
        for item in file.skipped[:10]:
            say(f"{file.file}: left out {item.item}: {item.reason}")
        if len(file.skipped) > 10:
            say(f"{file.file}: and {len(file.skipped) - 10} more left out; --json shows all.")
    if rows:
        print_rows(("file", "format", "scores", "new", "left out", "id"), rows)
