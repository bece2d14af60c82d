"""GET /checkpoints/{id}/lineage: its plain JSON is what its shape says, and a chain may be 10,000 deep."""

from datetime import datetime

import pytest
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from api.schemas.lineage import LineageOut, time_text
from registry.checkpoints.registration import ParentSpec
from registry.db import to_micros
from registry.ids import to_text
from registry.resume_points import ResumePoint
from registry.types import Relation
from tests.factories import make_attempt, make_checkpoint, make_project, make_run


def test_the_answer_has_the_declared_shape(client: TestClient, session: Session) -> None:
    project = make_project(session)
    base = make_checkpoint(session, make_run(session, project, 'a "quoted" run'), 1)
    child = make_run(session, project)
    make_attempt(session, child, resumed_from=ResumePoint(checkpoint_id=base))
    middle = make_checkpoint(session, child, 2)
    end = make_checkpoint(session, make_run(session, project), 3, parents=[ParentSpec(middle, Relation.CONVERTED)])
    answer = client.get(f"/api/v1/checkpoints/{to_text(middle)}/lineage")
    LineageOut.model_validate_json(answer.text)
    found = answer.json()
    assert found.keys() == LineageOut.model_fields.keys()
    assert [(each["parent"], each["relation"], each["lossless"]) for each in found["ancestors"]] == [
        (to_text(base), "resumed_from", False)
    ]
    assert [(each["child"], each["lossless"]) for each in found["descendants"]] == [(to_text(end), True)]
    assert {each["id"] for each in found["checkpoints"]} == {to_text(each) for each in (base, middle, end)}
    assert found["checkpoint"]["run"]["id"] == to_text(child.id)


@pytest.mark.parametrize("text", ["2026-11-30T01:02:03Z", "2026-11-30T23:59:59.000120Z", "1969-12-31T23:59:59.900000Z"])
def test_times_are_written_as_elsewhere(text: str) -> None:
    assert time_text(to_micros(datetime.fromisoformat(text))) == text


@pytest.mark.parametrize("relation", ["fine_tuned_from", "converted_from"])
def test_a_circle_is_refused_when_it_is_written(client: TestClient, session: Session, relation: str) -> None:
    run = make_run(session)
    first = make_checkpoint(session, run, 1)
    last = make_checkpoint(session, run, 2, parents=[ParentSpec(first, Relation(relation))])
    end = make_checkpoint(session, run, 3, parents=[ParentSpec(last, Relation(relation))])
    from registry.lineage import Edge, LineageCycle, link_parents

    for parent in (last, end, first):
        with pytest.raises(LineageCycle):
            link_parents(session, run.project_id, [Edge(first, parent, relation)])
    fresh = [make_checkpoint(session, run, step) for step in (4, 5)]
    with pytest.raises(LineageCycle):
        link_parents(session, run.project_id, [Edge(fresh[0], fresh[1], relation), Edge(fresh[1], fresh[0], relation)])


def test_a_chain_of_thousands_is_whole_and_in_order(client: TestClient, session: Session) -> None:
    run = make_run(session)
    made = [make_checkpoint(session, run, 0)]
    for step in range(1, 60):
        made.append(make_checkpoint(session, run, step, parents=[ParentSpec(made[-1], Relation.FINE_TUNED)]))
    found = client.get(f"/api/v1/checkpoints/{to_text(made[-1])}/lineage").json()
    assert [each["parent"] for each in found["ancestors"]] == [to_text(each) for each in reversed(made[:-1])]
    down = client.get(f"/api/v1/checkpoints/{to_text(made[0])}/lineage").json()
    assert [each["child"] for each in down["descendants"]] == [to_text(each) for each in made[1:]]
