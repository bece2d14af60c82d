"""Files of `torch.save` with a dictionary of somebody's own: the keys tell what is in them."""

from collections.abc import Sequence

from cairn.formats.checkpoints import torch_files, torch_weights
from cairn.formats.checkpoints.numbered import siblings
from cairn.formats.checkpoints.saved_dict import Saved
from cairn.formats.checkpoints.shapes import Inspection, Pieces, Problem, Unreadable, absent, unknown
from cairn.formats.checkpoints.source import Listing
from cairn.formats.checkpoints.steps import claims_of_place, decide_step
from cairn.formats.checkpoints.weights import Weights, expected_shards

NAME = "torch-save"
LOOKS_FOR = "files that torch.save wrote (.pt, .pth, .bin, .ckpt)"
_ENDINGS = (".pt", ".pth", ".bin", ".ckpt", ".tar", ".pkl", ".model")
_UNFINISHED = (".tmp", ".part", ".partial", ".incomplete")
# More than a folder saved by hand has; each costs a few reads.
MAX_FILES = 256
_OPAQUE_OK = ("torch.", "collections.", "builtins.", "__builtin__.", "numpy.", "_codecs.", "copyreg.", "copy_reg.")


def matches(listing: Listing) -> bool:
    paths = listing.top()
    if len(listing.files) == 1:
        return _is_torch(listing, paths[0]) if paths else False
    paths = _candidates(listing)
    return any(_is_torch(listing, path) for path in paths[:8]) and not _are_separate(listing, paths)


def _are_separate(listing: Listing, paths: Sequence[str]) -> bool:
    """Several files that are a whole checkpoint each: `step_250.pt` beside `step_500.pt` are two, not one."""
    whole = 0
    for path in paths[:MAX_FILES]:
        saved = Saved()
        try:
            saved.add(torch_files.read(listing, path).value, path)
        except Unreadable:
            continue
        whole += bool(saved.weights and (saved.optimizer or saved.steps))
        if whole > 1:
            return True
    return False


def _is_torch(listing: Listing, path: str) -> bool:
    """A zip is torch's when it holds data.pkl, whose name stands in its first entry."""
    if not torch_files.looks_so(listing, path):
        return False
    head = listing.head(path, 512)
    return not head.startswith(b"PK") or b"data.pkl" in head or path.endswith(_ENDINGS[:4])


def _candidates(listing: Listing) -> list[str]:
    return [path for path in listing.top() if path.endswith(_ENDINGS) and path != "training_args.bin"]


def read(listing: Listing) -> Inspection:
    paths = listing.top() if len(listing.files) == 1 else _candidates(listing)
    weights, saved, problems = Weights(), Saved(), list[Problem]()
    forms = _take_all(listing, paths[:MAX_FILES], weights, saved, problems)
    if len(paths) > MAX_FILES:
        problems.append(Problem("", f"only the first {MAX_FILES} of {len(paths)} files are read"))
    weights.lacks(path for path in [*expected_shards(paths), *siblings(paths)] if path not in listing)
    for path in listing.top():
        if path.endswith(_UNFINISHED):
            weights.fault(path, "is still being written, or was left by a save that broke off")
    _count(weights, saved)
    step = decide_step([*saved.steps, *claims_of_place(listing.root)])
    return Inspection(
        format=NAME,
        format_version=", ".join(dict.fromkeys(forms)) or None,
        root=listing.root,
        step=step.step,
        step_source=step.source,
        disagreements=step.disagreements,
        pieces=_pieces(weights, saved, bool(forms) and forms != ["tar (before torch 0.1.10)"]),
        **weights.numbers(),
        bytes=listing.total_bytes,
        files=len(listing.files),
        complete=False if not weights.sound else None,
        missing=tuple(weights.missing),
        problems=(*weights.problems, *problems),
        facts={**saved.facts, "keys": saved.keys} if saved.keys else saved.facts,
    )


def _take_all(
    listing: Listing, paths: Sequence[str], weights: Weights, saved: Saved, problems: list[Problem]
) -> list[str]:
    """Reads every file; one that is hostile or broken is said and left. Answers the forms that were met."""
    forms = []
    for path in paths:
        try:
            file = torch_files.read(listing, path)
        except Unreadable as fault:
            weights.fault(path, str(fault))
            continue
        forms.append(file.form)
        weights.files.append(path)
        for problem in file.problems:
            weights.fault(path, problem)
        opaque = [name for name in file.globals if not name.startswith(_OPAQUE_OK)]
        if opaque:
            problems.append(Problem(path, f"names classes that are not built here: {', '.join(opaque[:5])}"))
        saved.add(file.value, path)
    return forms


def _count(weights: Weights, saved: Saved) -> None:
    """Adds the tensors; a second set under the same names (EMA, best) is another version of the same parameters."""
    seen: dict[str, str] = {}
    for place, value in saved.weights.items():
        names = [name for name, _ in torch_weights.named_tensors(value)]
        twin = next((seen[name] for name in names if name in seen), None)
        if twin is None:
            torch_weights.add_tensors(weights, value, place.partition(" ")[0], seen)
        else:
            weights.note(place, f"holds tensors of the same names as {twin}: another version, not counted")


def _pieces(weights: Weights, saved: Saved, told: bool) -> Pieces:
    if not told:
        nothing = unknown("no file of it could be read")
        return Pieces(weights.finding if weights.faults else nothing, nothing, nothing, nothing)
    found = weights.finding
    if weights.sound and not saved.weights:
        found = absent("no tensors under a key that names a model") if saved.keys or saved.optimizer else found
    return Pieces(found, saved.optimizer_finding(), saved.position_finding(), saved.random_finding())
