"""One look: logs, checkpoints, results, in this order, and everything that was found out kept in one transaction."""

import json
import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cairn.client import Client
from cairn.scan.arrange import BEGUN, KNOWN, NEW, PENDING, Rules, arrange
from cairn.scan.compare import compare, name_as_recorded
from cairn.scan.plan import SENT, Plan
from cairn.scan.register import register
from cairn.scan.spool import Row, Spool
from cairn.scan.walk import open_tree
from cairn.stores import is_url
from cairn.watch.assign import assign
from cairn.watch.attempts import Attempts, Saved
from cairn.watch.curves import Curves, known_values, send_curves
from cairn.watch.events import Event
from cairn.watch.folders import Met, Progress, Seen, look_around, look_to_text
from cairn.watch.histories import newest_states
from cairn.watch.prints import TRAINER_STATE
from cairn.watch.results import ResultFile, Results, below_root, of_folder
from cairn.watch.state import Known, State, state_file

_FOUND = """
SELECT id, path, run, attempt, step, modified, status, note, checkpoint, uri, fields, complete, format FROM found
WHERE status IN (?, ?)
"""
_UNRECORDED = "SELECT id, run, attempt, step, fields FROM found WHERE status IN (?, ?)"
_KEEP = "INSERT OR REPLACE INTO place VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_WITHOUT_LOSS = "SELECT path, checkpoint, run, attempt, step FROM place WHERE state = 'committed' AND has_loss = 0"


@dataclass(frozen=True)
class Watched:
    """What to watch. `logs`: text logs, or folders of runs in MLflow's file store; `evals`: folders of result files.

    `quiet_seconds`: where no file shows that a save has ended, it has once nothing has changed for so long.
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

    def look(self, client: Client, progress: Progress = lambda count: None) -> Iterator[Event]:
        """What there is to tell since the last look. Raises `CairnError` where the service is away, `Unreadable` where
        the root is: nothing is lost then, and the next look does it again. `progress` receives how many were opened."""
        self._attempts = {}
        try:
            yield from self._read_logs(client)
            with Spool() as spool:
                seen = look_around(self._tree, self._state, spool, progress)
                if seen.changed or self._unfinished:
                    yield from self._record(client, spool, seen)
            self._read_trainer_states(client, seen)
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

    def elsewhere(self) -> str:
        """What is to be said of those that are recorded as checkpoints of other runs; '' where none is."""
        others = Counter(each.run for each in self._state.known().values() if not self._is_own(each.run))
        told = [f"{count:,} belong to {self._what.project}/{run}" for run, count in sorted(others.items())]
        return f"Of what lies there, {', '.join(told)}: there it is recorded, and nowhere else." if told else ""

    def _read_logs(self, client: Client) -> Iterator[Event]:
        curves = self._curves(client, self._what.run)
        for path in self._what.logs:
            try:
                yield from curves.read_log(path)
            except OSError as fault:
                yield from self._once(f"{path} cannot be read: {fault.strerror or fault}; it is tried again.")

    def _record(self, client: Client, spool: Spool, seen: Seen) -> Iterator[Event]:
        known = self._state.known()
        run, quiet = self._what.run, self._what.quiet_seconds
        arrange(spool, Rules(run, run, quiet, folders=self._folders(seen, known)))
        opened = assign(spool, known, seen.places, lambda run: self._of(client, run), quiet)
        for run, number, why in opened:
            yield Event("attempt", f"{run}: attempt {number}, since {why}", {"run": run, "attempt": number})
        host = socket.gethostname() if self._what.tier == "local" else None
        plan = Plan(spool, self._tree.root, self._what.project, self._what.tier, host)
        before = {row["id"]: row for row in spool.rows(_FOUND, (NEW, PENDING))}
        compare(plan, client)
        name_as_recorded(plan)
        self._add_logged(spool)
        if plan.pending_changes():
            register(plan, client)
        yield from self._keep(spool, seen, before, known)
        pending = any(each.state == PENDING for each in self._state.known().values())
        self._unfinished = bool(plan.count(BEGUN)) or pending
        yield from self._once(self.elsewhere(), "elsewhere")
        for path, reason in plan.problems():
            yield from self._once(f"{path}: {reason}")

    def _add_logged(self, spool: Spool) -> None:
        """Gives a checkpoint without loss, lr or tokens what the log says at its step."""
        changes = []
        for row in list(spool.rows(_UNRECORDED, (NEW, PENDING))):
            fields = json.loads(row["fields"])
            said = known_values(self._state, row["run"], row["attempt"], row["step"])
            if said.keys() - fields.keys():
                changes.append((json.dumps({**said, **fields}), row["id"]))
        spool.change_many("UPDATE found SET fields = ? WHERE id = ?", changes)

    def _keep(self, spool: Spool, seen: Seen, before: Mapping[int, Row], known: Mapping[str, Known]) -> Iterator[Event]:
        """Remembers what is recorded now, and tells what is new."""
        there = set()
        for row in list(spool.rows(_FOUND, (SENT, KNOWN))):
            there.add(row["checkpoint"])
            was = before.get(row["id"])
            if was is None or row["checkpoint"] is None:
                continue
            old = known.get(row["path"])
            stands = old is not None and (old.state, old.checkpoint) == ("committed", row["checkpoint"])
            state = "pending" if was["status"] == PENDING and not stands else "committed"
            has_loss = "loss" in json.loads(row["fields"]) or (old is not None and bool(old.has_loss))
            self._state.change(_KEEP, _place(row, seen.places[row["path"]], state, has_loss))
            news = old is None or (old.state, old.checkpoint) != (state, row["checkpoint"])
            if row["status"] == SENT and news:
                yield _recorded(row, state, was["note"])
        for path, old in known.items():
            if path not in seen.places:
                self._state.change("DELETE FROM place WHERE path = ?", (path,))
                if old.checkpoint in there:  # under another name
                    continue
                text = f"{old.run} · {old.attempt} · {old.step}: its files at {old.uri} are gone; its record stays"
                yield Event("gone", text, {"checkpoint": old.checkpoint, "uri": old.uri})

    def _read_trainer_states(self, client: Client, seen: Seen) -> None:
        """A run's newest `trainer_state.json` says what was logged up to its save."""
        if is_url(self._what.root) or not seen.changed:
            return
        known = self._state.known()
        for run, path in newest_states(seen.files, seen.places, known, self._runs()).items():
            self._curves(client, run).read_trainer_state(self._tree.uri(path), f"{TRAINER_STATE} {run}")

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
        # A run is made with its first checkpoint; until then its points wait.
        points = sum(send_curves(self._state, client, self._what.project, run) for run in self._runs())
        if points:
            yield Event("curves", f"{points:,} points of curves", {"points": points})

    def _fill_losses(self, client: Client) -> None:
        """Where a log was flushed after the save: the loss is added to a checkpoint that has none."""
        for row in list(self._state.rows(_WITHOUT_LOSS)):
            loss = known_values(self._state, row["run"], row["attempt"], row["step"]).get("loss")
            if loss is None:
                continue
            if client.get_checkpoint(row["checkpoint"]).loss is None:
                client.patch_checkpoint(row["checkpoint"], loss=loss)
            self._state.change("UPDATE place SET has_loss = 1 WHERE path = ?", (row["path"],))

    def _of(self, client: Client, run: str) -> Attempts:
        if run not in self._attempts:
            self._attempts[run] = Attempts(client, self._what.project, run, self._tree.root)
        return self._attempts[run]

    def _curves(self, client: Client, run: str) -> Curves:
        saved = [Saved(each.attempt, each.step) for each in self._state.known().values() if each.run == run]
        return Curves(self._state, run, self._of(client, run), saved)

    def _runs(self) -> list[str]:
        """The watched run and those below its name, as far as something of them is recorded."""
        runs = self._state.rows("SELECT DISTINCT run FROM place WHERE checkpoint IS NOT NULL ORDER BY run")
        return [row["run"] for row in runs if self._is_own(row["run"])]

    def _is_own(self, run: str) -> bool:
        return run == self._what.run or run.startswith(f"{self._what.run}/")

    def _folders(self, seen: Seen, known: Mapping[str, Known]) -> dict[str, str]:
        """Folders whose run is known: it stays when another run appears beside it. Of a run and its converted copies
        in one folder, the run has the shorter name."""
        found: dict[str, str] = {}
        for path in sorted(seen.places.keys() & known.keys(), key=lambda path: len(known[path].run)):
            if self._is_own(known[path].run):
                found.setdefault(seen.places[path].look.folder, known[path].run)
        return found

    def _once(self, text: str, kind: str = "problem") -> Iterator[Event]:
        if text and self._state.is_news(text):
            yield Event(kind, text)


def _place(row: Row, met: Met, state: str, has_loss: bool) -> tuple[object, ...]:
    return (
        *(row["path"], met.candidate, met.print, look_to_text(met.look), row["run"], row["attempt"], row["step"]),
        *(row["modified"], state, row["checkpoint"], row["uri"], has_loss, met.files),
    )


def _recorded(row: Row, state: str, note: str) -> Event:
    where = f"{row['run']} · {row['attempt']} · {row['step']}"
    facts = {name: row[name] for name in ("run", "attempt", "step", "checkpoint", "uri", "format")}
    if state == "pending":
        return Event("pending", f"{where} at {row['uri']}: {note}", facts)
    how = "its files show that it is whole" if row["complete"] else "it has not changed for a while"
    return Event("recorded", f"{where} at {row['uri']} ({how})", {**facts, "because": how})
