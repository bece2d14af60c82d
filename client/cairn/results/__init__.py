"""Result files of evaluations, many at once: find them, find out whose they are, send them.

`gather` looks at files and folders, `place` says to which checkpoint each result belongs and how that is known, and
`send` imports them. Nothing is written before `send`.
"""

from cairn.results.gather import Refusal, Result, gather
from cairn.results.places import Asked, Planned, place
from cairn.results.send import Sent, send

__all__ = ["Asked", "Planned", "Refusal", "Result", "Sent", "gather", "place", "send"]
