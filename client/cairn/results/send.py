"""Sends planned results, several files in a request. Each file is imported whole or not at all."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cairn.client import Client
from cairn.errors import CairnError, Invalid
from cairn.formats import EvalFile, Refused
from cairn.formats.evals import lm_eval_samples
from cairn.results.gather import Refusal, Result, contents, reread
from cairn.results.places import Planned
from cairn.types import ImportReport

FILES_A_REQUEST = 50
BYTES_A_REQUEST = 8 * 1024 * 1024
# The service takes 32 MB in a request. Of a larger list of samples the texts are left out; of another larger file (a
# log with every conversation) only the scores are sent, as a plain table that says everything the file says of them.
RAW_BYTES = 24 * 1024 * 1024


@dataclass
class Sent:
    """What became of the files: the service's reports, and what it refused."""

    reports: list[ImportReport] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)


def send(client: Client, planned: Sequence[Planned], *, progress: Callable[[int], None] | None = None) -> Sent:
    """Imports the results in order. What the service refuses is reported; a failed connection is raised."""
    sent = Sent()
    for batch in _batches(planned, sent):
        _send_batch(client, batch, sent)
        if progress is not None:
            progress(len(batch))
    return sent


Batch = list[tuple[Planned, list[tuple[str, bytes]]]]


def _batches(planned: Sequence[Planned], sent: Sent) -> Iterator[Batch]:
    """Neighbours with the same target, up to a number of files and of bytes."""
    batch: Batch = []
    files = size = 0
    for each in planned:
        try:
            parts = _parts(each.result)
        except (Refused, OSError) as fault:
            sent.refused.append(Refusal(each.result.name, str(fault)))
            continue
        own = sum(len(content) for _, content in parts)
        full = files + len(parts) > FILES_A_REQUEST or size + own > BYTES_A_REQUEST
        if batch and (full or each.target != batch[0][0].target):
            yield batch
            batch, files, size = [], 0, 0
        batch.append((each, parts))
        files, size = files + len(parts), size + own
    if batch:
        yield batch


def _parts(result: Result) -> list[tuple[str, bytes]]:
    if sum(Path(path).stat().st_size for path in result.paths) > RAW_BYTES:
        if result.format == lm_eval_samples.NAME and len(slim := lm_eval_samples.slim(result.name)) <= RAW_BYTES:
            return [(sendable(result.name), slim)]
        return [(sendable(f"{result.name}.scores.jsonl"), as_plain_lines(reread(result)))]
    return [(sendable(path), content) for path, content in contents(result.paths).items()]


def sendable(name: str) -> str:
    """A file's name without what is no UTF-8, and without what ends a line of a form."""
    text = name.encode("utf-8", "replace").decode()
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def as_plain_lines(file: EvalFile) -> bytes:
    """The scores of a file as a plain table in JSON lines, which says all that they say."""
    lines = []
    for score in file.scores:
        row: dict[str, Any] = score.to_wire()
        row |= {f"comparability.{key}": value for key, value in row.pop("comparability", {}).items()}
        place = {key: value for key, value in vars(score.place).items() if value is not None}
        if file.step is not None:
            place.setdefault("step", file.step)
        lines.append(json.dumps({**row, **place}))
    return "\n".join(lines).encode() + b"\n"


def _send_batch(client: Client, batch: Batch, sent: Sent) -> None:
    files = [part for _, parts in batch for part in parts]
    try:
        sent.reports.append(client.import_results(files, **batch[0][0].target))
    except Invalid as error:
        reasons = _reasons(error)
        at = 0
        for each, parts in batch:
            sent.refused.append(Refusal(each.result.name, reasons.get(at, error.detail)))
            at += len(parts)


def _reasons(error: CairnError) -> dict[int, str]:
    """The reason for each file, by its place in the request."""
    found: dict[int, str] = {}
    for problem in error.errors:
        kind, _, number = problem.pointer.rpartition("/")
        if kind == "/file" and number.isdecimal():
            found.setdefault(int(number), problem.message)
    return found
