"""Imports: each score to the checkpoint that it belongs to, whole files or none, nothing rescaled, nothing guessed."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry.checkpoints.errors import CheckpointNotFound
from registry.db import Database
from registry.evals.catalogue import catalogue
from registry.evals.imports import FileReport, NoTarget, NothingImported, Target, Upload, import_results
from registry.evals.read import list_scores
from registry.ids import to_text
from registry.models import Checkpoint, Score
from registry.types import CheckpointState, Direction
from tests.factories import make_attempt, make_checkpoint, make_project, make_run

RUN = Target(project="p", run="r")


def import_one(session: Session, content: Any, target: Target = RUN, name: str = "r.json") -> FileReport:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    (report,) = import_results(session, [Upload(name, data)], target)
    return report


def trainer_state(*entries: Mapping[str, Any]) -> dict[str, Any]:
    return {"global_step": 9000, "max_steps": 9000, "total_flos": 1.0, "log_history": list(entries)}


def table(*rows: Sequence[Any], columns: str = "step,benchmark,value") -> bytes:
    return "\n".join([columns, *(",".join(map(str, row)) for row in rows)]).encode()


def values(session: Session, report: FileReport) -> dict[tuple[int, str, str], float]:
    steps = {into.checkpoint_id: into.step for into in report.checkpoints}
    rows = session.scalars(select(Checkpoint).where(Checkpoint.id.in_(steps))).all()
    found = {}
    for row in rows:
        for score in list_scores(session, row.project_id, [row.id]):
            found[row.step, score.benchmark, score.metric] = score.value
    return found


TWO_STEPS = trainer_state(
    {"step": 1000, "eval_loss": 0.75, "eval_wer": 61.5, "eval_runtime": 3.0},
    {"step": 2000, "eval_loss": 0.5, "eval_wer": 48.0, "eval_runtime": 3.0},
)


def test_each_step_of_a_trainer_state_goes_to_its_own_checkpoint(session: Session) -> None:
    there = make_checkpoint(session, make_run(session, make_project(session, "p"), "r"), 1000)
    report = import_one(session, TWO_STEPS)
    assert (report.imported, report.recorded, report.checkpoint_id) == (4, 4, None)
    assert [(into.step, into.imported) for into in report.checkpoints] == [(1000, 2), (2000, 2)]
    assert report.checkpoints[0].checkpoint_id == there
    assert values(session, report)[2000, "eval", "wer"] == 48.0
    assert report.notes == ["1 checkpoint was not recorded yet and made, with pieces unknown, at step 2000"]
    again = import_one(session, TWO_STEPS)
    assert (again.imported, again.recorded, again.notes) == (4, 0, [])


def test_a_word_error_rate_is_better_when_lower() -> None:
    assert catalogue().for_metric("eval", "wer").direction is Direction.LOWER
    assert catalogue().for_metric("eval", "loss").direction is Direction.LOWER
    assert catalogue().for_metric("eval_g0", "accuracy").direction is Direction.HIGHER


def test_of_a_file_of_several_steps_only_the_asked_one_is_taken(session: Session) -> None:
    report = import_one(session, TWO_STEPS, Target(project="p", run="r", step=2000))
    assert [(into.step, into.imported) for into in report.checkpoints] == [(2000, 2)]
    assert [(item.item, item.reason) for item in report.skipped] == [("2 scores", "it is of step 1000, not of 2000")]
    named = import_one(session, TWO_STEPS, Target(checkpoint_id=report.checkpoint_id))
    assert (named.checkpoint_id, named.imported, named.recorded) == (report.checkpoint_id, 2, 0)
    with pytest.raises(NothingImported, match="it is of step 1000, not of 7; it is of step 2000, not of 7"):
        import_one(session, TWO_STEPS, Target(project="p", run="r", step=7))


def test_a_single_step_that_differs_from_the_asked_one_is_noted(session: Session) -> None:
    report = import_one(session, table((1000, "piqa", 0.5)), Target(project="p", run="r", step=7))
    assert [into.step for into in report.checkpoints] == [7]
    assert "its table says step 1000; recorded at step 7, as it was asked for" in report.notes


def test_rows_may_name_run_attempt_and_checkpoint(session: Session) -> None:
    project = make_project(session, "p")
    run = make_run(session, project, "a")
    make_attempt(session, run)
    first = make_checkpoint(session, run, 5)
    make_attempt(session, run, restart=True)
    second = make_checkpoint(session, run, 5)
    rows = [("a@1.5", "piqa", 0.1), ("a@5", "piqa", 0.2), (to_text(first), "arc_easy", 0.3), ("b@9", "piqa", 0.4)]
    report = import_one(session, table(*rows, columns="checkpoint,benchmark,value"), Target(project="p"))
    assert {into.checkpoint_id: into.imported for into in report.checkpoints if into.step == 5} == {first: 2, second: 1}
    assert [into.step for into in report.checkpoints] == [5, 5, 9]


def test_rows_of_something_else_are_left_out_with_the_reason(session: Session) -> None:
    elsewhere = make_checkpoint(session)
    make_project(session, "p")
    rows = [
        ("r@5", "piqa", 0.1),
        ("q/r@5", "piqa", 0.2),
        ("other@5", "piqa", 0.2),
        (to_text(elsewhere), "piqa", 0.3),
        ("", "piqa", 0.4),
    ]
    report = import_one(session, table(*rows, columns="checkpoint,benchmark,value"))
    assert report.imported == 1
    assert {item.reason for item in report.skipped} == {
        "it is of the project 'q', not of 'p'",
        "it is of the run 'other', not of 'r'",
        "it does not say at which step it was evaluated; give a step",
        f"project 'p' has no checkpoint {to_text(elsewhere)}",
    }


def test_a_file_of_several_models_needs_one_to_be_picked(session: Session) -> None:
    text = b"dataset,version,metric,mode,a-step1,b-step2\nceval,-,naive_average,gen,47.5,50\n"
    with pytest.raises(NothingImported, match=r"results of 2 models \(a-step1, b-step2\); say which one with `model`"):
        import_one(session, text)
    report = import_one(session, text, Target(project="p", run="r", model="b-step2"))
    assert values(session, report) == {(2, "ceval", "naive_average"): 50.0}
    assert [item.reason for item in report.skipped] == ["it is of the model 'a-step1', not of 'b-step2'"]


def test_opencompass_counts_to_a_hundred_by_the_table_and_not_by_its_values(session: Session) -> None:
    """0.9 under OpenCompass is 0.9 %, and 47.5 of a harness that counts shares is off the scale."""
    summary = b"dataset,version,metric,mode,m\nceval,-,accuracy,gen,47.5\ncmmlu,-,accuracy,ppl,0.9\n"
    report = import_one(session, summary, Target(project="p", run="r", step=1))
    assert not [note for note in report.notes if "scale" in note]
    row = catalogue().for_metric("ceval", "accuracy", "gen")
    assert (row.scale, row.chance) == ("percent", 25.0)
    assert catalogue().for_metric("ceval", "accuracy").scale == "fraction"
    assert catalogue().for_metric("mt_bench", "score", "gen").scale == "ten"


def test_a_value_off_its_scale_is_kept_and_noted(session: Session) -> None:
    rows = [(1, "piqa", 70.5), (1, "arc_easy", 0.5), (1, "jsquad", 58.4), (1, "mt_bench", 11), (1, "unheard_of", 400)]
    report = import_one(session, table(*rows))
    assert values(session, report)[1, "piqa", ""] == 70.5
    scale = [note for note in report.notes if "scale" in note]
    assert scale == [
        "piqa: 70.5 cannot be of its scale in the benchmark table (0 to 1); kept as it came, never ranked",
        "mt_bench: 11 cannot be of its scale in the benchmark table (0 to 10); kept as it came, never ranked",
    ]


def test_non_finite_values_are_kept_and_are_on_every_scale(session: Session) -> None:
    report = import_one(session, table((1, "piqa", "nan"), (1, "arc_easy", "-inf")))
    found = values(session, report)
    assert str(found[1, "piqa", ""]) == "nan"
    assert found[1, "arc_easy", ""] == float("-inf")
    assert not [note for note in report.notes if "scale" in note]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("2026-11-01T12:00:00Z", datetime(2026, 11, 1, 12, tzinfo=UTC)),
        ("2026-11-01T12:00:00+02:00", datetime(2026, 11, 1, 10, tzinfo=UTC)),
        ("2026-11-01T12:00:00", None),
        ("2026-11-01", None),
        ("yesterday", None),
        ("0001-01-01T00:00:00+14:00", None),
    ],
)
def test_a_time_without_zone_is_left_unknown_and_noted(session: Session, said: str, kept: datetime | None) -> None:
    report = import_one(session, table((1, "piqa", 0.5, said), columns="step,benchmark,value,evaluated_at"))
    (found,) = session.scalars(select(Score))
    assert found.evaluated_at == kept
    assert any("names no zone or is none" in note for note in report.notes) == (kept is None)


def test_a_file_that_cannot_be_written_leaves_nothing_and_the_others_stay(session: Session) -> None:
    run = make_run(session, make_project(session, "p"), "r")
    deleted = make_checkpoint(session, run, 5)
    session.get_one(Checkpoint, deleted).state = CheckpointState.DELETED
    session.flush()
    uploads = [
        Upload("good.csv", table((6, "piqa", 0.5))),
        Upload("half.csv", table((7, "piqa", 0.5), (5, "piqa", 0.5))),
        Upload("also-good.csv", table((8, "piqa", 0.5))),
    ]
    reports = import_results(session, uploads, RUN)
    assert [(report.file, report.imported) for report in reports] == [
        ("good.csv", 1),
        ("half.csv", 0),
        ("also-good.csv", 1),
    ]
    assert "was deleted" in reports[1].skipped[0].reason
    assert session.scalar(select(func.count()).select_from(Score)) == 2
    steps = session.scalars(select(Checkpoint.step).where(Checkpoint.run_id == run.id).order_by(Checkpoint.step)).all()
    assert steps == [5, 6, 8]


def test_a_helm_run_is_read_from_its_files_together(session: Session) -> None:
    spec = {
        "name": "boolq:model=m",
        "scenario_spec": {},
        "adapter_spec": {"model": "m", "max_train_instances": 5},
        "groups": ["boolq"],
    }
    stats = [{"name": {"name": "exact_match", "split": "test"}, "count": 1, "mean": 0.5}]
    uploads = [
        Upload("out/boolq/stats.json", json.dumps(stats).encode()),
        Upload("other.csv", table((1, "piqa", 0.5))),
        Upload("out/boolq/run_spec.json", json.dumps(spec).encode()),
    ]
    reports = import_results(session, uploads, Target(project="p", run="r", step=1))
    assert [(report.file, report.format, report.imported) for report in reports] == [
        ("out/boolq/stats.json", "helm", 1),
        ("other.csv", "plain-table", 1),
        ("out/boolq/run_spec.json", "helm", 0),
    ]
    assert reports[2].notes == ("read together with out/boolq/stats.json",)
    broken = [uploads[0], Upload("out/boolq/run_spec.json", b"{}")]
    with pytest.raises(NothingImported) as refusal:
        import_results(session, broken, RUN)
    assert [error.pointer for error in refusal.value.errors] == ["/file/0", "/file/1"]
    assert "belongs to out/boolq/stats.json, which was refused" in refusal.value.errors[1].message


def test_without_any_target_nothing_is_read(session: Session) -> None:
    for target in (Target(), Target(run="r"), Target(step=5)):
        with pytest.raises(NoTarget):
            import_one(session, TWO_STEPS, target)
    with pytest.raises(NothingImported, match="does not say which run it is of"):
        import_one(session, TWO_STEPS, Target(project="p"))
    with pytest.raises(CheckpointNotFound):
        import_one(session, TWO_STEPS, Target(checkpoint_id=5))
    assert session.scalar(select(func.count()).select_from(Checkpoint)) == 0


def test_what_an_import_wrote_is_there_after_its_commit(committed_database: Database) -> None:
    """A real commit, with a file in the middle that is taken back to its start."""
    with committed_database.write() as session:
        deleted = make_checkpoint(session, make_run(session, make_project(session, "p"), "r"), 5)
        session.get_one(Checkpoint, deleted).state = CheckpointState.DELETED
    rows = ([(1, "piqa", 0.5)], [(3, "piqa", 0.5), (5, "piqa", 0.5)], [(2, "piqa", 0.25)])
    uploads = [Upload(f"{at}.csv", table(*each)) for at, each in enumerate(rows)]
    with committed_database.write() as session:
        reports = import_results(session, uploads, RUN)
    assert [report.imported for report in reports] == [1, 0, 1]
    with committed_database.read() as session:
        assert session.scalars(select(Checkpoint.step).order_by(Checkpoint.step)).all() == [1, 2, 5]
        assert session.scalar(select(func.count()).select_from(Score)) == 2
