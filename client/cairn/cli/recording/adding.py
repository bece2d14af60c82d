"""What is known of a recorded checkpoint only later: further copies, scores, tags, another loss."""

from typing import Any

import click

from cairn.cli.recording.options import Fields, copies_of, scores_of, tags_of
from cairn.cli.targets import find_checkpoint_id
from cairn.client import Client

ADDED = {"paths": "--path", "scores": "--score", "tags": "--tag", "loss": "--loss"}
OF_PATHS = ("tier", "host", "digest")
IN_WORDS = "--path, --score, --tag and --loss"


def add_to(named: str, options: Fields) -> tuple[Any, ...]:
    """Adds what the options say to a recorded checkpoint; what is there already changes nothing. Gives the row to show.

    Raises `CairnError`; `click.UsageError` before anything is sent.
    """
    said = {name for name, value in options.items() if value is not None and value is not False and value != ()}
    if said - {*ADDED, *OF_PATHS}:
        raise click.UsageError(f"What {named} was recorded with stays; what can be said of it later is {IN_WORDS}.")
    if not said & set(ADDED):
        raise click.UsageError(f"Say what to add to {named}: {IN_WORDS}. `-` reads checkpoints from standard input.")
    copies, scores, changes = copies_of(options), scores_of(options), _changes(options)
    with Client() as client:
        before = client.get_checkpoint(find_checkpoint_id(client, named))
        if copies:  # first, since these the service may refuse
            client.add_replicas(before, copies)
        if scores:
            client.record_scores(before, scores)
        if changes:
            client.patch_checkpoint(before, **changes)
        after = client.get_checkpoint(before)
    status = "unchanged" if after.raw == before.raw else "amended"
    return before.project, before.run.name if before.run else None, before.step, status, before.id


def _changes(options: Fields) -> Fields:
    changes: Fields = {"tags": tags_of(options)} if options["tags"] else {}
    return changes if options["loss"] is None else {**changes, "loss": options["loss"]}
