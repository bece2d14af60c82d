"""Which step an artifact is of, and where it lies.

Frameworks say it in different places: the Hugging Face Trainer in an alias (`checkpoint_global_step_500`, beside
metadata whose `train/global_step` is only that of the last log), Megatron-LM in the metadata (`iteration`), Lightning
in the name of its file or nowhere. The position in the history is never taken for a step here: it is near it at best.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from urllib.parse import unquote, urlsplit

from cairn.formats.checkpoints.steps import StepClaim, StepFound, claim_of, decide_step, step_from_name
from cairn.formats.wandb_offline.shapes import Artifact

_METADATA = ("step", "global_step", "iteration", "iter", "training_step", "cairn.step")
# Said by the trainer's last log, which may be older than the save: only where nothing else speaks.
_STALE = ("train/global_step", "trainer/global_step")
_FILE_NAMES = ("original_filename", "filename", "path")


def step_of(artifact: Artifact) -> StepFound:
    """The step that an artifact says by an alias, its metadata, the name of what it holds, or its own name."""
    strong = [*_of_aliases(artifact), *_of_metadata(artifact, _METADATA), *_of_names(artifact)]
    if strong:
        return decide_step(strong)
    return decide_step([*_of_name(artifact.name, "artifact name"), *_of_metadata(artifact, _STALE)])


def _of_aliases(artifact: Artifact) -> Iterator[StepClaim]:
    for alias in artifact.aliases:
        yield from _of_name(alias, "alias")


def _of_metadata(artifact: Artifact, names: tuple[str, ...]) -> Iterator[StepClaim]:
    for name in names:
        found = artifact.metadata.get(name)
        if isinstance(found, float) and found.is_integer():
            found = int(found)
        yield from claim_of(found, f"metadata {name}")


def _of_names(artifact: Artifact) -> Iterator[StepClaim]:
    """Names of files: the one that the metadata gives, the folder of the references, the only file at the top."""
    for name in _FILE_NAMES:
        if isinstance(found := artifact.metadata.get(name), str):
            yield from _of_name(found.rstrip("/").rpartition("/")[2], f"metadata {name}")
    if place := artifact_place(artifact):
        for part in place.rstrip("/").split("/")[-1:-3:-1]:
            claims = list(_of_name(unquote(part), "name"))
            if claims:
                yield from claims
                return
    tops = {entry.path.partition("/")[0] for entry in artifact.entries}
    if len(tops) == 1:
        yield from _of_name(tops.pop(), "name")


def _of_name(name: str, what: str) -> Iterator[StepClaim]:
    step = step_from_name(name.replace("iteration_", "iter_"))
    if step is not None:
        yield StepClaim(step, f"{what} {name}")


def artifact_place(artifact: Artifact) -> str | None:
    """Where an artifact logged by reference lies: a path for `file://`, else a URL; None for one that was uploaded.

    Of several files it is their folder: what stays of a reference without the file's path inside the artifact.
    """
    refs = [entry for entry in artifact.entries if entry.ref]
    if not refs or len(refs) < len(artifact.entries):
        return None
    roots = {_root(entry.ref or "", entry.path) for entry in refs}
    place = roots.pop() if len(roots) == 1 else _folder_of([entry.ref or "" for entry in refs])
    if place.startswith("file://"):
        return unquote(urlsplit(place).path) or None
    return place if "://" in place and place.partition("://")[2] else None


def _folder_of(refs: Sequence[str]) -> str:
    """What addresses begin with, whole parts only."""
    parts = zip(*(ref.split("/")[:-1] for ref in refs), strict=False)
    return "/".join(names[0] for names in takewhile(lambda names: len(set(names)) == 1, parts))


def _root(ref: str, path: str) -> str:
    """`file:///ckpt/step-5` of the file `a/w.bin` at `file:///ckpt/step-5/a/w.bin`.

    A file elsewhere is its own place, and so is one whose name has a step: it is the checkpoint.
    """
    if step_from_name(path) is not None:
        return ref
    return ref[: -len(path) - 1] if ref.endswith(f"/{path}") and "/" in ref[: -len(path) - 1] else ref
