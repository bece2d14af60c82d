"""What the files of a checkpoint were when it was recorded: a save over it is told from what was only touched.

A save of the same step writes its tensors anew. What was added (a tokenizer), removed (a rotation that is half done) or
given another time (`touch`, a copy over itself) is no save. So a few of its files are kept with size, time and a sample
of their bytes, and only another size or another sample counts. Stores give an object a new time only when it is
written, so there the time counts, and nothing is read.
"""

import hashlib
import json
from collections.abc import Sequence

from cairn.formats.checkpoints import File, Listing, Unreadable
from cairn.scan.find import Candidate
from cairn.scan.walk import StoreTree, Tree

# Files that may be added or written later: results, a `cairn.json`, a tokenizer, what a logger appends to.
BESIDE = (
    *(".json", ".jsonl", ".csv", ".tsv", ".md", ".txt", ".yaml", ".yml", ".toml", ".eval", ".log", ".py", ".jinja"),
    *(".model", ".wandb"),
)
TRAINER_STATE = "trainer_state.json"
KEPT_FILES, BLOCK_BYTES = 8, 4096


def print_of(candidate: Candidate) -> str:
    """Changes with any file of state; known from the listing alone."""
    said = sorted((each.path, each.bytes, each.modified_at or 0.0) for each in _of_state(candidate))
    return hashlib.blake2b(json.dumps(said).encode(), digest_size=12).hexdigest()


def files_of(tree: Tree, candidate: Candidate) -> str:
    """Size, time and sample of the largest files of state, and of Trainer's own, as text to keep."""
    own = sorted(_of_state(candidate), key=lambda each: (each.path != TRAINER_STATE, -each.bytes, each.path))[
        :KEPT_FILES
    ]
    base = candidate.folder if candidate.ranks else candidate.path
    listing = None if isinstance(tree, StoreTree) else tree.listing(base, own, single=candidate.single)
    return json.dumps({each.path: (each.bytes, each.modified_at, _sample(listing, each)) for each in own})


def written_again(before: str, now: str) -> bool:
    """Whether a file that was there then and is now has been written since."""
    old, new = json.loads(before), json.loads(now)
    return any(_differs(*old[path], *new[path]) for path in old.keys() & new.keys())


def _differs(
    size: int, time: float | None, sample: str | None, new_size: int, new_time: float | None, new_sample: str | None
) -> bool:
    if size != new_size or time == new_time:
        return size != new_size
    return sample is None or new_sample is None or ("" not in (sample, new_sample) and sample != new_sample)


def _of_state(candidate: Candidate) -> Sequence[File]:
    found = [each for each in candidate.files if each.path == TRAINER_STATE or not _is_beside(each.path.lower())]
    return found or candidate.files


def _is_beside(path: str) -> bool:
    return path.endswith(BESIDE) or "tfevents" in path


def _sample(listing: Listing | None, file: File) -> str | None:
    """Of a block in the middle and the last one; '' where it cannot be read now, None where nothing is read."""
    if listing is None:
        return None
    last = max(0, file.bytes - BLOCK_BYTES)
    try:
        blocks = [listing.source.read(file.path, at, BLOCK_BYTES) for at in sorted({min(file.bytes // 2, last), last})]
    except Unreadable:
        return ""
    return hashlib.blake2b(b"".join(blocks), digest_size=8).hexdigest()
