"""`cairn fetch`: a copy of a checkpoint in a folder of this machine."""

import os
import socket
import time

import click

from cairn.cli.output import json_option, print_json, say
from cairn.cli.progress import bytes_bar
from cairn.cli.quantities import size
from cairn.cli.targets import find_checkpoint_id
from cairn.client import Client
from cairn.errors import CairnError, NotFound
from cairn.fetch import Fetched, FetchFailed, fetch
from cairn.formats.checkpoints import Unreadable
from cairn.resume.reach import reach
from cairn.stores import open_source
from cairn.types import CopyOption, Manifest

TIERS = ("local", "shared", "object")


@click.command(name="fetch")
@click.argument("checkpoint", metavar="CHECKPOINT")
@click.argument("destination", metavar="DEST", type=click.Path(file_okay=True))
@click.option("--tier", "tiers", type=click.Choice(TIERS), multiple=True, help="Only copies there. May be repeated.")
@click.option("--jobs", type=click.IntRange(1, 256), default=8, show_default=True, help="Pieces copied side by side.")
@json_option
def fetch_command(checkpoint: str, destination: str, tiers: tuple[str, ...], jobs: int, as_json: bool) -> int:
    """Copy a checkpoint into the folder DEST from the fastest copy that can be read here.

    \b
    cairn fetch llm/7b-a@41000 /nvme/41000
    cairn fetch llm/production ./production --tier object

    Files are copied in parallel into DEST.partial and verified: against the digests of the manifest, else by their
    sizes. Broken off, the same command goes on where it stopped. DEST must not be there: nothing is overwritten.
    Exit codes: 0 copied; 1 no copy can be read here; 2 usage, DEST is there; 3 the copy failed, or the service did.
    """
    if os.path.lexists(destination):
        raise click.UsageError(f"{destination} is there already, and nothing is overwritten. Name another folder.")
    began = time.monotonic()
    with Client() as client:
        found = _from_any_copy(client, checkpoint, destination, tiers, jobs)
    if found is None:
        return 1
    copy, done = found
    seconds = time.monotonic() - began
    if as_json:
        print_json(
            {**vars(done), "from": copy.uri, "tier": copy.tier, "replica_id": copy.replica_id, "seconds": seconds}
        )
        return 0
    say(f"{done.files} files, {size(done.bytes)}, from {copy.uri} in {seconds:.1f} s; verified by {done.verified_by}.")
    if done.verified_by == "size":
        say("No digests are recorded of this copy, so only sizes were compared.")
    click.echo(done.path)
    return 0


def _from_any_copy(
    client: Client, checkpoint: str, destination: str, tiers: tuple[str, ...], jobs: int
) -> tuple[CopyOption, Fetched] | None:
    """The first copy that can be read from beginning to end; the others with why not."""
    host = socket.gethostname()
    plan = client.restore_plan(find_checkpoint_id(client, checkpoint), hosts=[host])
    if plan.obstacle:
        say(f"Note: {plan.obstacle}.")
    failed: CairnError | None = None
    for copy in plan.copies:
        fault, path = _fault(copy, tiers, host, client)
        if fault:
            say(f"Passed over the copy on {copy.tier}, {copy.uri}: {fault}")
            continue
        try:
            return copy, _fetched(client, copy, path, destination, jobs)
        except Unreadable as error:
            say(f"Passed over the copy on {copy.tier}, {copy.uri}: {error}")
        except FetchFailed as error:
            if error.code != "not-verified":
                raise
            failed = error
            say(f"Passed over the copy on {copy.tier}, {copy.uri}: {error.detail}")
    if failed is not None:
        raise failed
    say("No copy of it can be read here." if plan.copies else "No copy of it is recorded.")
    return None


def _fault(copy: CopyOption, tiers: tuple[str, ...], host: str, client: Client) -> tuple[str, str]:
    if tiers and copy.tier not in tiers:
        return f"only copies on {', '.join(tiers)} are wanted", copy.uri
    if not copy.feasible:
        return copy.reason, copy.uri
    if len(copy.parts) > 1:
        return "it is spread over the disks of several hosts", copy.uri
    seen = reach(copy, host, client)
    return seen.fault, seen.path


def _fetched(client: Client, copy: CopyOption, path: str, destination: str, jobs: int) -> Fetched:
    manifest = _manifest(client, copy)
    digest = None
    if manifest is not None and manifest.algorithm and manifest.digest:
        digest = (manifest.algorithm, manifest.digest)
    with bytes_bar(f"Fetching {os.path.basename(destination)}", _steps(copy, manifest)) as progress:
        return fetch(open_source(path), destination, manifest=manifest, digest=digest, workers=jobs, progress=progress)


def _manifest(client: Client, copy: CopyOption) -> Manifest | None:
    try:
        return client.manifest(copy.replica_id) if copy.has_manifest else None
    except NotFound:
        return None


def _steps(copy: CopyOption, manifest: Manifest | None) -> int | None:
    """Bytes to copy, and to read again where there is something to verify them with."""
    if copy.bytes is None:
        return None
    return copy.bytes * (2 if manifest is not None and manifest.algorithm else 1)
