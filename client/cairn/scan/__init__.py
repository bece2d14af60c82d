"""Whole trees: finds the checkpoints below a folder or in a bucket, arranges them into runs and attempts, records them.

    with scan("/mnt/ckpt", project="llm", tier="shared") as plan:
        compare(plan, client)          # what is recorded already is left alone
        register(plan, client)

A list of steps and addresses (CSV) is read likewise. Nothing is loaded, nothing that a file says is executed, and
what cannot be read is a problem of that one place.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cairn.errors import Invalid
from cairn.formats.checkpoints.shapes import Problem, path_text
from cairn.scan.arrange import DEFAULT_SETTLE_SECONDS, Rules, arrange
from cairn.scan.compare import compare
from cairn.scan.find import Candidate, Tracker, find_candidates
from cairn.scan.lists import is_list, read_list
from cairn.scan.look import Unknown
from cairn.scan.names import place_of
from cairn.scan.plan import Plan, PlannedRun
from cairn.scan.register import register
from cairn.scan.spool import Spool
from cairn.scan.trackers import keep_tracker
from cairn.scan.walk import Tree, open_tree
from cairn.scan.workers import look_at_all
from cairn.stores import is_url

__all__ = ["DEFAULT_SETTLE_SECONDS", "Plan", "PlannedRun", "compare", "register", "scan"]

Progress = Callable[[int], None]


@contextmanager
def scan(
    root: str,
    *,
    project: str,
    run: str | None = None,
    tier: str | None = None,
    settle_seconds: float = DEFAULT_SETTLE_SECONDS,
    by_time: bool = True,
    progress: Progress | None = None,
) -> Iterator[Plan]:
    """The plan for what lies below `root` (a folder, a URL, or a CSV of steps and addresses).

    `tier` is that of copies on this machine's file systems, `local` or `shared`; `run` names the run, or begins the
    names of several. `progress` receives the number of checkpoints found so far. Raises `Unreadable`, `Refused`.
    """
    if tier not in (None, "local", "shared", "object"):
        raise Invalid(f"{tier!r} is no tier; expected local, shared or object.")
    with Spool() as spool:
        if is_list(root):
            read_list(root, spool, run)
            spool.index()
            base = root
        else:
            tree = open_tree(root)
            base = tree.root
            _fill(spool, tree, progress or (lambda count: None))
            arrange(spool, Rules(_root_name(base), run, settle_seconds, by_time))
        yield Plan(spool, base, project, tier, socket.gethostname() if tier == "local" else None)


def _root_name(root: str) -> str:
    """What the root itself is called as a run: its last part that is no mere `checkpoints`."""
    path = root.partition("://")[2] if is_url(root) else root
    return place_of(path, path.strip("/") or "root").run.rpartition("/")[2]


def _fill(spool: Spool, tree: Tree, progress: Progress) -> None:
    found = 0
    for look in look_at_all(tree, _candidates(spool, tree)):
        if isinstance(look, Unknown):
            spool.problem(look.path or ".", look.reason)
            continue
        spool.add(look)
        found += 1
        progress(found)


def _candidates(spool: Spool, tree: Tree) -> Iterator[Candidate]:
    for met in find_candidates(tree.walk()):
        if isinstance(met, Problem):
            spool.problem(path_text(met.path) or ".", path_text(met.reason))
        elif isinstance(met, Tracker):
            keep_tracker(spool, tree, met)
        else:
            yield met
