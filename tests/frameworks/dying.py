"""How a training of these tests dies: the machine is gone, and nothing is cleaned up."""

import os
import signal
import time

from cairn.recorder.engine import engine


def die() -> None:
    """At once, but not before the spool could be opened: what calls keep in memory until then is promised to nobody."""
    while engine().writer.waiting:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
