"""What of a checkpoint another layout can load, piece by piece: exactly, after a conversion, by a drill, or not.

Exact means the same values after regrouping. Any other layout changes the order of sums, so the losses that follow
are close, never the same; and each cell that says exact still wants one passed drill for each version of the software.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from registry.layout.cells import ORDER, TO_UNIVERSAL, Cell, Verdict, cell
from registry.layout.spec import MODEL_PARALLEL, ContradictoryLayout, Degrees, Family, Saved
from registry.types import PieceName, Presence

SPLIT: Final = ("tp", "pp", "cp", "ep", "dp")
STATE, COUNTER = "state", "counter"
COUNTER_HOLDS: Final = "a count of samples tells it only while data set, blend, seed and global batch size are equal"
CALLED: Final = {
    PieceName.WEIGHTS: "the weights",
    PieceName.OPTIMIZER: "the optimizer",
    PieceName.DATA_POSITION: "the data position",
    PieceName.RANDOM_STATE: "the random state",
}
NOT_SAME_SUMS: Final = "the order of sums changes, so losses will be close and not the same"


@dataclass(frozen=True, slots=True)
class Change:
    """One degree that becomes another; None is unknown."""

    degree: str
    old: int | None
    new: int | None

    def __str__(self) -> str:
        old, new = ("unknown" if each is None else str(each) for each in (self.old, self.new))
        return f"{self.degree} {old} to {new}"


@dataclass(frozen=True, slots=True)
class PieceFit:
    """Whether one piece can be loaded; `words` why, or what has to be done."""

    verdict: Verdict
    words: str = ""


@dataclass(frozen=True, slots=True)
class Compatibility:
    """The changes of layout and what becomes of each piece. `assumed`: what the target did not say."""

    changes: tuple[Change, ...]
    pieces: Mapping[PieceName, PieceFit]
    assumed: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """The changes in words: 'tp 8 to 4, dp 8 to 16'."""
        return ", ".join(map(str, self.changes))

    def obstacle(self, needed: tuple[PieceName, ...]) -> tuple[PieceName, PieceFit] | None:
        """The first needed piece that cannot be loaded."""
        stuck = (Verdict.REFUSED, Verdict.IMPOSSIBLE)
        return next(((name, self.pieces[name]) for name in needed if self.pieces[name].verdict in stuck), None)

    def converts(self, needed: tuple[PieceName, ...]) -> bool:
        """Whether any needed piece must be converted before it loads."""
        fits = [self.pieces[name] for name in needed]
        return any(each.verdict is Verdict.CONVERTED or TO_UNIVERSAL in each.words for each in fits)

    def worst(self, needed: tuple[PieceName, ...]) -> Verdict:
        return max((self.pieces[name].verdict for name in needed), key=ORDER.__getitem__, default=Verdict.EXACT)


def compatibility(
    saved: Saved,
    target: Degrees,
    presence: Mapping[PieceName, Presence],
    *,
    position: str | None = None,
    counted: bool = False,
    impossible: str = "",
    mcore: tuple[int, ...] | None = None,
) -> Compatibility:
    """How a checkpoint fits a target; degrees that the target leaves out are taken as they were saved.

    `position`: the evidence of its data position, `state` or `counter`; `counted`: the samples or tokens it has seen
    are recorded beside it. `impossible`: why the model itself is another one. `mcore`: the Megatron core that loads.
    Raises ContradictoryLayout where the target's degrees do not make its number of ranks.
    """
    target.completed()
    full, assumed, stuck = _filled(saved, target)
    changes = _changes(saved.degrees, target, full)
    fits = {name: _piece(name, saved, full, changes, position, counted) for name in PieceName}
    fits = _with_version(fits, saved, mcore)
    if impossible or stuck:
        fits = {name: PieceFit(Verdict.IMPOSSIBLE, impossible or stuck) for name in PieceName}
    return Compatibility(changes, {name: _with_presence(fits[name], presence[name]) for name in PieceName}, assumed)


def _filled(saved: Saved, target: Degrees) -> tuple[Degrees, tuple[str, ...], str]:
    """(the whole target, what was taken as saved, why it cannot be): only what the saved layout knows is filled in."""
    missing = [name for name in (*MODEL_PARALLEL, "ep") if getattr(target, name) is None]
    asked = any(getattr(target, name) is not None for name in ("world_size", "dp", *MODEL_PARALLEL))
    known = {name: value for name in missing if (value := getattr(saved.degrees, name)) is not None}
    if not asked or not known:
        return target.completed(), (), ""
    assumed = tuple(f"{name} stays {value}" for name, value in known.items() if value != 1)
    try:
        return replace(target, **known).completed(), assumed, ""
    except ContradictoryLayout as fault:
        return target, (), f"{fault.message.removesuffix('.')}, with what the target leaves out as it was saved"


def _changes(old: Degrees, asked: Degrees, new: Degrees) -> tuple[Change, ...]:
    """What is known to change, and what was asked for and may change; world_size alone where no degree tells more."""
    found = []
    for name in SPLIT:
        before, after = getattr(old, name), getattr(new, name)
        if after is not None and before != after and (before is not None or getattr(asked, name) is not None):
            found.append(Change(name, before, after))
    if not any(each.old is not None for each in found) and new.world_size not in (None, old.world_size):
        found.insert(0, Change("world_size", old.world_size, new.world_size))
    return tuple(found)


def _piece(
    name: PieceName,
    saved: Saved,
    now: Degrees,
    changes: tuple[Change, ...],
    position: str | None,
    counted: bool,
) -> PieceFit:
    if not changes:
        return PieceFit(Verdict.EXACT)
    if name is PieceName.DATA_POSITION:
        return _data_position(saved, now, changes, position, counted)
    cells = [_cell(saved, each, now) for each in changes]
    if name is PieceName.RANDOM_STATE:
        if any(each.drops_random for each in cells):
            return PieceFit(Verdict.REFUSED, "it is dropped; training goes on with fresh random state")
        return PieceFit(Verdict.DRILL, "it is kept by rank, and the ranks change")
    verdicts = [each.weights if name is PieceName.WEIGHTS else each.optimizer for each in cells]
    worst = max(verdicts, key=ORDER.__getitem__)
    words = [each.words for each, verdict in zip(cells, verdicts, strict=True) if verdict is not Verdict.EXACT]
    if name is PieceName.WEIGHTS and any(each.degree == "tp" for each in changes) and worst is Verdict.EXACT:
        words.append("padding of the vocabulary may change with TP: trim or pad the embedding")
    return PieceFit(worst, "; ".join(dict.fromkeys(filter(None, words))) or _default_words(saved, worst))


def _cell(saved: Saved, change: Change, now: Degrees) -> Cell:
    """From an unknown degree, nothing is certain: neither that it loads nor that it is refused."""
    if change.degree == "world_size":
        at_best = cell(saved, "dp", now)
        weights = Verdict.EXACT if saved.family is Family.WEIGHTS else Verdict.DRILL
        return Cell(weights, Verdict.DRILL, at_best.words or "how the ranks are split is not recorded")
    if change.old is None:
        weights = Verdict.EXACT if saved.family is Family.WEIGHTS else Verdict.DRILL
        return Cell(weights, Verdict.DRILL, f"with which {change.degree} it was saved is not recorded")
    return cell(saved, change.degree, now)


def _default_words(saved: Saved, verdict: Verdict) -> str:
    if verdict is not Verdict.DRILL:
        return ""
    return "its format is unknown" if saved.family is Family.UNKNOWN else "nobody promises it for this format"


def _data_position(
    saved: Saved, now: Degrees, changes: tuple[Change, ...], position: str | None, counted: bool
) -> PieceFit:
    """A loader's state asserts the number of data-parallel ranks; a counter does not, if the order of data is free."""
    same = saved.degrees.dp is not None and saved.degrees.dp == now.dp
    if same:
        return PieceFit(Verdict.EXACT, COUNTER_HOLDS if position == COUNTER else "")
    moved = any(each.degree == "dp" and each.old is not None for each in changes)
    if position == COUNTER:
        if saved.free_order:
            return PieceFit(Verdict.EXACT, COUNTER_HOLDS)
        return PieceFit(Verdict.DRILL, f"{COUNTER_HOLDS}, and where the order of data does not depend on DP")
    if position == STATE and moved:
        if counted:
            skip = "skip by the samples it had seen instead, where the order of data does not depend on DP"
            return PieceFit(Verdict.DRILL, f"the loader's state asserts an equal number of DP ranks; {skip}")
        return PieceFit(
            Verdict.REFUSED, "the loader's state asserts an equal number of DP ranks, and no count of samples is kept"
        )
    return PieceFit(Verdict.DRILL, "whether its data position follows another number of DP ranks is not known")


def _with_version(
    fits: dict[PieceName, PieceFit], saved: Saved, mcore: tuple[int, ...] | None
) -> dict[PieceName, PieceFit]:
    """Optimizer states of Megatron core up to 0.14 are converted before 0.15 loads them."""
    fit = fits[PieceName.OPTIMIZER]
    old = saved.mcore is not None and saved.mcore < (0, 15) <= (mcore or (0,))
    if not old or ORDER[fit.verdict] > ORDER[Verdict.CONVERTED]:
        return fits
    words = "optimizer states of Megatron core up to 0.14 are converted for 0.15"
    return {**fits, PieceName.OPTIMIZER: PieceFit(Verdict.CONVERTED, words)}


def _with_presence(fit: PieceFit, presence: Presence) -> PieceFit:
    if presence is Presence.ABSENT:
        return PieceFit(Verdict.IMPOSSIBLE, "the checkpoint does not have it")
    if presence is Presence.UNKNOWN and ORDER[fit.verdict] < ORDER[Verdict.DRILL]:
        return PieceFit(Verdict.DRILL, "nobody recorded whether it is there")
    return fit
