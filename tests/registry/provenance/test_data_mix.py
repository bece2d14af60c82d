"""Mix distances, with a worked example of six sources."""

import pytest

from registry.provenance.data_mix import Source, compare_mixes, shares

OLD = {"web": 0.60, "code": 0.20, "math": 0.10, "books": 0.05, "wiki": 0.05}
NEW = {"web": 0.70, "code": 0.22, "math": 0.03, "books": 0.03, "forum": 0.02}


def mix(weights: dict[str, float]) -> dict[str, Source]:
    return {name: Source(weight) for name, weight in weights.items()}


def test_six_sources_of_which_one_was_dropped_and_one_added() -> None:
    found = compare_mixes(mix(OLD), mix(NEW), 400e9, 300e9)
    assert found.total_variation == pytest.approx(0.14)
    assert found.jensen_shannon_bits == pytest.approx(0.0543, abs=5e-5)
    parts = [(each.source, each.jensen_shannon_bits) for each in found.sources[:3]]
    assert [name for name, _ in parts] == ["wiki", "math", "forum"]
    assert [bits for _, bits in parts] == pytest.approx([0.0250, 0.0143, 0.0100], abs=5e-5)
    math = found.sources[1]
    assert (math.old_tokens, math.new_tokens) == pytest.approx((40e9, 9e9))


def test_weights_of_any_scale_are_normalised() -> None:
    tenfold = {name: Source(10 * weight) for name, weight in OLD.items()}
    assert compare_mixes(mix(OLD), tenfold).total_variation == pytest.approx(0.0, abs=1e-12)


def test_tokens_stand_in_for_weights() -> None:
    assert shares({"a": Source(None, 300), "b": Source(None, 100)}) == {"a": 0.75, "b": 0.25}
    assert shares({"a": Source(3.0, 10), "b": Source(1.0, None)}) == {"a": 0.75, "b": 0.25}


def test_an_unknown_mix_has_no_distance() -> None:
    found = compare_mixes(None, mix(NEW))
    assert (found.total_variation, found.jensen_shannon_bits) == (None, None)
    assert found.why == "the baseline has no recorded mix"
    web = next(each for each in found.sources if each.source == "web")
    assert web.old_share is None
    assert web.new_share == pytest.approx(0.70)


def test_a_source_of_unknown_weight_makes_the_mix_unknown() -> None:
    half_known = {"web": Source(0.6), "code": Source(None)}
    assert shares(half_known) is None
    assert compare_mixes(mix(OLD), half_known).jensen_shannon_bits is None


def test_nothing_in_common_is_one_bit() -> None:
    found = compare_mixes({"a": Source(1.0)}, {"b": Source(1.0)})
    assert found.total_variation == pytest.approx(1.0)
    assert found.jensen_shannon_bits == pytest.approx(1.0)
