"""Files that name a run's last whole checkpoint: `latest`, `latest_checkpointed_iteration.txt`."""

from cairn.formats.checkpoints import File, Unreadable
from cairn.formats.checkpoints.steps import step_from_name
from cairn.scan.find import Tracker
from cairn.scan.spool import Spool
from cairn.scan.walk import Tree


def keep_tracker(spool: Spool, tree: Tree, tracker: Tracker) -> None:
    """`global_step600` or `600`; Megatron's `release` says nothing of steps."""
    name = tracker.path.rpartition("/")[2]
    try:
        source = tree.listing(tracker.path, [File(name, 256)]).source
        said = source.read(name, 0, 256).decode("utf-8", "replace").strip()
    except Unreadable:
        return
    step = int(said) if said.isascii() and said.isdigit() and len(said) < 19 else step_from_name(said)
    if step is not None:
        spool.tracker(tracker.folder, step, said, tracker.modified_at)
