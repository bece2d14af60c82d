"""The audit trail says who changed what, in which project and to which subject."""

from sqlalchemy.orm import Session

from registry.audit import list_entries
from registry.checkpoints.commands import amend_checkpoint
from registry.ids import to_text
from tests.factories import make_checkpoint, make_project, make_run


def test_an_entry_names_its_project_and_the_id_of_what_was_changed(session: Session) -> None:
    one, other = (make_run(session, make_project(session, name)) for name in ("lab", "shop"))
    first, second = make_checkpoint(session, one), make_checkpoint(session, other)
    for checkpoint in (first, second):
        amend_checkpoint(session, checkpoint, {"notes": "kept"}, actor="ana")
        session.flush()
    newest, older = list_entries(session, limit=2)
    assert (newest.project, newest.subject) == ("shop", to_text(second))
    assert (older.project, older.subject) == ("lab", to_text(first))
    assert (older.actor, older.action) == ("ana", "checkpoint.amend")
    assert [each.project for each in list_entries(session, project_id=one.project_id)] == ["lab"]
    assert [each.project for each in list_entries(session, subject_id=second)] == ["shop"]


def test_an_amendment_of_nothing_leaves_no_entry(session: Session) -> None:
    checkpoint = make_checkpoint(session)
    amend_checkpoint(session, checkpoint, {}, actor="ana")
    session.flush()
    assert list_entries(session, subject_id=checkpoint) == []
