"""What stands in a registry after the demonstration was loaded."""

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from demo.load import load_demo
from demo.reading import read_table
from registry.aliases import get_alias, move_alias
from registry.checkpoints.detail import CheckpointDetail, get_checkpoint
from registry.db import Database
from registry.evals.read import list_scores
from registry.lineage import edges_around
from registry.models import Attempt, Checkpoint, CurrentScore, Project, Replica, Run, Score
from registry.projects import find_project
from registry.provenance.compare import compare_checkpoints
from registry.search.query import search_checkpoints
from registry.types import PieceName, Presence
from tests.demo.figures import FIGURES

SAME_RECIPE = (
    "{}-open_lm_7b_swiglutorch-warm=5000-lr=0p002-wd=0p05-cd=3e-05-bs=2048-mult=1-seed=124-tokens=137788211200"
)
# A reader's tasks: what a model was asked in one of two ways counts once.
MATH = (
    *(("gsm8k_cot", "gsm8k"), ("aqua_cot", "aqua"), ("agi_eval_sat_math_cot", "agi_eval_sat_math")),
    *(("svamp_cot", "svamp"), ("math_qa",), ("bigbench_elementary_math_qa",)),
    *(("simple_arithmetic_withspaces",), ("simple_arithmetic_nospaces",)),
)


def checkpoint_id(session: Session, project: str, run: str, step: int) -> int:
    query = select(Checkpoint.id).join(Run, Run.id == Checkpoint.run_id).join(Project, Project.id == Run.project_id)
    return session.scalars(query.where(Project.name == project, Run.name == run, Checkpoint.step == step)).one()


def checkpoint(session: Session, project: str, run: str, step: int) -> CheckpointDetail:
    return get_checkpoint(session, checkpoint_id(session, project, run, step))


def count(session: Session, table: type) -> int:
    return session.scalar(select(func.count()).select_from(table)) or 0


def counts(session: Session) -> list[int]:
    return [count(session, table) for table in (Run, Attempt, Checkpoint, Replica, Score, CurrentScore)]


def test_all_is_there_once_and_a_second_start_adds_nothing(loaded: Database):
    expected = [106, 106, 469, 469, 66_314, 66_314]
    with loaded.read() as session:
        assert counts(session) == expected
    assert load_demo(loaded) == 0
    with loaded.read() as session:
        assert counts(session) == expected


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: f"{figure[1][:30]}-{figure[2]}-{figure[3]}")
def test_twenty_figures_come_back_as_published_to_the_digit(loaded: Database, figure):
    project, run, step, task, metric, value, stderr = figure
    with loaded.read() as session:
        target = checkpoint_id(session, project, run, step)
        rows = list_scores(session, find_project(session, project).id, [target])
    (found,) = [row for row in rows if (row.benchmark, row.metric) == (task, metric)]
    assert repr(found.value) == value
    assert ("" if found.stderr is None else repr(found.stderr)) == stderr


def test_an_alias_that_somebody_moved_stays_where_it_is(loaded: Database):
    with loaded.write() as session:
        project_id = find_project(session, "pythia").id
        before = get_alias(session, project_id, "candidate").checkpoint_id
        elsewhere = checkpoint_id(session, "pythia", "pythia-70m", 0)
        move_alias(session, project_id, "candidate", elsewhere, actor="somebody")
    load_demo(loaded)
    with loaded.write() as session:
        assert get_alias(session, project_id, "candidate").checkpoint_id == elsewhere
        move_alias(session, project_id, "candidate", before, actor="somebody")


def test_production_is_the_end_of_a_training_run(loaded: Database):
    with loaded.read() as session:
        assert checkpoint(session, "pythia", "pythia-1.4b-deduped", 143_000).aliases == ["production"]


def test_a_checkpoint_tells_what_is_published_and_leaves_the_rest_unknown(loaded: Database):
    with loaded.read() as session:
        found = checkpoint(session, "pythia", "pythia-6.9b-deduped", 143_000)
    assert found.config is not None
    assert found.config["optimizer"]["params"]["lr"] == 0.00012
    assert found.layout is not None
    assert (found.layout.world_size, found.layout.tp, found.layout.dp) == (128, 2, 64)
    assert found.code is not None
    assert (found.code.remote, found.code.commit) == ("https://github.com/EleutherAI/pythia", None)
    assert [replica.uri for replica in found.replicas] == ["hf://EleutherAI/pythia-6.9b-deduped@step143000"]
    assert {name: piece.presence for name, piece in found.pieces.items()} == {
        PieceName.WEIGHTS: Presence.PRESENT,
        PieceName.OPTIMIZER: Presence.UNKNOWN,
        PieceName.DATA_POSITION: Presence.UNKNOWN,
        PieceName.RANDOM_STATE: Presence.UNKNOWN,
    }
    assert (found.saved_at_assumed, found.loss) == (True, None)


def test_a_dclm_model_has_its_data_set_and_trainer(loaded: Database):
    with loaded.read() as session:
        found = checkpoint(session, "dclm", "wiseft_a80_mix3_long_47_mix3_34", 64_388)
    assert found.data_version is not None
    assert sorted(found.data_version.mix) == [
        "ablate_t0.037555_fasttext_oh_eli5_200k_rw_v2_cc_v3_f0.15_resiliparse",
        "math_datasets",
        "starcoder_v2_smol_extras",
    ]
    assert (found.tokens_seen, found.environment) == (270_064_893_952, {"open_lm": "0.0.34"})
    assert (found.saved_at_assumed, f"{found.checkpoint.saved_at:%Y-%m-%d}") == (False, "2024-06-06")


def test_no_attempt_waits_for_a_heartbeat(loaded: Database):
    with loaded.read() as session:
        assert set(session.scalars(select(Attempt.state))) == {"finished"}


def test_an_intervention_comes_from_the_checkpoint_where_it_branched_off(loaded: Database):
    with loaded.read() as session:
        parent = checkpoint_id(session, "pythia", "pythia-1.4b-deduped", 113_000)
        child = checkpoint(session, "pythia", "pythia-1.4b-deduped-intervention-long", 114_000)
        up, _ = edges_around(session, child.project_id, child.checkpoint.id)
        assert parent in {edge.parent_id for edge in up}
        assert not checkpoint(session, "pythia", "pythia-1.4b-deduped", 123_000).superseded


def test_strong_math_names_models_that_a_reader_of_the_tables_would_name(loaded: Database):
    ranked = models_by_math()
    with loaded.read() as session:
        answer = search_checkpoints(session, project_ids=None, query="strong math", project="dclm", limit=50)
    named = {result.checkpoint.run.name for result in answer.results}
    assert answer.strict
    assert set(ranked[:3]) <= named
    assert len(named) >= 5
    assert named <= set(ranked[: len(ranked) // 5])
    assert not named & set(ranked[-5:])


def models_by_math() -> list[str]:
    """Names of the DCLM models, the best mean over the math tasks first."""
    names = {row["uuid"]: row["name"] for row in read_table("dclm/models")}
    means = {}
    for row in read_table("dclm/scores"):
        values = [float(found[0]) for ways in MATH if (found := [row[task] for task in ways if row[task]])]
        means[names[row["uuid"]]] = sum(values) / len(values)
    return sorted(means, key=lambda name: -means[name])


def test_same_recipe_and_other_data_is_said_by_a_comparison(loaded: Database):
    with loaded.read() as session:
        pair = [
            checkpoint_id(session, "dclm", SAME_RECIPE.format(name), 32_851)
            for name in ("rpj_original", "dolma_v1_no_resample")
        ]
        found = compare_checkpoints(session, *pair)
    assert found.config_changes == ()
    assert (found.data_changes.baseline, found.data_changes.candidate) == ("rpj_original", "dolma_v1_no_resample")
    assert len(found.scores.scores) >= 50


def test_deduplication_is_the_one_change_between_two_published_models(loaded: Database):
    with loaded.read() as session:
        pair = [checkpoint_id(session, "pythia", name, 143_000) for name in ("pythia-160m", "pythia-160m-deduped")]
        found = compare_checkpoints(session, *pair)
    assert {change.path.split(".")[0] for change in found.config_changes} == {
        *("train_data_paths", "valid_data_paths", "test_data_paths"),
    }
    assert {change.not_recorded_on for change in found.config_changes} == {None}
    mix = found.data_changes.mix  # of either Pile only the name is published
    assert (mix.total_variation, mix.why) == (
        None,
        "another data version (pile → pile-deduped); their mixes are not recorded",
    )


@pytest.mark.parametrize("size", ["70m", "1.4b", "6.9b"])
def test_an_intervention_has_seen_the_data_of_its_parent_up_to_where_it_branched_off(loaded: Database, size: str):
    names = [f"pythia-{size}-deduped-{variant}" for variant in ("baseline", "intervention")]
    with loaded.read() as session:
        pair = [checkpoint_id(session, "pythia", name, 143_000) for name in names]
        seen = [get_checkpoint(session, each).tokens_seen for each in pair]
        found = compare_checkpoints(session, *pair)
        back = compare_checkpoints(session, *reversed(pair)).data_changes
    assert seen == [143_000 * 2_097_152] * 2
    sources = {each.source: each for each in found.data_changes.mix.sources}
    assert {name: (each.old_tokens, each.new_tokens) for name, each in sources.items()} == {
        "pile-deduped": (143_000 * 2_097_152, 133_000 * 2_097_152),
        "pile-deduped, pronouns swapped": (0, 10_000 * 2_097_152),
    }
    assert sum(each.new_tokens or 0 for each in sources.values()) == seen[1]
    assert found.data_changes.mix.total_variation == pytest.approx(10 / 143)
    assert found.data_changes.by_lineage
    assert back.mix.total_variation == pytest.approx(10 / 143)


def test_a_merge_that_recorded_no_trainer_options_removed_none(loaded: Database):
    with loaded.read() as session:
        parts = [
            checkpoint_id(session, "dclm", SAME_RECIPE.format("rpj_original"), 32_851),
            checkpoint_id(session, "dclm", "wiseft_a80_mix3_long_47_mix3_34", 64_388),
        ]
        found = compare_checkpoints(session, *parts)
    options = [each for each in found.config_changes if each.path.startswith("open_lm.")]
    assert len(options) > 5
    assert {each.not_recorded_on for each in options} == {"candidate"}
    assert f"the candidate recorded nothing of open_lm ({len(options)} values)" == found.config_why
    assert not any("open_lm." in change for suspect in found.suspects for change in suspect.changes)
