"""Spools that dead processes have left: taken over, sent, and thrown away once they are empty."""

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cairn.client import Client
from cairn.errors import CairnError, Invalid, NotFound
from cairn.spool.backlog import Backlog, Record
from cairn.spool.curves import tail
from cairn.spool.delivery import Delivery, Warn
from cairn.spool.files import segment_name
from cairn.spool.frames import Framed, unsound_lines
from cairn.spool.lease import RENEW_SECONDS, Lease, claim
from cairn.spool.places import REFUSED, spool_folders
from cairn.spool.saves import Preparer


class Adopted:
    """A spool that a dead process has left, under a lease of ours."""

    def __init__(self, folder: Path, lease: Lease, delivery: Delivery, warn: Warn) -> None:
        self.folder, self.lease, self.delivery = folder, lease, delivery
        self._warn = warn
        self._renewed_at = time.monotonic()
        self._is_lost = False

    def step(self) -> bool:
        """Sends what is next. Raises `CairnError`."""
        if time.monotonic() - self._renewed_at > RENEW_SECONDS:
            self._renewed_at = time.monotonic()
            self._is_lost = not self.lease.renew()
        return not self._is_lost and self.delivery.step()

    def failed(self, fault: Exception) -> str:
        """Gives it up after a fault of its own, told for the others to go on; the reason."""
        why = fault.detail if isinstance(fault, CairnError) else f"{type(fault).__name__}: {fault}"
        self._warn(f"the spool {self.folder}, which an earlier job has left, cannot be sent and stays: {why}")
        with contextlib.suppress(OSError):
            self.lease.release()
        return why

    def finish(self) -> bool:
        """After the last record: sends the curves' ends, and throws the folder away where nothing waits in it. One
        that others have taken over meanwhile is theirs. Raises `CairnError`."""
        if self._is_lost:
            return False
        backlog = self.delivery.backlog
        records = list(backlog.records())
        for key in {each.record["key"] for each in records} - set(self.delivery.waiting):
            own = [each.record for each in records if each.record["key"] == key]
            if any(each.get("kind") == "finish" for each in own):
                continue
            self._last_sign_of_life(backlog.stream(key).facts, own)
            last = tail(each for each in own if each.get("kind") == "points")
            if last is not None and "number" in backlog.stream(key).facts:
                self.delivery.send([Framed(backlog.stream(key).done, {**last, "key": key}, 0)])
        if self.delivery.waiting or not backlog.is_empty() or not self.lease.is_held():
            return False
        self._keep_what_is_damaged()
        backlog.remove()
        return True

    def _last_sign_of_life(self, facts: Mapping[str, Any], own: Sequence[Record]) -> None:
        """An attempt that nobody ended lived until its last record: from then on the service finds it lost. Raises
        `CairnError`."""
        moments = [str(moment) for each in own if (moment := each.get("saved_at") or each.get("t") or each.get("at"))]
        began = [str(each["started_at"]) for each in own if each.get("started_at")]
        if "number" not in facts or not (moments or began):
            return
        steps = [each["step"] for each in own if isinstance(each.get("step"), int)]
        told: dict[str, Any] = {"step": max(steps)} if steps else {}
        with contextlib.suppress(NotFound, Invalid):
            last = max(moments or began)
            self.delivery.client.patch_attempt(facts["run_id"], facts["number"], heartbeat_at=last, **told)

    def _keep_what_is_damaged(self) -> None:
        """A whole line that cannot be read was acknowledged once: the disk has changed it. A person may want it."""
        for number in self.delivery.backlog.segments():
            path = self.folder / segment_name(number)
            with contextlib.suppress(OSError):
                if not (count := unsound_lines(path.read_bytes())):
                    continue
                aside = self.folder.parent / REFUSED
                aside.mkdir(mode=0o700, exist_ok=True)
                kept = aside / f"damaged-{self.folder.name}-{path.name}"
                os.replace(path, kept)
                lines, they = ("a line", "it") if count == 1 else (f"{count} lines", "they")
                self._warn(f"the disk has damaged {lines} of a spool; what {they} recorded is not sent. See {kept}.")


def adopt(
    roots: Sequence[Path],
    own: Path | None,
    client: Client,
    preparer: Callable[[], Preparer],
    warn: Warn,
    *,
    only: Path | None = None,
) -> list[Adopted]:
    """Every spool (or only one) whose owner is dead and that nobody else takes, the oldest first."""
    found = []
    for root in roots:
        for folder in spool_folders(root):
            lease = None
            try:
                passed = folder == own or (only is not None and not folder.samefile(only))
                lease = None if passed or not Backlog.is_for(folder, client.url) else claim(folder)
                if lease is not None:
                    delivery = Delivery(Backlog(folder), client, preparer(), warn=warn, root=root, is_own=False)
                    found.append(Adopted(folder, lease, delivery, warn))
            except FileNotFoundError:
                continue  # its owner, or another who adopts, has just thrown it away
            except Exception as fault:  # whatever lies there: the others are taken over
                warn(f"the spool {folder} cannot be taken over: {getattr(fault, 'strerror', '') or fault}")
                if lease is not None:
                    lease.release()
    return found
