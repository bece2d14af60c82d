"""Numbers that lie on a GPU: copied in the call, read where nobody waits."""

import sys
from typing import Any

from cairn.recorder.plain import number


class Held:
    """A tensor on a device, copied so that nothing changes it, to be read where nobody waits."""

    def __init__(self, copy: Any, event: Any) -> None:
        self._copy, self._event = copy, event

    def read(self) -> float | int | None:
        try:
            if self._event is not None:
                self._event.synchronize()
            return number(self._copy)
        except Exception:
            return None

    def item(self) -> Any:
        return self.read()


def held(value: Any) -> Any:
    """A number of a GPU is not read in a call: that would wait for everything the GPU still has to do."""
    kind = type(value)
    if kind is float or kind is int or value is None:
        return value
    try:
        if not getattr(value, "is_cuda", False):
            return number(value) if callable(getattr(value, "item", None)) else value
        event = None
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        copy = value.detach().clone()
        if cuda is not None:
            event = cuda.Event()
            event.record()
        return Held(copy, event)
    except Exception:
        return value
