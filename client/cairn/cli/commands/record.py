"""`cairn record`: record a checkpoint from options, or many from NDJSON."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import click

from cairn.cli.hints import renamed, rewritten
from cairn.cli.output import json_option, print_json, print_rows, say
from cairn.client import Client
from cairn.configs import read_config_path
from cairn.errors import CairnError, ConnectionFailed, Invalid
from cairn.numbers import Written
from cairn.score_names import score_name

PIECES = ("weights", "optimizer", "data_position", "random_state")
PRESENCE = ("present", "absent", "unknown")
OBJECT_SCHEMES = ("s3://", "gs://", "az://", "abfs://", "oss://", "cos://", "r2://", "https://")
BATCH_ITEMS = 500
# What a field of a registration is called on the command line, where that is not its own name.
OPTIONS = {"replicas": "path", "scores": "score", "tags": "tag"}
PLAIN = ("attempt", "kind", "loss", "lr", "epoch", "tokens_seen", "data_version")
# Every field that an option gives: one that was left out may be what differs, too.
SAID = ("project", "run", "step", *PLAIN, *OPTIONS, "config", "pieces")
FIRST = "The first: "  # begins the reason in the answer to a batch
Item = tuple[int, dict[str, Any]]  # the line that it stands on, and the registration


@click.command()
@click.argument("source", required=False, metavar="[-]")
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
@click.option("--score", "scores", multiple=True, metavar="BENCH=VALUE", help="gsm8k=0.61; again for more.")
@click.option("--path", "paths", multiple=True, metavar="URI", help="Where a complete copy lies; again for more.")
@click.option("--tier", type=click.Choice(["local", "shared", "object"]), help="Of --path; object stores are known.")
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
    cairn record --project llm --run 7b-a --step 1000 --loss 2.31 --score gsm8k=0.21 \\
        --path /ckpt/7b-a/1000 --tier shared --pieces weights,optimizer
    trainer | cairn record --project llm --run 7b-a -

    With `-`, every line of standard input is one checkpoint as JSON, with the fields of the REST call;
    --project and --run fill in where a line has none. Lines are sent in batches of 500, each all or none.
    """
    if source not in (None, "-"):
        raise click.UsageError(f"Unexpected argument {source!r}; only `-` (standard input) is understood.")
    defaults = {name: value for name, value in (("project", project), ("run", run_)) if value is not None}
    if source == "-":
        if step is not None or any(value is not False and value not in (None, ()) for value in options.values()):
            raise click.UsageError("With `-`, only --project, --run and --json apply; the rest stands in the lines.")
        return _record_lines(sys.stdin, defaults, as_json)
    if project is None or run_ is None or step is None:
        raise click.UsageError("Name --project, --run and --step, or pipe NDJSON into `cairn record -`.")
    item = {**defaults, "step": step, **_fields(options)}
    return _send([[(0, item)]], as_json)


def _fields(options: dict[str, Any]) -> dict[str, Any]:
    """The options as fields of a registration."""
    fields = {name: options[name] for name in PLAIN if options[name] is not None}
    if options["pending"]:
        fields["state"] = "pending"
    if options["scores"]:
        fields["scores"] = [_score(text) for text in options["scores"]]
    if options["paths"]:
        fields["replicas"] = [_replica(text, options["tier"], options["digest"]) for text in options["paths"]]
    if options["tags"]:
        fields["tags"] = dict(_pair(text, "--tag") for text in options["tags"])
    if options["config"]:
        fields["config"] = _config(options["config"])
    if options["pieces"]:
        fields["pieces"] = pieces(options["pieces"])
    return fields


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.UsageError(f"{option} {text!r}: expected NAME=VALUE.")
    return name, value


def _score(text: str) -> dict[str, Any]:
    name, _, value = text.rpartition("=")
    try:
        number = float(value)
    except ValueError:
        name = ""
    if not name:
        raise click.UsageError(f"--score {text!r}: expected BENCH=NUMBER, e.g. gsm8k=0.61.")
    return {**score_name(name), "value": number}


def _replica(uri: str, tier: str | None, digest: bool = False) -> dict[str, Any]:
    """Only an object store shows in the address; whether a folder is shared or local has to be said."""
    known = "object" if uri.startswith(OBJECT_SCHEMES) else tier
    if known is None:
        raise click.UsageError(f"--path {uri}: is that folder local or shared? Say --tier local or --tier shared.")
    if not digest:
        if known != "object" and "://" not in uri and not os.path.exists(uri):
            say(f"Note: {uri} is not there on this host. It is recorded all the same, since another host may have it.")
        return {"uri": uri, "tier": known}
    from cairn.formats.checkpoints import Unreadable
    from cairn.replicas import replica

    try:
        return {**replica(uri, tier=known, digest=True), "uri": uri}
    except Unreadable as fault:
        raise click.UsageError(f"--path {uri}: {fault}") from None


def _config(path: Path) -> Any:
    """The settings of a config file. What could not be read of it is said; what stands twice, a person must mend."""
    config = read_config_path(path)
    twice = next((problem for problem in config.problems if problem.is_duplicate), None)
    if twice is not None:
        raise Invalid(f"{path}: {twice.path!r} stands twice, with different values.")
    for problem in config.problems:
        say(f"{path}: {problem}")
    return config.values


def pieces(text: str) -> dict[str, str]:
    """`weights,optimizer=absent` by name; the pieces that are not named stay unknown."""
    found = {}
    for part in PIECES if text == "all" else text.split(","):
        name, _, presence = part.strip().partition("=")
        if name not in PIECES or (presence or "present") not in PRESENCE:
            known = f"{', '.join(PIECES)}, each optionally =present, =absent or =unknown"
            raise click.UsageError(f"--pieces {part.strip()!r}: expected some of {known}.")
        found[name] = presence or "present"
    return found


AWAY = (
    "Nothing is kept here for later. `cairn scan` or `cairn watch` records what lies in a folder when the service is "
    "back; a job that records with cairn.start(...) keeps its records on disk and sends them itself."
)


def _record_lines(lines: TextIO, defaults: dict[str, Any], as_json: bool) -> int:
    return _send(_batches(lines, defaults), as_json)


def _batches(lines: TextIO, defaults: dict[str, Any]) -> Iterator[list[Item]]:
    batch: list[Item] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line, parse_float=Written, object_pairs_hook=_once)
        except _Twice as twice:
            raise Invalid(f"Line {number} of standard input has {twice} twice in one object.") from None
        except json.JSONDecodeError as fault:
            raise Invalid(f"Line {number} of standard input is no JSON: column {fault.colno}, {fault.msg}.") from None
        except (ValueError, RecursionError):
            raise Invalid(f"Line {number} of standard input is no JSON.") from None
        if not isinstance(item, dict):
            raise Invalid(f"Line {number} of standard input is no JSON object.")
        batch.append((number, {**defaults, **item}))
        if len(batch) == BATCH_ITEMS:
            yield batch
            batch = []
    if batch:
        yield batch


class _Twice(Exception):
    """A key that stands twice: which of its values is meant, nobody can tell."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _Twice(repr(next(key for key in keys if keys.count(key) > 1)))
    return found


def _send(batches: Iterator[list[Item]] | Sequence[list[Item]], as_json: bool) -> int:
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
    columns = ("project", "run", "step", "status", "id")
    if as_json:
        print_json({"items": [dict(zip(columns, row, strict=True)) for row in rows], "warnings": warnings})
    elif rows:
        print_rows(columns, rows)
    else:
        say("Standard input held no line.")
    for warning in warnings if not as_json else ():
        say(f"Note: {warning}.")
    return 0 if rows else 1


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
