"""What compare and provenance say of published models: interventions named, and no cause declared where two differ."""

import pytest

from registry.db import Database
from registry.provenance.bundle import read_provenance
from registry.provenance.compare import compare_checkpoints
from tests.demo.test_load import checkpoint_id

TOKENS_A_STEP = 2_097_152


def test_an_intervention_on_the_data_names_the_data_first_and_what_moved(loaded: Database) -> None:
    names = [f"pythia-70m-deduped-{variant}" for variant in ("baseline", "intervention")]
    with loaded.read() as session:
        found = compare_checkpoints(session, *(checkpoint_id(session, "pythia", name, 143_000) for name in names))
    first = found.suspects[0]
    assert all(change.startswith("data.") for change in first.changes)
    assert any("pronouns swapped" in change for change in first.changes)
    moved = {(each.benchmark, each.metric) for each in found.scores.scores if each.verdict == "suspected"}
    assert ("lambada_openai", "acc") in moved
    assert ("crows_pairs_french_gender", "likelihood_difference") in moved
    assert {each.capability: each.verdict for each in found.scores.capabilities}["reading"] == "suspected"


@pytest.mark.parametrize("size", ["1.4b", "6.9b"])
def test_where_an_intervention_moved_nothing_measurably_nobody_is_suspected(loaded: Database, size: str) -> None:
    names = [f"pythia-{size}-deduped-{variant}" for variant in ("baseline", "intervention")]
    with loaded.read() as session:
        found = compare_checkpoints(session, *(checkpoint_id(session, "pythia", name, 143_000) for name in names))
    assert not found.scores.fell
    assert found.suspects == ()
    assert found.data_changes.mix.total_variation == pytest.approx(10 / 143)


def test_two_models_that_differ_in_data_and_in_layers_show_both_and_declare_neither(loaded: Database) -> None:
    with loaded.read() as session:
        pair = [checkpoint_id(session, "pythia", name, 143_000) for name in ("pythia-160m-deduped", "pythia-70m")]
        found = compare_checkpoints(session, *pair)
    assert found.scores.fell
    named = {change for suspect in found.suspects for change in suspect.changes}
    assert {"data_version", "config.num_layers", "config.hidden_size"} <= named
    assert {suspect.strength for suspect in found.suspects} <= {"some", "weak"}
    assert all(suspect.tested is None for suspect in found.suspects)
    assert max(suspect.share for suspect in found.suspects) < 0.5


def test_an_intervention_has_the_tokens_of_both_stages(loaded: Database) -> None:
    with loaded.read() as session:
        found = read_provenance(
            session, checkpoint_id(session, "pythia", "pythia-1.4b-deduped-intervention-long", 143_000)
        )
    assert found.tokens_by_source == {
        "pile-deduped": 113_000 * TOKENS_A_STEP,
        "pile-deduped, pronouns swapped": 30_000 * TOKENS_A_STEP,
    }
    assert [stage.checkpoint.run.name for stage in found.stages] == [
        "pythia-1.4b-deduped-intervention-long",
        "pythia-1.4b-deduped",
    ]
