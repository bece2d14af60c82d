"""The forms in which a person names a checkpoint or a run, as on the command line."""

import pytest
from sqlalchemy.orm import Session

from registry.aliases import AliasNotFound, move_alias
from registry.aliases.named import find_named_checkpoint, find_named_run
from registry.checkpoints.errors import CheckpointNotFound
from registry.errors import Forbidden
from registry.ids import to_text
from registry.projects import ProjectNotFound
from registry.runs import RunNotFound
from registry.tokens import Caller
from registry.types import Scope
from tests.factories import make_attempt, make_checkpoint, make_project, make_run

ANN = Caller(1, "ann", Scope.READ, None)


def test_a_checkpoint_is_named_by_id_step_attempt_and_alias(session: Session) -> None:
    project = make_project(session, "llm")
    run = make_run(session, project, "a/7b@x")
    first = make_checkpoint(session, run, 100, kind="light")
    archive = make_checkpoint(session, run, 100, kind="archive")
    move_alias(session, project.id, "production", first, actor="ann")
    named = {to_text(first): first, "llm/production": first, "llm/a/7b@x@100": archive, "llm/a/7b@x@1.100": archive}
    assert {text: find_named_checkpoint(session, ANN, text) for text in named} == named
    make_attempt(session, run, restart=True)
    newer = make_checkpoint(session, run, 100)
    assert find_named_checkpoint(session, ANN, "llm/a/7b@x@100") == newer
    assert find_named_checkpoint(session, ANN, "llm/a/7b@x@1.100") == archive


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("llm/7b@200", CheckpointNotFound, "llm/7b has no checkpoint at 200"),
        ("llm/7b@2.100", CheckpointNotFound, "no checkpoint at 2.100"),
        ("llm/7c@100", RunNotFound, "has no run '7c'"),
        ("llm/7b", AliasNotFound, "project/run@step"),
        ("other/7b@100", ProjectNotFound, "no project 'other'"),
        ("7b", CheckpointNotFound, "does not name a checkpoint"),
        (to_text(1), CheckpointNotFound, "There is no checkpoint"),
        (f"llm/7b@{9 * 10**18 + 4 * 10**17}", CheckpointNotFound, "no checkpoint at"),
    ],
)
def test_what_names_none_says_what_was_expected(
    session: Session, text: str, error: type[Exception], words: str
) -> None:
    make_checkpoint(session, make_run(session, make_project(session, "llm"), "7b"), 100)
    with pytest.raises(error, match=words):
        find_named_checkpoint(session, ANN, text)


def test_a_run_is_named_by_id_or_by_its_project_and_name(session: Session) -> None:
    run = make_run(session, make_project(session, "llm"), "a/7b")
    assert find_named_run(session, ANN, to_text(run.id)) == find_named_run(session, ANN, "llm/a/7b") == run.id
    with pytest.raises(RunNotFound, match="by its id or as project/run"):
        find_named_run(session, ANN, "7b")


def test_a_token_of_another_project_finds_none_by_any_name(session: Session) -> None:
    project = make_project(session, "llm")
    checkpoint = make_checkpoint(session, make_run(session, project, "7b"), 100)
    move_alias(session, project.id, "production", checkpoint, actor="ann")
    bound = Caller(1, "bob", Scope.READ, frozenset({project.id + 1}))
    for text in (to_text(checkpoint), "llm/7b@100", "llm/production"):
        with pytest.raises(Forbidden):
            find_named_checkpoint(session, bound, text)
    with pytest.raises(Forbidden):
        find_named_run(session, bound, "llm/7b")
