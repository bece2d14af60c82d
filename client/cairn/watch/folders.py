"""One look at a tree: what has not changed since the last look is not opened again."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from cairn.formats.checkpoints import File
from cairn.formats.checkpoints.shapes import Problem, path_text
from cairn.scan.find import Candidate, Tracker, find_candidates
from cairn.scan.look import Look, Unknown
from cairn.scan.spool import Spool
from cairn.scan.trackers import keep_tracker
from cairn.scan.walk import Tree
from cairn.scan.workers import look_at_all
from cairn.watch.prints import files_of, print_of
from cairn.watch.state import State

Progress = Callable[[int], None]
_PLACES = "SELECT candidate, print, files, look, state FROM place ORDER BY candidate, path"


@dataclass(frozen=True)
class Met:
    """What a walk met at one place. `candidate` is the path of the folder or file that was looked at; `print` and
    `files` say what its files were (`prints`)."""

    candidate: str
    print: str
    files: str
    look: Look


@dataclass
class Seen:
    """What a walk met: checkpoints by their path relative to the root, and every file. `changed`: since the last."""

    places: dict[str, Met] = field(default_factory=dict)
    files: list[File] = field(default_factory=list)
    changed: bool = False

    def add(self, spool: Spool, met: Met) -> None:
        self.places[met.look.path] = met
        spool.add(met.look)


def look_around(tree: Tree, state: State, spool: Spool, progress: Progress = lambda count: None) -> Seen:
    """Fills the spool with a look at every candidate, old or new. Raises `Unreadable` where the root is gone."""
    seen = Seen()
    kept: dict[str, list[Any]] = {}
    for row in state.rows(_PLACES):
        kept.setdefault(row["candidate"], []).append(row)
    fresh: dict[str, Candidate] = {}
    for met in find_candidates(_noting(tree.walk(), seen)):
        if isinstance(met, Problem):
            spool.problem(path_text(met.path) or ".", path_text(met.reason))
        elif isinstance(met, Tracker):
            keep_tracker(spool, tree, met)
        else:
            old = kept.pop(met.path, [])
            print_ = print_of(met)
            if old and all(row["state"] == "committed" and row["print"] == print_ for row in old):
                for row in old:
                    seen.add(spool, Met(met.path, print_, row["files"], look_from_text(row["look"])))
            else:
                fresh[met.path] = met
    for answer in look_at_all(tree, fresh.values()):
        if isinstance(answer, Unknown):
            spool.problem(answer.path or ".", answer.reason)
        else:
            source = _candidate_of(answer.path, fresh)
            seen.add(spool, Met(source.path, print_of(source), files_of(tree, source), answer))
            progress(len(seen.places))
    seen.changed = bool(fresh) or bool(kept)
    return seen


def look_to_text(look: Look) -> str:
    return json.dumps(vars(look))


def look_from_text(text: str) -> Look:
    plain = json.loads(text)
    return Look(**{**plain, "notes": tuple(plain["notes"]), "parents": tuple(plain["parents"])})


def _candidate_of(path: str, fresh: dict[str, Candidate]) -> Candidate:
    """A folder with models side by side gives several looks, each below it."""
    while path not in fresh:
        path = path.rpartition("/")[0]
    return fresh[path]


def _noting(files: Iterator[File | Problem], seen: Seen) -> Iterator[File | Problem]:
    for each in files:
        if isinstance(each, File):
            seen.files.append(each)
        yield each
