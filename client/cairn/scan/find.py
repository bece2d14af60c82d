"""From a stream of files to folders and files that may be checkpoints.

A folder whose name has a step takes everything below it. Another folder is a checkpoint where it directly holds a
file that only checkpoints have; then what lies below it belongs to it too, save for checkpoints of their own.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from cairn.formats.checkpoints import File
from cairn.formats.checkpoints.shapes import Problem
from cairn.scan import names

# Of one checkpoint, and of files whose folder may yet prove to be one.
MAX_FILES = 250_000
MAX_HELD = 20_000
_DEEPSPEED = re.compile(r"global_?step\d+")


@dataclass
class Candidate:
    """What may be a checkpoint. `path` is relative to the root, '' for the root itself; `files` relative to `path`.

    `folder` is where the checkpoints of its run are. `single`: it is one file. `ranks`: files that are one checkpoint
    together, in `folder`; `path` is their pattern. `left_out` counts files beyond those that a scan looks at.
    """

    path: str
    folder: str
    files: list[File] = field(default_factory=list)
    single: bool = False
    ranks: bool = False
    left_out: int = 0

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Tracker:
    """A file that names a run's last whole checkpoint; `path` is relative to the root."""

    path: str
    bytes: int
    modified_at: float | None = None

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]


Found = Candidate | Tracker | Problem


def find_candidates(files: Iterable[File | Problem]) -> Iterator[Found]:
    """What is worth looking at, each as soon as its folder has been seen to the end."""
    open_folders: list[_Folder] = [_Folder("", None)]
    for met in files:
        if isinstance(met, Problem):
            yield met
            continue
        folder, _, name = met.path.rpartition("/")
        if folder != open_folders[-1].path:
            parts = folder.split("/") if folder else []
            yield from _close(open_folders, parts)
            _open(open_folders, parts)
        here = open_folders[-1]
        if here.claim is None and not names.may_matter(name):
            here.hold(met)
        else:
            yield from here.take(met, name)
    yield from _close(open_folders, None)


def _close(open_folders: "list[_Folder]", parts: list[str] | None) -> Iterator[Found]:
    """Closes the folders that the next file is not in, all of them where there is no next."""
    keep = 0 if parts is None else 1
    while parts is not None and keep < len(open_folders) and keep <= len(parts):
        if open_folders[keep].name != parts[keep - 1]:
            break
        keep += 1
    while len(open_folders) > keep:
        yield from open_folders.pop().close()


def _open(open_folders: "list[_Folder]", parts: list[str]) -> None:
    for name in parts[len(open_folders) - 1 :]:
        open_folders.append(_Folder(name, open_folders[-1]))


class _Folder:
    """A folder whose end has not been seen. `claim`: everything below belongs to this candidate."""

    def __init__(self, name: str, parent: "_Folder | None") -> None:
        self.name, self.parent = name, parent
        self.path: str = f"{parent.path}/{name}".lstrip("/") if parent else ""
        self.claim: Candidate | None = parent.claim if parent else None
        self.own_claim = self.claim is None and parent is not None and names.is_checkpoint_folder(name)
        if self.own_claim and parent is not None:
            self.claim = Candidate(self.path, parent.path)
        self.held: list[File] = []
        self.left_out = 0
        self.marked = self.holds_checkpoints = False
        self.groups: dict[str, Candidate] = {}
        self.undecided: Candidate | None = None

    def take(self, met: File, name: str) -> Iterator[Found]:
        if self.claim is not None:
            _add(self.claim, met)
            return
        group = names.rank_group(name)
        if group is not None:
            path = f"{self.path}/{group[0]}".lstrip("/")
            _add(self.groups.setdefault(path, Candidate(path, self.path, ranks=True)), met)
        elif names.is_single_checkpoint(name) and not names.is_marker(name):
            self.holds_checkpoints = True
            yield Candidate(met.path, self.path, [File(name, met.bytes, met.modified_at)], single=True)
        else:
            self.marked = self.marked or names.is_marker(name)
            self.hold(met)
            if name in names.TRACKERS:
                yield Tracker(met.path, met.bytes, met.modified_at)

    def close(self) -> Iterator[Found]:
        if self.own_claim and self.claim is not None and self.parent is not None:
            yield from self.parent.closed_below(self.claim)
        elif self.claim is None:
            yield from self.groups.values()
            yield from self._closed_undecided()
            if self.marked and not (self.parent and names.is_inner(self.name)):
                yield self._candidate()
            elif self.parent is not None:
                self.parent.inherit(self)

    def closed_below(self, claim: Candidate) -> Iterator[Found]:
        """A checkpoint in this folder has been seen to the end.

        One single `global_step600` may be DeepSpeed's part of a checkpoint of Trainer, which this folder then is:
        that shows when the folder ends, since a store lists `trainer_state.json` later.
        """
        if not _DEEPSPEED.fullmatch(claim.name) or self.holds_checkpoints:
            self.holds_checkpoints = True
            yield claim
        elif self.undecided is not None:
            self.holds_checkpoints = True
            yield from (self.undecided, claim)
            self.undecided = None
        else:
            self.undecided = claim

    def inherit(self, child: "_Folder") -> None:
        """What a folder below held, since it may belong to a checkpoint here."""
        self.marked = self.marked or child.marked
        self.holds_checkpoints = self.holds_checkpoints or child.holds_checkpoints
        self.left_out += child.left_out
        for each in child.held:
            self.hold(each)

    def _closed_undecided(self) -> Iterator[Found]:
        claim, self.undecided = self.undecided, None
        if claim is None:
            return
        below = f"{self.path}/".lstrip("/")
        if any(each.path == f"{below}trainer_state.json" for each in self.held):
            self.left_out += claim.left_out
            for each in claim.files:
                self.hold(File(f"{claim.path}/{each.path}", each.bytes, each.modified_at))
        else:
            self.holds_checkpoints = True
            yield claim

    def _candidate(self) -> Candidate:
        """This folder. It is a run's own last state, unless its name says that it is one of several beside it."""
        of_parent = self.parent is not None and names.is_pointer(self.name) and not self.holds_checkpoints
        folder = self.parent.path if of_parent and self.parent else self.path
        candidate = Candidate(self.path, folder, left_out=self.left_out)
        for each in self.held:
            _add(candidate, each)
        if self.parent is not None:
            self.parent.holds_checkpoints = True
        return candidate

    def hold(self, met: File) -> None:
        if len(self.held) < MAX_HELD:
            self.held.append(met)
        else:
            self.left_out += 1


def _add(candidate: Candidate, met: File) -> None:
    """A file, whose path is relative to the root, to a candidate."""
    if len(candidate.files) >= MAX_FILES:
        candidate.left_out += 1
        return
    base = candidate.folder if candidate.ranks else candidate.path
    path = met.path[len(base) + 1 :] if base else met.path
    candidate.files.append(File(path, met.bytes, met.modified_at))
