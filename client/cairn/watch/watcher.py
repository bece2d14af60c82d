"""One look: logs, checkpoints, results, in this order, and everything that was found out kept in one transaction."""

import json
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cairn.client import Client
from cairn.scan.arrange import BEGUN, KNOWN, NEW, PENDING, Rules, arrange
from cairn.scan.compare import compare
from cairn.scan.plan import SENT, Plan
from cairn.scan.register import register
from cairn.scan.spool import Row, Spool
from cairn.scan.walk import open_tree
from cairn.stores import is_url
from cairn.watch.assign import assign
from cairn.watch.attempts import Attempts, Saved
from cairn.watch.curves import Curves, known_values, send_curves
from cairn.watch.events import Event
from cairn.watch.folders import Met, Seen, look_around, look_to_text
from cairn.watch.results import ResultFile, Results, below_root, of_folder
from cairn.watch.state import Known, State, state_file

TRAINER_STATE = "trainer_state.json"
_FOUND = """
SELECT id, path, run, attempt, step, modified, status, note, checkpoint, uri, fields, complete, format FROM found
WHERE status IN (?, ?)
"""
_UNRECORDED = "SELECT id, attempt, step, fields FROM found WHERE run = ? AND status IN (?, ?)"
_KEEP = "INSERT OR REPLACE INTO place VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_WITHOUT_LOSS = (
    "SELECT path, checkpoint, attempt, step FROM place WHERE state = 'committed' AND has_loss = 0 AND run = ?"
)


@dataclass(frozen=True)
class Watched:
    """What to watch. `logs`: text logs, or folders of runs in MLflow's file store; `evals`: folders of result files.

    `quiet_seconds`: what its own files do not show to be whole is taken as whole once it has not changed for so long.
    """

    root: str
    project: str
    run: str
    tier: str | None = None
    quiet_seconds: float = 60.0
    logs: tuple[str, ...] = ()
    evals: tuple[str, ...] = ()


class Watcher:
    """Looks at one root for one run. A context manager: it holds the file of what it knows."""

    def __init__(self, watched: Watched, state_path: Path | None = None) -> None:
        self._what = watched
        self._tree = open_tree(watched.root)
        self._state = State(state_path or state_file(self._tree.root, watched.project, watched.run))
        self._unfinished = True  # whether the last look left something that only time decides
        self._attempts: dict[str, Attempts] = {}

    def __enter__(self) -> "Watcher":
        return self

    def __exit__(self, *_: object) -> None:
        self._state.close()

    def look(self, client: Client) -> Iterator[Event]:
        """What there is to tell since the last look. Raises `CairnError` where the service is away, `Unreadable` where
        the root is: nothing is lost then, and the next look does it again."""
        self._attempts = {}
        try:
            yield from self._read_logs(client)
            with Spool() as spool:
                seen = look_around(self._tree, self._state, spool)
                if seen.changed or self._unfinished:
                    yield from self._record(client, spool, seen)
            yield from self._read_trainer_state(client, seen)
            yield from self._attach_results(client, seen)
            yield from self._send_curves(client)
            self._fill_losses(client)
            self._state.keep()
        except BaseException:
            self._state.forget()
            raise

    def recorded(self) -> int:
        """How many checkpoints below the root are recorded."""
        return len(self._state.known())

    def _read_logs(self, client: Client) -> Iterator[Event]:
        curves = self._curves(client)
        for path in self._what.logs:
            try:
                yield from curves.read_log(path)
            except OSError as fault:
                yield from self._once(f"{path} cannot be read: {fault.strerror or fault}; it is tried again.")

    def _record(self, client: Client, spool: Spool, seen: Seen) -> Iterator[Event]:
        known = self._state.known()
        arrange(spool, Rules(self._what.run, self._what.run, self._what.quiet_seconds))
        prints = {path: met.print for path, met in seen.places.items()}
        opened = assign(spool, known, prints, lambda run: self._of(client, run), self._what.quiet_seconds)
        for run, number, why in opened:
            yield Event("attempt", f"{run}: attempt {number}, since {why}", {"run": run, "attempt": number})
        host = socket.gethostname() if self._what.tier == "local" else None
        plan = Plan(spool, self._tree.root, self._what.project, self._what.tier, host)
        before = {row["id"]: row for row in spool.rows(_FOUND, (NEW, PENDING))}
        compare(plan, client)
        self._add_logged(spool)
        if plan.pending_changes():
            register(plan, client)
        yield from self._keep(spool, seen, before, known)
        self._unfinished = bool(plan.count(BEGUN)) or any(row["status"] == PENDING for row in before.values())
        for path, reason in plan.problems():
            yield from self._once(f"{path}: {reason}")

    def _add_logged(self, spool: Spool) -> None:
        """Gives a checkpoint without loss, lr or tokens what the log says at its step."""
        changes = []
        for row in list(spool.rows(_UNRECORDED, (self._what.run, NEW, PENDING))):
            fields = json.loads(row["fields"])
            said = known_values(self._state, row["attempt"], row["step"])
            if said.keys() - fields.keys():
                changes.append((json.dumps({**said, **fields}), row["id"]))
        spool.change_many("UPDATE found SET fields = ? WHERE id = ?", changes)

    def _keep(self, spool: Spool, seen: Seen, before: Mapping[int, Row], known: Mapping[str, Known]) -> Iterator[Event]:
        """Remembers what is recorded now, and tells what is new."""
        for row in list(spool.rows(_FOUND, (SENT, KNOWN))):
            was = before.get(row["id"])
            if was is None or row["checkpoint"] is None:
                continue
            state = "pending" if was["status"] == PENDING else "committed"
            old = known.get(row["path"])
            has_loss = "loss" in json.loads(row["fields"]) or (old is not None and bool(old.has_loss))
            self._state.change(_KEEP, _place(row, seen.places[row["path"]], state, has_loss))
            news = old is None or (old.state, old.checkpoint) != (state, row["checkpoint"])
            if row["status"] == SENT and news:
                yield _recorded(row, state, was["note"])
        for path, old in known.items():
            if path not in seen.places:
                self._state.change("DELETE FROM place WHERE path = ?", (path,))
                text = f"{old.run} · {old.attempt} · {old.step}: its files at {old.uri} are gone; its record stays"
                yield Event("gone", text, {"checkpoint": old.checkpoint, "uri": old.uri})

    def _read_trainer_state(self, client: Client, seen: Seen) -> Iterator[Event]:
        """The newest `trainer_state.json` below the root says what was logged up to its save."""
        if is_url(self._what.root) or not seen.changed:
            return
        states = [each for each in seen.files if each.path.rpartition("/")[2] == TRAINER_STATE]
        newest = max(states, key=lambda each: (each.modified_at or 0.0, each.path), default=None)
        if newest is not None:
            self._curves(client).read_trainer_state(self._tree.uri(newest.path), f"{TRAINER_STATE} {self._what.run}")
        yield from ()

    def _attach_results(self, client: Client, seen: Seen) -> Iterator[Event]:
        files: list[ResultFile] = []
        if not is_url(self._what.root):
            files += below_root(self._tree.root, seen.files)
        for folder in self._what.evals:
            try:
                files += of_folder(folder)
            except OSError as fault:
                yield from self._once(f"{folder} cannot be read: {fault.strerror or fault}; it is tried again.")
        yield from Results(self._state, client, self._state.known()).attach(files)

    def _send_curves(self, client: Client) -> Iterator[Event]:
        if not self._saved():  # the run is made with its first checkpoint; until then the points wait
            return
        points = send_curves(self._state, client, self._what.project, self._what.run)
        if points:
            yield Event("curves", f"{points:,} points of curves", {"points": points})

    def _fill_losses(self, client: Client) -> None:
        """Where a log was flushed after the save: the loss is added to a checkpoint that has none."""
        for row in list(self._state.rows(_WITHOUT_LOSS, (self._what.run,))):
            loss = known_values(self._state, row["attempt"], row["step"]).get("loss")
            if loss is None:
                continue
            if client.get_checkpoint(row["checkpoint"]).loss is None:
                client.patch_checkpoint(row["checkpoint"], loss=loss)
            self._state.change("UPDATE place SET has_loss = 1 WHERE path = ?", (row["path"],))

    def _of(self, client: Client, run: str) -> Attempts:
        if run not in self._attempts:
            self._attempts[run] = Attempts(client, self._what.project, run, self._tree.root)
        return self._attempts[run]

    def _curves(self, client: Client) -> Curves:
        return Curves(self._state, self._of(client, self._what.run), self._saved())

    def _saved(self) -> list[Saved]:
        known = self._state.known().values()
        return [Saved(each.attempt, each.step) for each in known if each.run == self._what.run]

    def _once(self, text: str) -> Iterator[Event]:
        if self._state.is_news(text):
            yield Event("problem", text)


def _place(row: Row, met: Met, state: str, has_loss: bool) -> tuple[object, ...]:
    return (
        *(row["path"], met.candidate, met.print, look_to_text(met.look), row["run"], row["attempt"], row["step"]),
        *(row["modified"], state, row["checkpoint"], row["uri"], has_loss),
    )


def _recorded(row: Row, state: str, note: str) -> Event:
    where = f"{row['run']} · {row['attempt']} · {row['step']}"
    facts = {name: row[name] for name in ("run", "attempt", "step", "checkpoint", "uri", "format")}
    if state == "pending":
        return Event("pending", f"{where} at {row['uri']}: {note}", facts)
    how = "its files show that it is whole" if row["complete"] else "it has not changed for a while"
    return Event("recorded", f"{where} at {row['uri']} ({how})", {**facts, "because": how})
