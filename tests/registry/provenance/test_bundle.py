"""The chain behind a checkpoint: over attempts, runs, parents; with what is not known said."""

import pytest
from sqlalchemy.orm import Session

from registry.attempts import AttemptSpec, open_attempt
from registry.checkpoints.errors import CheckpointNotFound
from registry.checkpoints.registration import ParentSpec
from registry.provenance.bundle import StepRange, read_provenance
from registry.provenance.model_card import to_markdown
from registry.resume_points import ResumePoint
from registry.runs import RunSpec, start_run
from registry.snapshots import CodeSpec, DataSpec, SourceSpec
from registry.types import Relation
from tests.factories import make_attempt, make_checkpoint, make_project, make_run


def data(name: str, **weights: float) -> DataSpec:
    return DataSpec(name, {source: SourceSpec(weight) for source, weight in weights.items()})


def test_tokens_of_every_stage_add_up_by_source(session: Session) -> None:
    run = make_run(session)
    first = make_checkpoint(session, run, 100, data_version=data("v1", web=0.8, math=0.2), tokens_seen=1000)
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=first))
    second = make_checkpoint(session, run, 300, data_version=data("v2", web=0.5, code=0.5), tokens_seen=3000)
    found = read_provenance(session, second)
    assert found.tokens_by_source == {"web": 1800, "code": 1000, "math": 200}
    assert (found.tokens_total, found.unknown) == (3000, ())
    assert [(each.checkpoint.id, each.first_step, each.tokens) for each in found.stages] == [
        (second, 101, 2000),
        (first, 1, 1000),
    ]


def test_steps_repeated_after_a_rollback_and_skipped_data_are_named(session: Session) -> None:
    run = make_run(session)
    good = make_checkpoint(session, run, 1000)
    make_checkpoint(session, run, 1500)
    open_attempt(session, run.id, AttemptSpec(resumed_from=ResumePoint(checkpoint_id=good), skip=((1200, 1300),)))
    end = make_checkpoint(session, run, 2000)
    found = read_provenance(session, end)
    assert found.stages[0].repeated == (StepRange(1001, 1500, 1),)
    assert found.stages[0].skipped == (StepRange(1200, 1300, 2),)
    text = to_markdown(found)
    assert "Repeated after a rollback" in text
    assert "steps 1,001 – 1,500 (attempt 1)" in text
    assert "steps 1,200 – 1,300 (attempt 2)" in text


def test_a_fine_tuned_child_counts_from_its_own_start_and_says_so(session: Session) -> None:
    project = make_project(session)
    base = make_checkpoint(session, make_run(session, project), 9, data_version=data("v1", web=1.0), tokens_seen=1000)
    child = make_checkpoint(
        session,
        make_run(session, project),
        5,
        data_version=data("sft", chat=1.0),
        tokens_seen=50,
        parents=[ParentSpec(base, Relation.FINE_TUNED)],
    )
    found = read_provenance(session, child)
    assert (found.tokens_by_source, found.tokens_total) == ({"web": 1000, "chat": 50}, 1050)
    assert any("assumed" in each for each in found.unknown)


def test_a_merge_names_its_parents_and_adds_no_tokens_of_its_own(session: Session) -> None:
    project = make_project(session)
    parents = [
        make_checkpoint(session, make_run(session, project, name), 9, data_version=data(name, web=1.0), tokens_seen=100)
        for name in ("left", "right")
    ]
    merged = make_checkpoint(
        session,
        make_run(session, project),
        1,
        tokens_seen=200,
        parents=[ParentSpec(each, Relation.MERGED) for each in parents],
    )
    found = read_provenance(session, merged)
    assert {each.checkpoint.run.name for each in found.stages[1:]} == {"left", "right"}
    assert (found.stages[0].came_from, found.stages[0].tokens) == ("merged_from", 0)
    assert {edge.parent_id for edge in found.parents} == set(parents)


def test_a_converted_copy_has_the_history_of_its_source(session: Session) -> None:
    project = make_project(session)
    source = make_checkpoint(session, make_run(session, project), 9, data_version=data("v1", web=1.0), tokens_seen=70)
    copy = make_checkpoint(
        session, make_run(session, project), 9, tokens_seen=70, parents=[ParentSpec(source, Relation.CONVERTED)]
    )
    assert read_provenance(session, copy).tokens_by_source == {"web": 70}


def test_dirty_trees_are_named(session: Session) -> None:
    run = make_run(session)
    first = make_checkpoint(session, run, 1, code=CodeSpec("a" * 40, True, "sha256:1"))
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=first))
    second = make_checkpoint(session, run, 2, code=CodeSpec("b" * 40, False))
    found = read_provenance(session, second)
    assert [each.id for each in found.dirty] == [first]
    assert "dirty (sha256:1)" in to_markdown(found)


def test_what_is_not_recorded_is_said(session: Session) -> None:
    run = make_run(session)
    make_attempt(session, run, resumed_from=ResumePoint(step=500, run="elsewhere"))
    end = make_checkpoint(session, run, 600)
    found = read_provenance(session, end)
    assert found.tokens_by_source == {}
    assert {each.split(" ")[0] for each in found.unknown} == {"tokens", "what"}
    assert "not recorded" in to_markdown(found)
    with pytest.raises(CheckpointNotFound):
        read_provenance(session, 1)


def test_names_of_others_are_no_markup(session: Session) -> None:
    run = make_run(session, name="<img src=x> | [click](http://x) `rm`")
    text = to_markdown(read_provenance(session, make_checkpoint(session, run, 1)))
    assert "<img" not in text.replace("\\<img", "")
    assert "\\[click\\]" in text
    assert " | [" not in text


def test_a_copy_that_does_not_say_what_it_has_seen_has_seen_what_its_source_saw(session: Session) -> None:
    project = make_project(session)
    source = make_checkpoint(session, make_run(session, project), 9, data_version=data("v1", web=1.0), tokens_seen=70)
    copy = make_checkpoint(session, make_run(session, project), 9, parents=[ParentSpec(source, Relation.CONVERTED)])
    quantised = make_checkpoint(session, make_run(session, project), 9, parents=[ParentSpec(copy, Relation.QUANTISED)])
    found = read_provenance(session, quantised)
    assert (found.tokens_total, found.tokens_by_source) == (70, {"web": 70})


def test_what_trained_on_after_a_copy_was_loaded_is_no_copy(session: Session) -> None:
    project = make_project(session)
    source = make_checkpoint(session, make_run(session, project), 9, data_version=data("v1", web=1.0), tokens_seen=70)
    run = make_run(session, project)
    make_checkpoint(session, run, 1, parents=[ParentSpec(source, Relation.CONVERTED)])
    later = make_checkpoint(session, run, 5, data_version=data("v2", code=1.0), tokens_seen=100)
    found = read_provenance(session, later)
    assert (found.tokens_total, found.tokens_by_source) == (100, {"web": 70, "code": 30})


def test_an_attempt_that_changes_its_data_counts_each_version_until_its_last_save(session: Session) -> None:
    run = make_run(session)
    v1, v2 = data("v1", web=1.0), data("v2", web=0.5, math=0.5)
    first = make_checkpoint(session, run, 100, data_version=v1, tokens_seen=1000)
    make_checkpoint(session, run, 200, data_version=v2, tokens_seen=2000)
    make_checkpoint(session, run, 250, tokens_seen=2500)
    end = make_checkpoint(session, run, 300, data_version=v2, tokens_seen=3000)
    make_checkpoint(session, run, 400, data_version=data("v3", code=1.0), tokens_seen=4000)
    found = read_provenance(session, end)
    assert found.tokens_by_source == {"web": 2000, "math": 1000}
    assert [(each.checkpoint.id, each.came_from, each.first_step, each.tokens) for each in found.stages] == [
        (end, "continued", 101, 2000),
        (first, None, 1, 1000),
    ]


def test_data_that_would_be_skipped_after_the_attempt_was_left_was_not_skipped(session: Session) -> None:
    run = make_run(session)
    good = make_checkpoint(session, run, 100)
    open_attempt(
        session, run.id, AttemptSpec(resumed_from=ResumePoint(checkpoint_id=good), skip=((101, 150), (600, 700)))
    )
    left = make_checkpoint(session, run, 200)
    open_attempt(session, run.id, AttemptSpec(resumed_from=ResumePoint(checkpoint_id=left)))
    found = read_provenance(session, make_checkpoint(session, run, 800))
    assert [each.skipped for each in found.stages] == [(), (StepRange(101, 150, 2),), ()]


def test_a_chain_of_hundreds_of_stages_is_counted_to_its_beginning(session: Session) -> None:
    project = make_project(session)
    last = make_checkpoint(session, make_run(session, project), 1, data_version=data("v1", code=1.0), tokens_seen=10)
    for count in range(2, 211):
        parents = [ParentSpec(last, Relation.RESUMED)]
        last = make_checkpoint(
            session,
            make_run(session, project),
            count,
            data_version=data("v2", web=1.0),
            tokens_seen=10 * count,
            parents=parents,
        )
    found = read_provenance(session, last)
    assert (len(found.stages), found.unknown) == (210, ())
    assert found.tokens_by_source == {"web": 2090, "code": 10}


def test_what_two_parents_of_a_merge_share_counts_once(session: Session) -> None:
    project = make_project(session)
    run = make_run(session, project)
    early = make_checkpoint(session, run, 50, data_version=data("v1", web=1.0), tokens_seen=500)
    late = make_checkpoint(session, run, 100, data_version=data("v1", web=1.0), tokens_seen=1000)
    merged_run = make_run(session, project)
    parents = [ParentSpec(each, Relation.MERGED) for each in (late, early)]
    merged = make_checkpoint(session, merged_run, 0, parents=parents)
    found = read_provenance(session, merged)
    assert (found.tokens_by_source, found.tokens_total) == ({"web": 1000}, None)
    trained_on = make_checkpoint(session, merged_run, 5, data_version=data("v2", code=1.0), tokens_seen=30)
    found = read_provenance(session, trained_on)
    assert found.tokens_by_source == {"web": 1000, "code": 30}
    assert [each.came_from for each in found.stages] == ["continued", "merged_from", None, "continued"]
    assert any("taken to count from the merge (assumed)" in each for each in found.unknown)


def test_a_long_command_stands_whole_in_the_model_card_and_once(session: Session) -> None:
    run = make_run(session)
    command = "torchrun train.py " + " ".join(f"--option{each} value" for each in range(100)) + " --last"
    open_attempt(session, run.id, AttemptSpec(restart=True, command=command))
    make_checkpoint(session, run, 1, data_version=data("v1", web=1.0))
    text = to_markdown(read_provenance(session, make_checkpoint(session, run, 2, data_version=data("v2", web=1.0))))
    assert text.count("--last") == 1


def test_a_stage_names_the_config_that_its_run_was_given_later(session: Session) -> None:
    project = make_project(session)
    run = make_run(session, project)
    first = make_checkpoint(session, run, 1)
    assert read_provenance(session, first).stages[0].config_digest is None
    start_run(session, project.id, RunSpec(run.name, config={"lr": 0.1}))
    assert read_provenance(session, first).stages[0].config_digest is not None
