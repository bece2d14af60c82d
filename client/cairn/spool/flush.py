"""What lies in spools on this host (and wherever the root is mounted), and sending it by hand."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cairn.client import Client
from cairn.drilled import refuse_in_drill
from cairn.errors import CairnError
from cairn.spool.adopted import Adopted, adopt
from cairn.spool.attempts import DECISION
from cairn.spool.backlog import Backlog
from cairn.spool.census import held_in, holder_of
from cairn.spool.delivery import Delivery
from cairn.spool.elsewhere import bring
from cairn.spool.places import roots, spool_folders
from cairn.spool.refused import Refusal, passes, refusals
from cairn.spool.service import is_same
from cairn.spool.unfinished import FOLDER as UNFINISHED
from cairn.spool.unfinished import Save, Unfinished
from cairn.supervise.kept import FOLDER as JOBS
from cairn.supervise.kept import Left, left_in
from cairn.supervise.sending import send_left

if TYPE_CHECKING:
    from cairn.recorder.prepare import Prepared


@dataclass(frozen=True)
class SpoolState:
    """One spool: whose it is, whether its owner lives, how many records wait in it, of which runs, for which service
    ('' where nobody has said it yet), and why, where somebody has tried to send them."""

    folder: Path
    host: str
    pid: int
    is_alive: bool
    waiting: int
    runs: tuple[str, ...]
    oldest_at: str
    service: str = ""
    why: str = ""


@dataclass
class Flushed:
    """What a flush did. `kept` says per spool what waits for a decision or a permission; `said` what to know."""

    sent: int = 0
    spools: int = 0
    kept: list[tuple[Path, str]] = field(default_factory=list)
    refused: int = 0
    committed: int = 0  # saves whose files were not whole when they were recorded
    forgotten: int = 0  # such saves whose files somebody has removed
    said: list[str] = field(default_factory=list)
    elsewhere: dict[str, int] = field(default_factory=dict)  # records that are for other services, by their address

    def follows(self, before: "Flushed") -> None:
        """Counts what the flush just before has done, too; what waits now, this one has found."""
        for name in ("sent", "refused", "committed", "forgotten"):
            setattr(self, name, getattr(self, name) + getattr(before, name))
        self.spools = max(self.spools, before.spools)
        settled = {why for _, why in before.kept} - {why for _, why in self.kept}
        self.said = [*(each for each in before.said if not each.startswith(tuple(settled))), *self.said]


def list_spools(places: Sequence[Path] | None = None) -> list[SpoolState]:
    """Every spool that holds records, the oldest first."""
    found = []
    for root in roots() if places is None else places:
        for folder in spool_folders(root):
            state = _state(folder)
            if state is not None:
                found.append(state)
    return found


def list_refused(places: Sequence[Path] | None = None) -> list[Refusal]:
    """What the service has refused, the oldest first."""
    return [each for root in (roots() if places is None else places) for each in refusals(root)]


def list_unfinished(places: Sequence[Path] | None = None) -> list[Save]:
    """Saves whose files were not whole when somebody last looked."""
    return [each for root in (roots() if places is None else places) for each in Unfinished(root).saves()]


def list_jobs(places: Sequence[Path] | None = None) -> list[Left]:
    """What jobs of `cairn exec` could not send."""
    return [each for root in (roots() if places is None else places) for each in left_in(root / JOBS)]


def waiting_runs(folder: Path) -> set[str]:
    """Of which runs records wait in a spool."""
    return {each.run for each in held_in(folder) if each.waiting}


def decide(folder: Path, said: Mapping[str, Any]) -> None:
    """Says what an attempt loaded whose records wait for that: `{"restart": true}` or `{"resumed_from": {...}}`; with
    `run` (project/run) only one of that run.

    The owner of the spool finds it, or whoever flushes. Raises OSError.
    """
    scratch = folder / f".{DECISION}"
    scratch.write_text(json.dumps(dict(said)), encoding="utf-8")
    os.replace(scratch, folder / DECISION)


def flush(
    client: Client,
    places: Sequence[Path] | None = None,
    *,
    only: Path | None = None,
    run: str | None = None,
    meant: Mapping[str, Any] | None = None,
    here: bool = False,
    forget: bool = False,
) -> Flushed:
    """Sends what dead processes and earlier jobs of `cairn exec` have left, and looks again at saves whose files were
    not whole. `only`: nothing but this spool. `run`: nothing but spools and saves of this run (project/run, or its id).
    `meant`: see `decide`; for jobs of `cairn exec`, which are left out where only a `run` is named. `here`: what is for
    another service goes to this one. `forget`: saves whose files are gone are forgotten even where their storage may
    only be away.

    Raises `CairnError` where the service cannot be reached or is too busy: then what was not sent stays, for the next
    flush or start.
    """
    refuse_in_drill("Nothing is sent.")
    done = Flushed()
    where = list(roots() if places is None else places)
    chosen = _chosen(where, only, run)
    if here:
        done.said += [told for root in where for told in bring(root, client, chosen)]
    found = [
        each
        for folder in chosen
        for each in adopt(where, None, client, lambda: _preparer(done), _say(done), only=folder)
    ]
    try:
        for each in found:
            _flush_one(each, done)
    finally:
        for each in found:
            each.lease.release()
    for root in where if only is None else ():
        aside = Delivery(Backlog(root / UNFINISHED), client, _preparer(done), warn=_say(done), root=root)
        done.committed += aside.look_again(run, _forgets(done, forget))
        done.refused += aside.refusals
        if run is None or meant:
            _flush_jobs(root / JOBS, client, done, meant, here, run)
    _count_elsewhere(chosen, client.url, done)
    return done


def _forgets(done: Flushed, even_away: bool) -> Callable[[Save], bool]:
    """Which saves are not looked at any more; they are counted."""

    def forgets(save: Save) -> bool:
        is_gone = save.is_gone(surely=not even_away)
        done.forgotten += is_gone
        return is_gone

    return forgets


def _chosen(where: Sequence[Path], only: Path | None, run: str | None) -> list[Path]:
    """The spools to look at, the oldest of each root first."""
    folders = [folder for root in where for folder in spool_folders(root)]
    if only is not None:
        folders = [each for each in folders if each.samefile(only)]
    if run is None:
        return folders
    return [each for each in folders if any(held.waiting and held.is_of(run) for held in held_in(each))]


def _preparer(done: Flushed) -> "Prepared":
    from cairn.recorder.prepare import Prepared

    return Prepared(_say(done), own=False)


def _say(done: Flushed) -> Callable[[str], None]:
    return done.said.append


def _count_elsewhere(folders: Sequence[Path], url: str, done: Flushed) -> None:
    for folder in folders:
        service, holder = Backlog.service_of(folder), holder_of(folder)
        if not service or is_same(service, url) or holder is None or holder.is_alive:
            continue
        if waiting := sum(each.waiting for each in held_in(folder)):
            done.elsewhere[service] = done.elsewhere.get(service, 0) + waiting


def _flush_one(each: Adopted, done: Flushed) -> None:
    """A fault in this spool is told, and the next one goes on. Raises `CairnError` where the service is away."""
    before = each.delivery.backlog.count()
    try:
        while each.step():
            pass
        each.finish()
    except Exception as fault:
        if isinstance(fault, CairnError) and passes(fault):
            raise
        done.kept.append((each.folder, each.failed(fault)))
    left = each.delivery.backlog.count() if each.folder.exists() else 0
    done.sent += max(before - left - each.delivery.refusals, 0)
    done.refused += each.delivery.refusals
    done.spools += 1 if before else 0
    done.kept += [(each.folder, why) for why in dict.fromkeys(each.delivery.waiting.values())]


def _flush_jobs(
    folder: Path,
    client: Client,
    done: Flushed,
    meant: Mapping[str, Any] | None,
    here: bool = False,
    run: str | None = None,
) -> None:
    for left in left_in(folder):
        if run not in (None, left.run):
            continue
        if here:
            left.service = client.url
        if not left.is_for(client.url):
            done.elsewhere[left.service] = done.elsewhere.get(left.service, 0) + len(left.requests)
            continue
        try:
            sent, refused = send_left(left, client, done.said.append, meant)
        except Exception as fault:
            if isinstance(fault, CairnError) and passes(fault):
                raise
            done.kept.append((left.path, f"it cannot be sent ({type(fault).__name__}: {fault})"))
            continue
        done.sent, done.refused, done.spools = done.sent + sent, done.refused + refused, done.spools + 1
        if left.requests:
            done.kept.append((left.path, f"nobody said what a job of run {left.run!r} loaded"))


def _state(folder: Path) -> SpoolState | None:
    held, holder = held_in(folder), holder_of(folder)
    waiting = sum(each.waiting for each in held)
    if holder is None or not (waiting or holder.is_alive):
        return None
    runs = tuple(dict.fromkeys(each.run for each in held if each.run))
    oldest = next((each.oldest_at for each in held if each.oldest_at), "")
    service, why = Backlog.service_of(folder), Backlog.why_waiting(folder)
    return SpoolState(folder, holder.host, holder.pid, holder.is_alive, waiting, runs, oldest, service, why)
