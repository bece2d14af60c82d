"""Pickles are followed, never executed."""

import collections
import contextlib
import os
import pickle
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cairn.formats.checkpoints import pickles
from cairn.formats.checkpoints.pickles import Global, PickleFault, Record, UnsafePickle
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.client.formats.checkpoints.sources import files_of

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.integers(-1000, 1000), inner) | st.tuples(inner, inner)
    ),
    max_leaves=25,
)


class Runs:
    """What an attacker saves."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.call = (function, args)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.call


@settings(max_examples=200, deadline=None)
@given(value=PLAIN, protocol=st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_plain_values_come_back_as_pickle_gives_them(value: Any, protocol: int) -> None:
    assert pickles.load(pickle.dumps(value, protocol)).value == value


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    ("function", "args"),
    [
        (os.system, ("touch PWNED",)),
        (subprocess.Popen, (["touch", "PWNED"],)),
        (eval, ("open('PWNED', 'w')",)),
        (exec, ("open('PWNED', 'w')",)),
        (getattr, (os, "system")),
        (__import__, ("os",)),
        (open, ("PWNED", "w")),
    ],
)
def test_a_pickle_that_would_run_code_is_refused_and_runs_nothing(
    function: Any, args: tuple[Any, ...], protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    usable = tuple(each for each in args if not isinstance(each, type(os)))
    data = pickle.dumps({"state_dict": {}, "x": Runs(function, *usable)}, protocol)
    with pytest.raises(UnsafePickle, match="nothing of it was run"):
        pickles.load(data)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "data",
    [
        b"cos\nsystem\n(S'touch PWNED'\ntR.",
        b"(S'touch PWNED'\nios\nsystem\n.",
        b"(cos\nsystem\nS'touch PWNED'\no.",
        b"\x80\x04\x8c\x05torch\x8c\x17serialization.os.system\x93\x8c\x01x\x85R.",
        b"\x80\x04\x8c\x13torch.serialization\x8c\x09os.system\x93.",
        b"\x80\x02cbuiltins\neval\n.",
        b"\x80\x02c__builtin__\nexec\n.",
        b"\x80\x02coperator\nattrgetter\n.",
        b"\x80\x02crunpy\nrun_path\n.",
        b"\x80\x02cnumpy.testing._private.utils\nrunstring\n.",
        b"\x80\x02ctorch.hub\nload\n.",
    ],
)
def test_every_way_of_naming_what_runs_code_is_refused(data: bytes) -> None:
    with pytest.raises(UnsafePickle):
        pickles.load(data)


def test_calling_what_the_pickle_made_itself_is_refused() -> None:
    with pytest.raises(UnsafePickle, match="what it has made itself"):
        pickles.load(b"ca\nb\n)R)R.")


def test_only_what_is_allowed_is_named() -> None:
    data = pickle.dumps(collections.OrderedDict(a=1), 2)
    assert pickles.load(data, only=("collections.",)).value == {"a": 1}
    with pytest.raises(UnsafePickle, match=r"collections\.OrderedDict"):
        pickles.load(data, only=("torch.",))


def test_objects_of_unknown_classes_become_records_of_what_they_hold() -> None:
    data = b"ccairn_unknown.module\nThing\n)\x81}X\x01\x00\x00\x00aK\x07sb."
    loaded = pickles.load(data)
    assert isinstance(loaded.value, Record)
    assert (loaded.value.name, loaded.value.state) == ("cairn_unknown.module.Thing", {"a": 7})
    assert loaded.globals == ("cairn_unknown.module.Thing",)


def test_a_state_put_into_a_class_changes_nothing() -> None:
    """`BUILD` on the class itself would change it for the whole process, if this were a real unpickler."""
    with pytest.raises(PickleFault):
        pickles.load(b"ccairn_unknown\nThing\n}X\x01\x00\x00\x00aK\x07sb.")
    assert Global("a", "b") == Global("a", "b")


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(PickleFault):
        pickles.load(data)


@settings(max_examples=150, deadline=None)
@given(cut=st.integers(0, 400), place=st.integers(0, 399), byte=st.integers(0, 255))
def test_a_damaged_pickle_of_torch_is_read_or_refused(cut: int, place: int, byte: int) -> None:
    data = bytearray(PKL)
    data[place % len(data)] = byte
    with contextlib.suppress(PickleFault):
        pickles.load(bytes(data[: len(data) - cut]))


def _data_pkl() -> bytes:
    import io
    import zipfile

    with zipfile.ZipFile(io.BytesIO(files_of("torch_save")["ckpt.pt"])) as archive:
        return archive.read("ckpt/data.pkl")


PKL = _data_pkl()


@pytest.mark.parametrize(
    ("before", "again", "times", "after"),
    [
        (b"(", b"]", 1_000_000, b"l."),
        (b"(", b"\x8f", 500_000, b"l."),
        (b"(", b"J\xff\xff\xff\x0f", 1_000_000, b"l."),
        (b"]", b"2", 3_000_000, b"."),
        (b"N", b"\x85", 1_000_000, b"."),
        (b"", b"(", 1_000_000, b"."),
    ],
    ids=["lists", "sets", "numbers", "stack", "nested tuples", "open lists"],
)
def test_a_pickle_that_grows_is_stopped_by_its_budget(before: bytes, again: bytes, times: int, after: bytes) -> None:
    import tracemalloc

    data = before + again * times + after
    tracemalloc.start()
    try:
        with pytest.raises(PickleFault, match="more than is followed"):
            pickles.load(data, budget=2_000_000)
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()


def test_a_pickle_that_promises_gigabytes_is_cut_short_and_allocates_nothing() -> None:
    for data in (
        b"\x8e" + (2**40).to_bytes(8, "little"),
        b"B" + (2**31).to_bytes(4, "little"),
        b"\x95" + b"\xff" * 8 + b"N",
    ):
        with pytest.raises(PickleFault, match="cut short"):
            pickles.load(b"\x80\x04" + data)


def test_references_that_multiply_cost_nothing() -> None:
    """Each list holds the one before twice: 2 to the 60th if anybody walked it as a tree."""
    data = (
        b"]q\x00" + b"".join(b"](h" + bytes([n]) + b"h" + bytes([n]) + b"eq" + bytes([n + 1]) for n in range(60)) + b"."
    )
    assert sum(1 for _ in pickles.walk(pickles.load(data).value)) < 200


@pytest.mark.parametrize(
    "data",
    [
        b"}N" + b"\x85" * 500_000 + b"Ns.",  # a tuple of half a million levels as a key
        b"}N" + b"\x85" * 500_000 + b"QNs.",  # the same as the name of something kept outside
        b"cbuiltins\nset\n](N" + b"\x85" * 500_000 + b"e\x85R.",
        b"\x8f(N" + b"\x85" * 500_000 + b"\x90.",
    ],
    ids=["key", "persistent key", "set call", "set"],
)
def test_depth_does_not_end_the_process(data: bytes) -> None:
    """Python's own hash of such a tuple overflows the stack of the process."""
    with contextlib.suppress(PickleFault):
        pickles.load(data)


def test_a_number_of_megabytes_is_refused() -> None:
    with pytest.raises(PickleFault, match="integer larger"):
        pickles.load(b"\x8b" + (1_000_000).to_bytes(4, "little") + b"\x7f" * 1_000_000 + b".")


def test_entries_put_one_by_one_into_a_record_take_time_in_proportion() -> None:
    data = b"ca\nb\n)\x81" + b"Na" * 200_000 + b"K\x01Ns" * 200_000 + b"."
    record = pickles.load(data).value
    assert len(record.entries) == 200_000
