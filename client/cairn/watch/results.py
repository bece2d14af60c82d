"""Result files of evaluations that appear beside the checkpoints: each goes to the checkpoint that it is about."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cairn.client import Client
from cairn.errors import CairnError, Invalid
from cairn.formats import Refused
from cairn.formats.checkpoints import File
from cairn.results import Planned, gather, send
from cairn.results.gather import ENDINGS, Result, reread
from cairn.watch.events import Event
from cairn.watch.state import Known, State

# Below the root itself only what is named like a result is opened; a folder of results is opened whole.
NAMED = ("eval", "result", "score", "samples", "harness", "trainer_state")
MAX_FOLDER_FILES = 20_000
WAITING = "waiting"


@dataclass(frozen=True)
class ResultFile:
    path: str
    print: str


def below_root(root: str, files: Iterable[File]) -> Iterator[ResultFile]:
    """Of the files of a walk, whose paths are relative to the root, those that may be results."""
    for each in files:
        ending = os.path.splitext(each.path)[1].lower()
        named = any(word in part.lower() for part in each.path.split("/")[-3:] for word in NAMED)
        if ending in ENDINGS and (named or ending == ".eval"):
            yield ResultFile(os.path.join(root, each.path), f"{each.bytes}:{each.modified_at}")


def of_folder(folder: str) -> Iterator[ResultFile]:
    """Every file of a folder of results; links are not followed. Raises OSError where it cannot be listed."""
    count = 0
    for where, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(where, name)
            if os.path.splitext(name)[1].lower() in ENDINGS and not os.path.islink(path) and count < MAX_FOLDER_FILES:
                found = os.stat(path)
                count += 1
                yield ResultFile(path, f"{found.st_size}:{found.st_mtime}")


class Results:
    """The result files of one look."""

    def __init__(self, state: State, client: Client, known: Mapping[str, Known]) -> None:
        self._state, self._client = state, client
        self._all = list(known.values())
        self._known = [each for each in self._all if each.state == "committed"]

    def attach(self, files: Sequence[ResultFile]) -> Iterator[Event]:
        """Sends what is new. A file about a checkpoint that is not recorded yet waits. Raises `CairnError`."""
        seen = {row["path"]: row for row in self._state.rows("SELECT path, print, outcome FROM result")}
        fresh = {
            each.path: each
            for each in files
            if (old := seen.get(each.path)) is None or old["print"] != each.print or old["outcome"] == WAITING
        }
        if not fresh:
            return
        found = gather([Path(path) for path in fresh])
        for refusal in found.refused:
            self._done(fresh, [refusal.file], "refused")
        for result in found.results:
            outcome, event = self._send(result)
            self._done(fresh, result.paths, outcome)
            if event is not None:
                yield event

    def _send(self, result: Result) -> tuple[str, Event | None]:
        try:
            own = self._checkpoint_of(result)
            count = self._by_file(result, own) if own else self._by_step(result)
        except (Invalid, Refused, OSError) as fault:
            reason = fault.detail if isinstance(fault, CairnError) else str(fault)
            return "refused", Event("problem", f"{result.name}: {reason}", {"path": result.name})
        if count is None:
            return WAITING, None
        if not count:
            return "sent", None
        text = f"{result.name}: {count} scores of {result.format}"
        return "sent", Event("evals", text, {"path": result.name, "scores": count})

    def _checkpoint_of(self, result: Result) -> Known | None:
        """The checkpoint in whose folder the file is, or whose path it says was evaluated."""
        model = os.path.abspath(result.model_path) if result.model_path and "/" in result.model_path else None
        for path in (result.name, model):
            found = _holding(path, self._known)
            if found is not None:
                return found if result.steps in ([], [found.step]) else None
        return None

    def _by_file(self, result: Result, known: Known) -> int:
        sent = send(self._client, [Planned(result, {"checkpoint": known.checkpoint}, "its folder")])
        if sent.refused:
            raise Refused(sent.refused[0].reason)
        return sum(report.imported for report in sent.reports)

    def _by_step(self, result: Result) -> int | None:
        """Each score to the newest checkpoint of its step, in the run in whose folder the file lies; None where none of
        its steps is recorded yet."""
        by_step: dict[int, Known] = {}
        beside = _holding(result.name, self._all)
        for each in sorted(self._known, key=lambda known: known.attempt):
            if beside is None or each.run == beside.run:
                by_step[each.step] = each
        wanted = [step for step in result.steps if step in by_step]
        if not wanted:
            return None
        file = reread(result)
        count = 0
        for step in wanted:
            own = [
                score.to_wire()
                for score in file.scores
                if (file.step if score.place.step is None else score.place.step) == step
            ]
            count += self._client.record_scores(by_step[step].checkpoint, own).recorded if own else 0
        return count

    def _done(self, fresh: Mapping[str, ResultFile], paths: Sequence[str], outcome: str) -> None:
        rows = [(path, fresh[path].print, outcome) for path in paths if path in fresh]
        self._state.change_many("INSERT OR REPLACE INTO result VALUES (?, ?, ?)", rows)


def _holding(path: str | None, known: Iterable[Known]) -> Known | None:
    """The checkpoint in whose folder a file is."""
    own = [each for each in known if path is not None and _is_below(path, each.uri)]
    return max(own, key=lambda each: (len(each.uri), each.attempt), default=None)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
