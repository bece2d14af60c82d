"""What a limit on processor time is multiplied by, so that it says something of the code and not of the machine."""

import time

USUAL_SECONDS = 0.065  # for three million turns


def slowness() -> float:
    """How many times slower than a usual processor this one is just now; 1 at least."""
    began = time.process_time()
    for _ in range(3_000_000):
        pass
    return max(1.0, (time.process_time() - began) / USUAL_SECONDS)
