"""The options of `cairn record` as fields of a registration."""

import os
import socket
from pathlib import Path
from typing import Any

import click

from cairn.cli.output import say
from cairn.configs import read_config_path
from cairn.errors import Invalid
from cairn.score_names import score_name

PIECES = ("weights", "optimizer", "data_position", "random_state")
PRESENCE = ("present", "absent", "unknown")
OBJECT_SCHEMES = ("s3://", "gs://", "az://", "abfs://", "oss://", "cos://", "r2://", "https://")
PLAIN = ("attempt", "kind", "loss", "lr", "epoch", "tokens_seen", "data_version")
Fields = dict[str, Any]


def fields_of(options: Fields) -> Fields:
    """Those that were given; one that cannot be read is a usage error."""
    fields: Fields = {name: options[name] for name in PLAIN if options[name] is not None}
    if options["pending"]:
        fields["state"] = "pending"
    if options["scores"]:
        fields["scores"] = scores_of(options)
    if options["paths"]:
        fields["replicas"] = copies_of(options)
    if options["tags"]:
        fields["tags"] = tags_of(options)
    if options["config"]:
        fields["config"] = _config(options["config"])
    if options["pieces"]:
        fields["pieces"] = pieces(options["pieces"])
    return fields


def scores_of(options: Fields) -> list[Fields]:
    return [_score(text) for text in options["scores"]]


def tags_of(options: Fields) -> dict[str, str]:
    return dict(_pair(text, "--tag") for text in options["tags"])


def copies_of(options: Fields) -> list[Fields]:
    return [_replica(text, options["tier"], options["host"], options["digest"]) for text in options["paths"]]


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


def _replica(uri: str, tier: str | None, host: str | None, digest: bool) -> Fields:
    """Only an object store shows in the address; whether a folder is shared or local has to be said."""
    known = "object" if uri.startswith(OBJECT_SCHEMES) else tier
    if known is None:
        raise click.UsageError(f"--path {uri}: is that folder local or shared? Say --tier local or --tier shared.")
    place = (
        uri if "://" in uri else os.path.abspath(uri)
    )  # every host and the service have a working folder of their own
    copy = {"uri": place, "tier": known}
    if digest:
        copy = _digested(place, known)
    is_here = "://" in place or os.path.exists(place)
    if not is_here:
        say(f"Note: {place} is not there on this host. It is recorded all the same, since another host may have it.")
    return copy | _whose(place, known, host, is_here)


def _whose(place: str, tier: str, host: str | None, is_here: bool) -> Fields:
    """On whose disk a local copy lies: without that, no launch takes it."""
    if tier != "local":
        return {}
    if host is None and not is_here:
        say(f"Note: nobody resumes from {place} before it is known on whose disk it lies: --host HOST.")
        return {}
    return {"host": host or socket.gethostname()}


def _digested(place: str, tier: str) -> Fields:
    from cairn.formats.checkpoints import Unreadable
    from cairn.replicas import replica

    try:
        return {**replica(place, tier=tier, digest=True), "uri": place}
    except Unreadable as fault:
        raise click.UsageError(f"--path {place}: {fault}") from None


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
