"""Drives a search by a command that evaluates: which checkpoint, on how many items, and what came of it."""

from cairn.bisecting.command import Placeholders, Template, UnusableCommand
from cairn.bisecting.driving import Finished, drive
from cairn.bisecting.outcome import Outcome, read_outcome

__all__ = ["Finished", "Outcome", "Placeholders", "Template", "UnusableCommand", "drive", "read_outcome"]
