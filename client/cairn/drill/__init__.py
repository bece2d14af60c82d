"""Rehearsing a restore on this host: one copy is read whole and verified, its files are held against the record, and
a command loads it and trains a few steps. What the losses mean the service says, which has the run's own curve.
"""

from cairn.drill.choosing import NothingToDrill, Target, choose_copy
from cairn.drill.due import Due, find_due
from cairn.drill.rehearsing import Asked, Rehearsal, rehearse
from cairn.drill.template import UnusableCommand, check_command

__all__ = [
    "Asked",
    "Due",
    "NothingToDrill",
    "Rehearsal",
    "Target",
    "UnusableCommand",
    "check_command",
    "choose_copy",
    "find_due",
    "rehearse",
]
