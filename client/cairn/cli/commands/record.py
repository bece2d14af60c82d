"""`cairn record`: record a checkpoint from options, or many from NDJSON; say more of one that is recorded."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from cairn.cli.hints import renamed, rewritten
from cairn.cli.output import json_option, print_json, print_rows, say
from cairn.cli.recording.adding import add_to
from cairn.cli.recording.lines import Item, batches_of
from cairn.cli.recording.options import PLAIN, fields_of
from cairn.client import Client
from cairn.errors import CairnError, ConnectionFailed

# What a field of a registration is called on the command line, where that is not its own name.
OPTIONS = {"replicas": "path", "scores": "score", "tags": "tag"}
# Every field that an option gives: one that was left out may be what differs, too.
SAID = ("project", "run", "step", *PLAIN, *OPTIONS, "config", "pieces")
FIRST = "The first: "  # begins the reason in the answer to a batch
COLUMNS = ("project", "run", "step", "status", "id")
AWAY = (
    "Nothing is kept here for later. `cairn scan` or `cairn watch` records what lies in a folder when the service is "
    "back; a job that records with cairn.start(...) keeps its records on disk and sends them itself."
)


@click.command()
@click.argument("source", required=False, metavar="[-|CHECKPOINT]")
@click.option("--project", help="Made where it is absent.")
@click.option("--run", "run_", help="Made where it is absent.")
@click.option("--step", type=click.IntRange(0))
@click.option("--attempt", type=click.IntRange(1), help="Default: the newest.")
@click.option("--kind", type=click.Choice(["light", "archive"]))
@click.option("--pending", is_flag=True, help="Not durable yet; recording it again without this commits it.")
@click.option("--loss", type=float)
@click.option("--lr", type=float)
@click.option("--epoch", type=float)
@click.option("--tokens-seen", type=click.IntRange(0))
@click.option("--score", "scores", multiple=True, metavar="BENCH=VALUE", help="gsm8k.acc=0.61; again for more.")
@click.option("--path", "paths", multiple=True, metavar="URI", help="Where a complete copy lies; again for more.")
@click.option("--tier", type=click.Choice(["local", "shared", "object"]), help="Of --path; object stores are known.")
@click.option("--host", help="Whose disk a local --path lies on. Default: this host's, where the path is there.")
@click.option("--digest", is_flag=True, help="Read every byte of --path; record its files with their digests.")
@click.option("--tag", "tags", multiple=True, metavar="NAME=VALUE", help="Again for more.")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="YAML, JSON, TOML or printed arguments.",
)
@click.option("--pieces", metavar="NAMES", help="weights,optimizer,data_position,random_state=absent; or all.")
@click.option("--data-version")
@json_option
def record(
    source: str | None,
    project: str | None,
    run_: str | None,
    step: int | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Record a checkpoint. Recording the same again changes nothing.

    \b
    cairn record --project llm --run 7b-a --step 1000 --loss 2.31 --score gsm8k.acc=0.21 \\
        --path /ckpt/7b-a/1000 --tier shared --pieces weights,optimizer
    trainer | cairn record --project llm --run 7b-a -
    cairn record llm/7b-a@1000 --path s3://ckpt/7b-a/1000

    With CHECKPOINT, a recorded one gets what was learnt later: further copies (--path), --score, --tag, another --loss.

    With `-`, every line of standard input is one checkpoint as JSON, with the fields of the REST call;
    --project and --run fill in where a line has none. Lines are sent in batches of 500, each all or none.
    """
    defaults = {name: value for name, value in (("project", project), ("run", run_)) if value is not None}
    if source == "-":
        if step is not None or any(value is not False and value not in (None, ()) for value in options.values()):
            raise click.UsageError("With `-`, only --project, --run and --json apply; the rest stands in the lines.")
        return _send(batches_of(sys.stdin, defaults), as_json)
    if source is not None:
        if defaults or step is not None:
            raise click.UsageError(f"{source} names a checkpoint already; without it, say --project, --run and --step.")
        _print([add_to(source, options)], [], as_json)
        return 0
    if project is None or run_ is None or step is None:
        raise click.UsageError("Name --project, --run and --step, or pipe NDJSON into `cairn record -`.")
    item = {**defaults, "step": step, **fields_of(options)}
    return _send([[(0, item)]], as_json)


def _send(batches: Iterable[list[Item]], as_json: bool) -> int:
    rows: list[tuple[Any, ...]] = []
    warnings: list[str] = []
    with Client() as client:
        try:
            for batch in batches:
                rows += _send_batch(client, batch, warnings)
        except Exception as fault:
            if isinstance(fault, ConnectionFailed):
                say(AWAY)
            if rows:
                say(f"{len(rows)} checkpoints before this batch are recorded; none of this batch is.")
            raise
    _print(rows, warnings, as_json)
    return 0 if rows else 1


def _print(rows: list[tuple[Any, ...]], warnings: list[str], as_json: bool) -> None:
    if as_json:
        print_json({"items": [dict(zip(COLUMNS, row, strict=True)) for row in rows], "warnings": warnings})
        return
    if rows:
        print_rows(COLUMNS, rows)
    else:
        say("Standard input held no line.")
    for warning in warnings:
        say(f"Note: {warning}.")


def _send_batch(client: Client, batch: list[Item], warnings: list[str]) -> list[tuple[Any, ...]]:
    try:
        report = client.register_batch([item for _, item in batch])
    except CairnError as error:
        raise _as_the_person_wrote(error, batch) from error
    warnings += report.warnings
    rows = []
    for result in report.results:
        item = batch[result.index][1]
        rows.append((item.get("project"), item.get("run"), item.get("step"), result.status, result.id))
    return rows


def _as_the_person_wrote(error: CairnError, batch: list[Item]) -> CairnError:
    """A refusal with places in the batch sent as one with options, or with lines of standard input."""
    if batch[0][0]:
        return renamed(error, {f"/{index}": f"line {line}:" for index, (line, _) in enumerate(batch)})
    detail = error.detail.partition(FIRST)[2] or error.detail
    options = {f"/0/{field}": f"--{OPTIONS.get(field, field).replace('_', '-')}" for field in SAID}
    return renamed(rewritten(error, detail, error.errors), options)
