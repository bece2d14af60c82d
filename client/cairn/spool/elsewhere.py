"""Records for one service that somebody wants to be sent to another: a moved one, or a new one in its place.

What a spool remembers of its attempts are names that the first service gave. Where the other does not know them, the
attempts are opened again from the records of their start; where those stand in no file any more, nothing is sent.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from cairn.client import Client
from cairn.errors import Forbidden, Invalid, NotFound
from cairn.spool.backlog import Backlog, Stream
from cairn.spool.census import holder_of
from cairn.spool.places import spool_folders
from cairn.spool.service import is_same


def bring(root: Path, client: Client, folders: Collection[Path]) -> Iterator[str]:
    """Makes the spools of dead processes below a root this service's; says why one stays. Raises `CairnError`."""
    for folder in spool_folders(root):
        service = Backlog.service_of(folder)
        if folder not in folders or not service or is_same(service, client.url):
            continue
        holder = holder_of(folder)
        if holder is None or holder.is_alive:
            continue
        if (run := _cannot_be_opened(Backlog(folder), client)) is not None:
            yield f"{folder} stays for {service}: where run {run} began was sent there and stands here no more."
        else:
            Backlog(folder).belongs_to(client.url)


def _cannot_be_opened(backlog: Backlog, client: Client) -> str | None:
    """The run of an attempt that this service does not know and that cannot be told to it."""
    strange = {key for key, stream in backlog.streams.items() if stream.facts and not _is_known(stream, client)}
    openings = {each.record["key"] for each in backlog.records() if each.record.get("kind") in ("start", "attempt")}
    for key in strange:
        if key not in openings:
            return f"{backlog.streams[key].facts.get('project')}/{backlog.streams[key].facts.get('run')}"
    for key in strange:
        backlog.streams[key] = Stream()
    if strange:
        backlog.keep()
    return None


def _is_known(stream: Stream, client: Client) -> bool:
    facts = stream.facts
    try:
        run = client.get_run(facts["run_id"])
    except (NotFound, Invalid, Forbidden, KeyError):
        return False
    return (run.project, run.name) == (facts.get("project"), facts.get("run"))
