"""What differs between the code of two checkpoints: by git where a mirror is configured, else unknown.

Unknown is never 'unchanged': an unreachable commit, or a tree with changes that nobody committed, is said to be so.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from registry.provenance.git_mirrors import CodeDiff, Commit, NoAnswer, diff_commits, find_mirror
from registry.provenance.suspects import SUBJECTS, Change
from registry.snapshots import CodeSpec
from registry.wording import counted

# The first class with a word that occurs in the path decides. Words match whole parts between / . _ and -.
FILE_CLASSES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("inert", ("docs", "doc", "readme", "tests", "test", "license", "changelog", "github", "notebooks", "examples")),
    ("tokenizer", ("tokenizer", "tokenizers", "tokenization", "tokenize", "vocab", "bpe", "sentencepiece")),
    ("data", ("data", "dataset", "datasets", "dataloader", "loader", "loaders", "blend", "packing", "sampler", "mix")),
    ("optimiser", ("optim", "optimizer", "optimizers", "optimiser", "adam", "muon", "grad", "clip")),
    ("schedule", ("schedule", "scheduler", "schedulers", "lr", "warmup")),
    ("precision", ("fp8", "fp16", "bf16", "amp", "precision", "quant", "quantization")),
    ("parallel", ("parallel", "distributed", "fsdp", "zero", "megatron", "sharding", "tensor", "pipeline")),
    ("env", ("requirements", "dockerfile", "docker", "environment", "pyproject", "setup", "lock", "uv", "conda")),
    ("model", ("model", "models", "modeling", "modelling", "layers", "attention", "mlp", "moe", "rope", "norm")),
)
_PARTS = re.compile(r"[^A-Za-z0-9]+")
NAMED_FILES = 5
CODE_OF = {"code": "code", "inert": "files beside the training"}


@dataclass(frozen=True, slots=True)
class FileChange:
    """`change` is added, removed or changed; `kind` the class that its path suggests, code where it suggests none."""

    path: str
    change: str
    kind: str


@dataclass(frozen=True, slots=True)
class CodeChanges:
    """`status`: same, known (then `files` lists all) or unknown, and `why`. A side of None has nothing recorded.

    Where a mirror knows both commits, `log` names those that only the candidate has, newest first, of `commit_count`.
    """

    status: str
    baseline: CodeSpec | None
    candidate: CodeSpec | None
    files: tuple[FileChange, ...]
    why: str
    log: tuple[Commit, ...] = ()
    commit_count: int | None = None
    left_behind: int | None = None

    @property
    def commits(self) -> tuple[str | None, str | None]:
        return (
            self.baseline.commit if self.baseline is not None else None,
            self.candidate.commit if self.candidate is not None else None,
        )


def class_of_file(path: str) -> str:
    """The class of a change that a file's path suggests."""
    words = {word.lower() for word in _PARTS.split(path) if word}
    return next((kind for kind, known in FILE_CLASSES if words & set(known)), "code")


def compare_code(old: CodeSpec | None, new: CodeSpec | None, mirrors: Path | None = None) -> CodeChanges:
    """Same only where that is certain: one commit, and both trees clean or with the same diff."""
    if old is None or new is None or old.commit is None or new.commit is None:
        missing = [
            name for name, side in (("baseline", old), ("candidate", new)) if side is None or side.commit is None
        ]
        return CodeChanges("unknown", old, new, (), f"no commit is recorded for the {' and the '.join(missing)}")
    if old.commit != new.commit:
        return _between(old, new, old.commit.lower(), new.commit.lower(), mirrors)
    if old.dirty is False and new.dirty is False:
        return CodeChanges("same", old, new, (), "both ran the same commit with a clean tree")
    if old.diff_digest is not None and old.diff_digest == new.diff_digest:
        return CodeChanges("same", old, new, (), "both ran the same commit with the same uncommitted changes")
    if old.dirty is None or new.dirty is None:
        return CodeChanges("unknown", old, new, (), "one commit, but nobody said whether the trees were clean")
    return CodeChanges(
        "unknown", old, new, (), "one commit, but with uncommitted changes that are not known to be the same"
    )


def _between(old: CodeSpec, new: CodeSpec, before: str, after: str, mirrors: Path | None) -> CodeChanges:
    try:
        diff = _ask(old, new, before, after, mirrors)
    except NoAnswer as answer:
        return CodeChanges("unknown", old, new, (), f"the commits differ, and {answer}")
    files = tuple(FileChange(path, change, class_of_file(path)) for path, change in diff.files)
    dirty = [name for name, side in (("baseline", old), ("candidate", new)) if side.dirty]
    unsaid = [name for name, side in (("baseline", old), ("candidate", new)) if side.dirty is None]
    status, why = "known", _told(diff)
    if dirty and not (len(dirty) == 2 and old.diff_digest is not None and old.diff_digest == new.diff_digest):
        status = "unknown"
        why += f"; the {' and the '.join(dirty)} ran with uncommitted changes, which no commit holds"
    elif unsaid:
        why += f"; nobody said whether the tree of the {' and the '.join(unsaid)} was clean"
    return CodeChanges(status, old, new, files, why, diff.commits, diff.commit_count, diff.left_behind)


def _ask(old: CodeSpec, new: CodeSpec, before: str, after: str, mirrors: Path | None) -> CodeDiff:
    if mirrors is None:
        raise NoAnswer("no repository is connected to list the files (CAIRN_GIT_MIRRORS)")
    remotes = list(dict.fromkeys(side.remote for side in (old, new) if side.remote))
    if not remotes:
        raise NoAnswer("no remote is recorded, so nothing says which repository they are of")
    found = list(dict.fromkeys(find_mirror(mirrors, remote) for remote in remotes))
    if len(found) > 1:
        raise NoAnswer("they are of two repositories")
    if found[0] is None:
        raise NoAnswer("there is no mirror of their repository below CAIRN_GIT_MIRRORS")
    return diff_commits(found[0], before, after)


def _told(diff: CodeDiff) -> str:
    commits, files = counted(diff.commit_count, "commit"), counted(len(diff.files), "file")
    behind = f", and {diff.left_behind} that only the baseline has" if diff.left_behind else ""
    return f"{commits} later{behind}; {files} differ"


def code_suspects(code: CodeChanges) -> list[Change]:
    """One change for each class of files; the code as a whole where its files are not known."""
    old, new = code.commits
    if code.status == "same" or old is None or new is None:
        return []
    if code.files:
        kinds = sorted({each.kind for each in code.files})
        found = [_of_kind(kind, [each.path for each in code.files if each.kind == kind]) for kind in kinds]
        if code.status == "unknown":
            found.append(Change("code.uncommitted", "code", 0.5, code.why))
        return found
    if code.status == "known":
        return []  # two commits with the same files
    if old != new:
        return [Change("code", "code", 1.0, f"code went from {old[:12]} to {new[:12]}; {code.why}")]
    return [Change("code", "code", 0.5, f"code at {old[:12]}: {code.why}")]


def _of_kind(kind: str, paths: Iterable[str]) -> Change:
    listed = list(paths)
    more = f" and {len(listed) - NAMED_FILES} more" if len(listed) > NAMED_FILES else ""
    what = CODE_OF.get(kind, f"code of {SUBJECTS.get(kind, f'the {kind}')}")
    return Change(f"code.{kind}", kind, 1.0, f"{what}: {', '.join(listed[:NAMED_FILES])}{more}")
