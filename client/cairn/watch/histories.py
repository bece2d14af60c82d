"""Which `trainer_state.json` says what a run has logged: that of its newest save, and none of another run's."""

from collections.abc import Iterable, Mapping

from cairn.formats.checkpoints import File
from cairn.watch.folders import Met
from cairn.watch.prints import TRAINER_STATE
from cairn.watch.state import Known


def newest_states(
    files: Iterable[File], places: Mapping[str, Met], known: Mapping[str, Known], runs: Iterable[str]
) -> dict[str, str]:
    """By run, the path below the root. The newest save is that of the last attempt and step, not of the latest time:
    an older folder may have been touched. Beside the checkpoints lies what Trainer writes at the end of training."""
    states = {each.path: each for each in files if each.path.rpartition("/")[2] == TRAINER_STATE}
    found = {}
    for run in runs:
        own = [each for each in known.values() if each.run == run and each.path in places]
        inside = [each for each in own if each.state == "committed" and _in(each.path) in states]
        newest = max(inside, key=lambda each: (each.attempt, each.step), default=None)
        chosen = states[_in(newest.path)] if newest else None
        for folder in {places[each.path].look.folder for each in own}:
            last = states.get(_in(folder))
            if last is not None and (chosen is None or (last.modified_at or 0.0) > (chosen.modified_at or 0.0)):
                chosen = last
        if chosen is not None:
            found[run] = chosen.path
    return found


def _in(folder: str) -> str:
    return f"{folder}/{TRAINER_STATE}".lstrip("/")
