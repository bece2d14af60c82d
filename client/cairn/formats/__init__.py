"""Readers of the files that training leaves behind. Standard library only: training hosts and the service use them.

`cairn.formats.evals` reads results of evaluations, `cairn.formats.checkpoints` checkpoint folders. Each is loaded
when it is first asked for, so that whoever needs one never pays for the other.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cairn.formats.refusals import Refused

if TYPE_CHECKING:
    from cairn.formats.evals import EvalFile as EvalFile
    from cairn.formats.evals import EvalScore as EvalScore
    from cairn.formats.evals import Skipped as Skipped
    from cairn.formats.evals import find_format as find_format
    from cairn.formats.evals import read_evals as read_evals

__all__ = ["EvalFile", "EvalScore", "Refused", "Skipped", "find_format", "read_evals"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("cairn.formats.evals"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
