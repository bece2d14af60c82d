"""`cairn inspect`: what the files of a checkpoint say."""

import os
from typing import Any

import click

from cairn.cli.output import clean, counted, json_option, print_facts, print_json, print_rows, say
from cairn.formats.checkpoints import Inspection, LocalSource, Source, Unreadable, inspect
from cairn.formats.checkpoints.shapes import path_text
from cairn.formats.checkpoints.words import PIECE_NAMES, headline, layout_to_wire, to_wire
from cairn.stores import is_url, open_source

SHOWN_PROBLEMS = 20
UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


@click.command(name="inspect")
@click.argument("place", metavar="PATH")
@click.option(
    "--digest", "with_digest", is_flag=True, help="Read every byte, and show the digest of each file and all."
)
@click.option("--algorithm", default="blake3", show_default=True, help="The digest: blake3, sha256, xxh3-128, crc32c.")
@click.option("--tensors", is_flag=True, help="List the tensors too.")
@click.option("--links-below", metavar="FOLDER", help="Follow links into this folder too, as a model cache has them.")
@json_option
def inspect_command(
    place: str, with_digest: bool, algorithm: str, tensors: bool, links_below: str | None, as_json: bool
) -> int:
    """Say what a checkpoint is from its files: a folder, a file, or a URL of an object store.

    Only headers are read; nothing is loaded, unpickled or executed.

    \b
    cairn inspect /ckpt/7b-a/checkpoint-41000
    cairn inspect s3://ckpt/7b-a/step-41000 --json
    cairn inspect ~/.cache/huggingface/hub/models--a--b/snapshots/1f --links-below ~/.cache/huggingface/hub
    """
    if not is_url(place) and not os.path.lexists(place):
        raise click.UsageError(f"{place}: No such file or folder.")
    try:
        source = LocalSource(place, links_below=links_below) if links_below else open_source(place)
        found = inspect(source)
        digest = _digest(source, algorithm) if with_digest else None
    except Unreadable as fault:
        if as_json:
            print_json({"root": path_text(place), "recognised": False, "reason": path_text(str(fault))})
        else:
            say(path_text(str(fault)))
        return 1
    if as_json:
        answer = {"recognised": True, **to_wire(found, tensors=tensors)}
        print_json({**answer, "digest": digest} if digest else answer)
        return 0
    _print(found, tensors)
    if digest:
        _print_digest(digest)
    return 0


def _digest(source: Source, algorithm: str) -> dict[str, Any]:
    from cairn.digests import LibraryMissing, digest_tree

    try:
        found = digest_tree(source, algorithm)
    except (LibraryMissing, ValueError) as fault:
        raise click.UsageError(str(fault)) from None
    return {
        "algorithm": found.algorithm,
        "value": found.value,
        "files": [{"path": path_text(each.path), "bytes": each.bytes, "digest": each.value} for each in found.files],
        "problems": [{"path": path_text(each.path), "reason": path_text(each.reason)} for each in found.problems],
    }


def _print(found: Inspection, tensors: bool) -> None:
    click.echo(clean(headline(found)))
    click.echo()
    pieces = found.pieces.items()
    rows = [(PIECE_NAMES[name], each.state, each.position, path_text(each.evidence)) for name, each in pieces]
    print_rows(("piece", "state", "kind", "evidence"), rows)
    click.echo()
    print_facts(_facts(found))
    for path in found.missing[:SHOWN_PROBLEMS]:
        say(f"missing: {path_text(path)}")
    for told in found.disagreements:
        say(f"disagreement: {path_text(told)}")
    for each in found.problems[:SHOWN_PROBLEMS]:
        say(f"{path_text(each.path)}: {path_text(each.reason)}" if each.path else path_text(each.reason))
    more = max(len(found.missing), len(found.problems)) - SHOWN_PROBLEMS
    if more > 0:
        say(f"and {more} more; --json shows all.")
    if tensors:
        click.echo()
        shown = [(each.name, each.dtype, "x".join(map(str, each.shape)), each.file) for each in found.tensors]
        print_rows(("tensor", "dtype", "shape", "file"), shown)


def _facts(found: Inspection) -> list[tuple[str, Any]]:
    step = None if found.step is None else f"{found.step} (from {path_text(found.step_source)})"
    layout = layout_to_wire(found.layout)
    extra = layout.pop("extra", {})
    dtypes = ", ".join(f"{dtype} {count:,}" for dtype, count in sorted(found.dtypes.items(), key=lambda each: -each[1]))
    return [
        ("format", f"{found.format} {found.format_version or ''}".strip()),
        ("step", step),
        ("complete", found.complete),
        *layout.items(),
        *extra.items(),
        ("parameters", None if found.parameter_count is None else f"{found.parameter_count:,}"),
        ("dtypes", dtypes),
        ("tensors", None if found.tensor_count is None else f"{found.tensor_count:,}"),
        ("size", f"{_size(found.bytes)} in {counted(found.files, 'file')}"),
        *((name.replace("_", " "), value) for name, value in to_wire(found)["facts"].items()),
        ("recorded as", _identity(found)),
    ]


def _identity(found: Inspection) -> str | None:
    """What cairn.json names it, where there is one."""
    said = found.identity
    if said is None:
        return None
    run = said.get("run")
    name = run.get("name") if isinstance(run, dict) else run
    return path_text(f"{said.get('project')}/{name}@{said.get('attempt')}.{said.get('step')} ({said.get('id')})")


def _print_digest(digest: dict[str, Any]) -> None:
    click.echo()
    print_rows(
        ("file", "size", digest["algorithm"]),
        [(each["path"], each["bytes"], each["digest"]) for each in digest["files"]],
    )
    click.echo(f"whole\t{digest['algorithm']}\t{digest['value'] or 'none: not every file could be read'}")
    for each in digest["problems"][:SHOWN_PROBLEMS]:
        say(f"{each['path']}: {each['reason']}")


def _size(count: int) -> str:
    number, unit = float(count), 0
    while number >= 1000 and unit < len(UNITS) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:.3g} {UNITS[unit]}" if unit else f"{count} B"
