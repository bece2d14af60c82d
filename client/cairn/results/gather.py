"""Finds result files and reads each once, keeping what says whose they are, and not the scores themselves."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cairn.formats import EvalFile, Refused
from cairn.formats.evals import Place, read_eval_folder, read_eval_path, together
from cairn.formats.evals.content import open_for_reading, read_small

# Of a folder, files that end otherwise are not opened: weights lie beside results. What a file is, its content says.
ENDINGS = frozenset({".json", ".jsonl", ".csv", ".tsv", ".md", ".eval"})
MAX_FILES = 200_000


@dataclass(frozen=True)
class Refusal:
    """A file that is not imported, and why."""

    file: str
    reason: str


@dataclass(frozen=True)
class Result:
    """One result: a file, or several that say something only together. `places` are those that its scores name."""

    paths: tuple[str, ...]
    format: str
    scores: int
    places: tuple[Place, ...]
    step: int | None
    step_source: str
    model_path: str | None
    model_revision: str | None

    @property
    def name(self) -> str:
        return self.paths[0]

    @property
    def steps(self) -> list[int]:
        """The steps that its scores name, ascending; the file's own where they name none."""
        named = {self.step if place.step is None else place.step for place in self.places}
        return sorted(step for step in named if step is not None)

    @property
    def models(self) -> list[str]:
        return sorted({place.model for place in self.places if place.model is not None})


@dataclass
class Gathered:
    results: list[Result] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    passed_over: int = 0  # files of folders that end like no result


def gather(paths: Sequence[Path], *, format: str = "auto", progress: Callable[[int], None] | None = None) -> Gathered:
    """Every result below the paths. One that cannot be read is refused with its reason, and the rest goes on."""
    found = Gathered()
    names = [name for path in paths for name in _names(path, found)]
    for group in together(names):
        own = tuple(names[at] for at in group)
        try:
            found.results.append(_result(own, _read(own, format)))
        except Refused as refusal:
            found.refused.append(Refusal(own[0], str(refusal)))
        except OSError as fault:
            found.refused.append(Refusal(own[0], f"{fault.strerror or fault}."))
        if progress is not None:
            progress(len(group))
    return found


def _names(path: Path, found: Gathered) -> Iterator[str]:
    """The path itself if it is a file; of a folder the files below it, in order. Links that lead out are refused."""
    if not path.is_dir():
        yield str(path)
        return
    root = os.path.realpath(path)
    count = 0
    for folder, folders, files in os.walk(path, onerror=lambda fault: found.refused.append(_unreadable(fault))):
        folders.sort()
        for file in sorted(files):
            name = os.path.join(folder, file)
            if os.path.splitext(file)[1].lower() not in ENDINGS:
                found.passed_over += 1
            elif os.path.islink(name) and not _is_below(os.path.realpath(name), root):
                found.refused.append(Refusal(name, "It is a link that leads out of the folder."))
            elif count == MAX_FILES:
                found.refused.append(Refusal(str(path), f"The folder holds more than {MAX_FILES:,} files; split it."))
                return
            else:
                count += 1
                yield name


def _unreadable(fault: OSError) -> Refusal:
    return Refusal(str(fault.filename), f"The folder cannot be read: {fault.strerror}.")


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def _read(paths: Sequence[str], format: str) -> EvalFile:
    if len(paths) == 1:
        return read_eval_path(paths[0], format=format)
    return read_eval_folder(contents(paths), format=format, folder=Path(paths[0]).absolute().parent.name)


def contents(paths: Sequence[str]) -> dict[str, bytes]:
    """The bytes of the files of one result. Raises `Refused`, `OSError`."""
    found = {}
    for path in paths:
        with open_for_reading(path) as file:
            found[path] = read_small(file)
    return found


def reread(result: Result) -> EvalFile:
    """The result with its scores. Raises `Refused`, `OSError`."""
    return _read(result.paths, result.format)


def _result(paths: tuple[str, ...], file: EvalFile) -> Result:
    known = (file.step, file.step_source, file.model_path, file.model_revision)
    return Result(paths, file.format, len(file.scores), file.places, *known)
