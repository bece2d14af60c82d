"""`cairn reproduce`: what a checkpoint was made with, written into a folder."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from cairn import wire
from cairn.cli.output import json_option, print_json, say
from cairn.cli.targets import find_checkpoint_id
from cairn.client import Client
from cairn.errors import Invalid
from cairn.types import Provenance


class FolderTaken(Invalid):
    """The folder holds something: nothing is ever written over."""


@click.command()
@click.argument("checkpoint")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@json_option
def reproduce(checkpoint: str, folder: Path, as_json: bool) -> None:
    """Write what CHECKPOINT was made with into the new or empty folder DIR: config, code, data, environment, command.

    Nothing there is run, or can be by accident: the launch command is a text to read. What is not recorded is named.
    """
    with Client() as client:
        found = client.provenance(find_checkpoint_id(client, checkpoint))
    written = write_folder(found, folder)
    if as_json:
        print_json({"folder": str(folder), "files": written, "unknown": list(found.unknown)})
        return
    say(f"{len(written)} files in {folder}: {', '.join(written)}.")
    for each in found.unknown:
        say(f"Not known: {each}.")


def write_folder(found: Provenance, folder: Path) -> list[str]:
    """The names of the files written. Raises `FolderTaken` where the folder holds anything, `OSError`."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FolderTaken(f"{folder} is there and not empty: nothing is written over. Name a new folder.", code="")
    folder.mkdir(parents=True, exist_ok=True)
    files = dict(_files(found))
    for name, text in files.items():
        # Exclusively: a file that appeared in between is not written over, and a link is not followed.
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    return sorted(files)


def _files(found: Provenance) -> Iterator[tuple[str, str]]:
    stage = next((each for each in found.stages if isinstance(each, dict)), {})
    code = stage.get("code") if isinstance(stage.get("code"), dict) else None
    if found.config is not None:
        yield "config.json", _json(found.raw.get("config"))
    if found.environment is not None:
        yield "environment.json", _json(found.raw.get("environment"))
    if code is not None:
        yield "code.json", _json(code)
    if stage.get("layout"):
        yield "layout.json", _json(stage["layout"])
    data = [{name: each.get(name) for name in ("data_version", "mix", "tokens", "skipped")} for each in found.stages]
    yield "data.json", _json({"tokens_by_source": found.raw.get("tokens_by_source"), "stages_newest_first": data})
    if stage.get("command"):
        yield "command.txt", f"{stage['command']}\n"
    yield "provenance.json", _json(found.raw)
    yield "README.md", "\n".join(_readme(found, stage, code)) + "\n"


def _readme(found: Provenance, stage: Mapping[str, Any], code: Mapping[str, Any] | None) -> Iterator[str]:
    yield f"# How to reproduce {found.checkpoint}"
    yield ""
    commit = code.get("commit") if code else None
    yield f"1. Code: {f'commit {commit}' if commit else 'no commit is recorded'}" + (
        f" of {code.get('remote')}" if code and code.get("remote") else ""
    )
    if code and code.get("dirty"):
        digest = f" of digest {code['diff_digest']}" if code.get("diff_digest") else ""
        yield f"   It ran with uncommitted changes{digest}: the commit alone is not it."
    yield f"2. Config: {'config.json' if found.config is not None else 'not recorded'}"
    yield f"3. Data: {stage.get('data_version') or 'no version is recorded'} (data.json has the mix of each stage)"
    yield f"4. Environment: {'environment.json' if found.environment is not None else 'not recorded'}"
    launch = "command.txt holds the command as it was recorded; read it before you run it"
    yield f"5. Launch: {launch if stage.get('command') else 'no command is recorded'}"
    parents = [each for each in found.parents if isinstance(each, dict)]
    if parents:
        named = ", ".join(f"{each.get('parent')} ({str(each.get('relation')).replace('_', ' ')})" for each in parents)
        yield f"6. It began from: {named}"
    if found.unknown:
        yield ""
        yield "Not known:"
        yield ""
        yield from (f"- {each}" for each in found.unknown)


def _json(value: Any) -> str:
    return json.dumps(json.loads(wire.encode(value)), ensure_ascii=False, indent=2) + "\n"
