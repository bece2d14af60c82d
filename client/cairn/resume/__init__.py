"""What a launch goes on from: the newest checkpoint that fits, at a path that this host can read whole.

    with Client(timeout=5) as client:
        choice = choose(client, "llm/7b-a", layout={"tp": 4, "pp": 2, "dp": 8})
    subprocess.run([..., "--resume", choice.path])

The service decides the order; here each copy is held against what is recorded of it, and one that is missing or cut
short gives way to the next copy, then to the next checkpoint. Where the service cannot be reached, the folder of the
last success (or `local_roots`) is scanned instead, and the choice says so.
"""

from cairn.resume.choosing import choose
from cairn.resume.shapes import Choice, Launch, NothingToResume, PassedOver

__all__ = ["Choice", "Launch", "NothingToResume", "PassedOver", "choose"]
