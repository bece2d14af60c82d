"""`cairn reproduce`: what a checkpoint was made with, written into a folder."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from cairn import wire
from cairn.cli.output import json_option, print_json, say
from cairn.cli.targets import find_checkpoint_id
from cairn.client import Client
from cairn.errors import Invalid
from cairn.types import Provenance

# How a copy was made: nothing was trained in it, so what its source was trained with is what makes it again.
COPIES = {"converted_from": "converted", "resharded_from": "resharded", "quantised_from": "quantised"}


class FolderTaken(Invalid):
    """The folder holds something: nothing is ever written over."""


@click.command()
@click.argument("checkpoint")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@json_option
def reproduce(checkpoint: str, folder: Path, as_json: bool) -> None:
    """Write what CHECKPOINT was made with into the new or empty folder DIR: config, code, data, environment, command.

    Nothing there is run, or can be by accident: the launch command is a text to read. What is not recorded is named.
    Of a copy (converted, resharded, quantised) it is what the copied checkpoint was trained with; README.md says how
    the copy was made.
    """
    with Client() as client:
        found = client.provenance(find_checkpoint_id(client, checkpoint))
        copied = _copied(found)
        trained = client.provenance(str(copied[-1]["parent"])) if copied else found
    written = write_folder(found, folder, trained=trained)
    if as_json:
        print_json({"folder": str(folder), "files": written, "unknown": list(found.unknown)})
        return
    say(f"{len(written)} files in {folder}: {', '.join(written)}.")
    for each in trained.notes:
        say(f"{each[:1].upper()}{each[1:]}.")
    for each in found.unknown:
        say(f"Not known: {each}.")


def _copied(found: Provenance) -> list[Mapping[str, Any]]:
    """The edges from a copy to what was trained, the newest first; none where the checkpoint was trained itself."""
    by_child = {each["child"]: each for each in found.parents if isinstance(each, dict) and _is_copy(each)}
    here, edges = found.checkpoint.id, list[Mapping[str, Any]]()
    while here in by_child:
        edges.append(by_child.pop(here))
        here = edges[-1]["parent"]
    return edges


def _is_copy(edge: Mapping[str, Any]) -> bool:
    return edge.get("relation") in COPIES and isinstance(edge.get("child"), str) and isinstance(edge.get("parent"), str)


def write_folder(found: Provenance, folder: Path, *, trained: Provenance | None = None) -> list[str]:
    """The names of the files written. `trained`: what `found` is a copy of, where it is one.

    Raises `FolderTaken` where the folder holds anything, `OSError`."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FolderTaken(f"{folder} is there and not empty: nothing is written over. Name a new folder.", code="")
    folder.mkdir(parents=True, exist_ok=True)
    files = dict(_files(found, trained or found))
    for name, text in files.items():
        # Exclusively: a file that appeared in between is not written over, and a link is not followed.
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    return sorted(files)


def _files(found: Provenance, trained: Provenance) -> Iterator[tuple[str, str]]:
    stage = next((each for each in trained.stages if isinstance(each, dict)), {})
    code = stage.get("code") if isinstance(stage.get("code"), dict) else None
    if trained.config is not None:
        yield "config.json", _json(trained.raw.get("config"))
    if trained.environment is not None:
        yield "environment.json", _json(trained.raw.get("environment"))
    if code is not None:
        yield "code.json", _json(code)
    if stage.get("layout"):
        yield "layout.json", _json(stage["layout"])
    data = [_data_of(each) for each in found.stages if isinstance(each, dict)]
    yield "data.json", _json({"tokens_by_source": found.raw.get("tokens_by_source"), "stages_newest_first": data})
    if stage.get("command"):
        yield "command.txt", f"{stage['command']}\n"
    if found is not trained:
        yield "conversion.json", _json(_conversion(found))
    yield "provenance.json", _json(found.raw)
    yield "README.md", "\n".join(_readme(found, trained, stage, code)) + "\n"


def _data_of(stage: Mapping[str, Any]) -> Mapping[str, Any]:
    """Which data a stage was trained on, and between which steps of which run."""
    end = stage["checkpoint"]
    where = {"run": end["run"]["name"], "attempt": end["attempt"], "last_step": end["step"]}
    names = ("first_step", "data_version", "mix", "tokens", "skipped")
    return where | {name: stage.get(name) for name in names}


def _data_versions(trained: Provenance, stage: Mapping[str, Any]) -> str:
    """The version of the stage itself, and those that came before it, the newest first."""
    own = stage.get("data_version")
    every = [each.get("data_version") for each in trained.stages if isinstance(each, dict)]
    before = [each for each in dict.fromkeys(every) if each and each != own]
    return (own or "no version is recorded") + (f", before it {', '.join(map(str, before[:20]))}" if before else "")


def _conversion(found: Provenance) -> Mapping[str, Any]:
    """How the copy was made, with what is recorded of its making; the newest step first."""
    own = ("checkpoint", "code", "command", "config_digest", "environment_digest", "layout")
    stages = {each["checkpoint"]["id"]: each for each in found.stages if isinstance(each, dict)}
    steps = [
        {"relation": each["relation"], "parent": each["parent"]}
        | {name: stages.get(each["child"], {}).get(name) for name in own}
        for each in _copied(found)
    ]
    return {"config": found.raw.get("config"), "environment": found.raw.get("environment"), "steps_newest_first": steps}


def _readme(
    found: Provenance, trained: Provenance, stage: Mapping[str, Any], code: Mapping[str, Any] | None
) -> Iterator[str]:
    yield f"# How to reproduce {found.checkpoint}"
    yield ""
    names = _names(found)
    copied = _copied(found)
    for each in copied:
        yield f"{names(each['child'])} was {COPIES[each['relation']]} from {names(each['parent'])}."
    if copied:
        yield "conversion.json has what is recorded of that; what follows is how the source was made."
        yield ""
    commit = code.get("commit") if code else None
    yield f"1. Code: {f'commit {commit}' if commit else 'no commit is recorded'}" + (
        f" of {code.get('remote')}" if code and code.get("remote") else ""
    )
    if code and code.get("dirty"):
        digest = f" of digest {code['diff_digest']}" if code.get("diff_digest") else ""
        yield f"   It ran with uncommitted changes{digest}: the commit alone is not it."
    yield f"2. Config: {'config.json' if trained.config is not None else 'not recorded'}"
    yield f"3. Data: {_data_versions(trained, stage)} (data.json has the mix and steps of each stage)"
    yield f"4. Environment: {'environment.json' if trained.environment is not None else 'not recorded'}"
    launch = "command.txt holds the command as it was recorded; read it before you run it"
    yield f"5. Launch: {launch if stage.get('command') else 'no command is recorded'}"
    yield from (f"   {each[:1].upper()}{each[1:]}." for each in trained.notes)
    direct = _direct_parents(trained)
    if direct:
        named = ", ".join(f"{names(each['parent'])} ({str(each['relation']).replace('_', ' ')})" for each in direct)
        yield f"6. It began from: {named}"
    if found.unknown:
        yield ""
        yield "Not known:"
        yield ""
        yield from (f"- {each}" for each in found.unknown)


def _names(found: Provenance) -> Callable[[str], str]:
    """Run, attempt and step of a checkpoint of the chain, with its id."""
    known = {each["id"]: each for each in found.raw.get("checkpoints") or () if isinstance(each, dict)}

    def name(checkpoint_id: str) -> str:
        each = known.get(checkpoint_id)
        if each is None:
            return checkpoint_id
        return f"{each['run']['name']} · {each['attempt']} · {each['step']} (id {checkpoint_id})"

    return name


def _direct_parents(trained: Provenance) -> list[Mapping[str, Any]]:
    """The edges of the checkpoint, or of an earlier one of its attempt; not those of what it came from."""
    here = trained.checkpoint
    run = here.run.id if here.run is not None else ""
    own = {here.id} | {
        each["id"]
        for each in trained.raw.get("checkpoints") or ()
        if isinstance(each, dict) and (each["run"]["id"], each["attempt"]) == (run, here.attempt)
    }
    edges = [each for each in trained.parents if isinstance(each, dict)]
    return [each for each in edges if each["child"] in own and each["parent"] not in own]


def _json(value: Any) -> str:
    return json.dumps(json.loads(wire.encode(value)), ensure_ascii=False, indent=2) + "\n"
