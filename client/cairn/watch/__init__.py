"""Watches where a training of any framework saves, and records what appears: `cairn watch`.

    with Watcher(Watched("/mnt/ckpt/7b", project="llm", run="7b-v3", tier="shared")) as watcher:
        for event in watcher.look(Client()):
            print(event.text)

One look is a walk over the tree: what has not changed since the last one is not opened again. What a look found out
is kept in a file of its own on this host, so that a restart repeats nothing; all that is recorded has natural keys, so
that even a repeat does no harm.
"""

from cairn.watch.events import Event
from cairn.watch.loop import watch
from cairn.watch.watcher import Watched, Watcher

__all__ = ["Event", "Watched", "Watcher", "watch"]
