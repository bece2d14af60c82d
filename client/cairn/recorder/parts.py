"""The parts of a record, each read by itself: one that cannot be read costs no more than itself."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cairn.capture.secrets import mask
from cairn.numbers import number_to_wire
from cairn.recorder.fields import tag_texts
from cairn.recorder.held import Held, held
from cairn.recorder.names import curve_name
from cairn.recorder.pieces import PIECES, STATES, pieces_said
from cairn.recorder.plain import Plain, number, whole

NEVER_NEGATIVE = ("epoch", "save_seconds", "stall_seconds")
Record = dict[str, Any]


class Parts:
    """What a script has handed over, as values of a record; what has none is warned of once."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn

    def kept(self, name: str, make: Callable[[], Any]) -> Any:
        """What `make` gives; a part of a record that cannot be read costs no more than itself."""
        try:
            return make()
        except Exception:  # whatever an object of somebody else's does
            self.left_out([name])
            return None

    def numbers(self, given: Mapping[str, Any]) -> Record:
        """Those that are there; one on a GPU as `Held`, to be read later."""
        said: Record = {}
        for name, value in given.items():
            if value is None:
                continue
            copy = held(value)
            if isinstance(copy, Held):
                said[name] = copy
                continue
            found = number(copy)
            if found is None or (name in NEVER_NEGATIVE and not 0 <= found < math.inf):
                self.left_out([name])
            else:
                said[name] = number_to_wire(float(found))
        return said

    def metrics(self, given: Mapping[str, Any]) -> Record:
        said: Record = {}
        for name, value in given.items():
            found, known = number(value), curve_name(name)
            if found is None or not known:
                self.left_out([known or "a metric without a name"])
            else:
                said[known] = number_to_wire(float(found))
        return said

    def pieces(self, given: Any) -> Any:
        said, left_out = pieces_said(given)
        if left_out:
            self._warn(
                f"{', '.join(map(repr, left_out[:3]))} says nothing of a checkpoint's pieces and is left out: give "
                f"{', '.join(PIECES)}, each {', '.join(STATES)}."
            )
        return said

    def given(self, **fields: Any) -> Record:
        said: Record = {}
        for name, value in fields.items():
            if value is None:
                continue
            plain = Plain()
            found = plain.of(value, name)
            self.left_out(plain.left_out)
            said[name] = mask(tag_texts(found) if name == "tags" else found)
        return said

    def left_out(self, places: Sequence[str]) -> None:
        for place in list(places)[:3]:
            self._warn(f"{place!r} could not be kept as it is: no plain number, text, list or mapping.")

    def step(self, step: Any) -> int | None:
        found = whole(step)
        if found is None:
            said = f"{step!r:.60}" if isinstance(step, (int, float, str)) else "what was given"
            self._warn(f"{said} is no step: a whole number from 0, below 2**63. Nothing was recorded for it.")
        return found
