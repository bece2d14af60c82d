"""`cairn exec`: starts a training job, tells the service how it fares, and starts it again where that is wanted.

The job comes first: it starts before the service has answered anything, its output passes through unchanged, and what
cannot be sent is kept in a file that the next `cairn exec` sends.
"""

from cairn.supervise.job import Plan, supervise

__all__ = ["Plan", "supervise"]
