"""GET /checkpoints/{id}/lineage: its plain JSON is what its shape says, and a chain may be 10,000 deep."""

import json
import random
from datetime import datetime

import pytest
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from api.schemas.lineage import LineageOut, time_texts
from registry import lineage
from registry.checkpoints.registration import ParentSpec
from registry.db import to_micros
from registry.ids import to_text
from registry.models import Attempt, Checkpoint
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
    assert time_texts([to_micros(datetime.fromisoformat(text))]) == [text]


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


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("bulk_from", [{}, {1: 3, 2: 1_000}])
def test_any_family_is_found_whole_each_end_described(
    client: TestClient, session: Session, seed: int, bulk_from: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against a walk over what was recorded, edge by edge, level by level or with all edges at once."""
    monkeypatch.setattr(lineage, "BULK_FROM", bulk_from)
    chance = random.Random(seed)
    project = make_project(session)
    runs = [make_run(session, project) for _ in range(3)]
    made: list[int] = []
    edges: set[tuple[int, int, str]] = set()
    for step in range(25):
        run = chance.choice(runs)
        loaded = chance.choice(made) if made and chance.random() < 0.2 else None
        if loaded is not None:
            make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=loaded))
        parents = {each: chance.choice(list(Relation)) for each in chance.sample(made, min(len(made), step % 3))}
        given = [ParentSpec(each, relation) for each, relation in parents.items()]
        number = make_checkpoint(session, run, step, parents=given, kind=chance.choice(["light", "archive"]))
        made.append(number)
        edges |= {(number, each, str(relation)) for each, relation in parents.items()}
        attempt = session.get_one(Attempt, session.get_one(Checkpoint, number).attempt_id)
        if attempt.resumed_from_checkpoint_id is not None:
            edges.add((number, attempt.resumed_from_checkpoint_id, "resumed_from"))
    for start in chance.sample(made, 6):
        text = client.get(f"/api/v1/checkpoints/{to_text(start)}/lineage").text
        found = LineageOut.model_validate_json(text)
        assert json.loads(found.model_dump_json()) == json.loads(text)
        up = {(each.child, each.parent, each.relation) for each in found.ancestors}
        down = {(each.child, each.parent, each.relation) for each in found.descendants}
        assert (up, down) == (reached(edges, start, 0), reached(edges, start, 1))
        assert [each.id for each in found.checkpoints] == sorted({start, *(end for e in up | down for end in e[:2])})
        for each in (found.checkpoint, *found.checkpoints):
            row = session.get_one(Checkpoint, each.id)
            told = (each.run.id, each.attempt, each.step, each.kind, each.saved_at, each.project)
            assert told == (row.run_id, row.attempt_number, row.step, row.kind, row.saved_at, project.name)


def reached(edges: set[tuple[int, int, str]], start: int, here: int) -> set[tuple[int, int, str]]:
    """The edges on all ways from a checkpoint. `here`: the place of the end that a way comes from."""
    seen, found = {start}, set[tuple[int, int, str]]()
    while more := {edge for edge in edges if edge[here] in seen} - found:
        found |= more
        seen |= {edge[1 - here] for edge in more}
    return found


def test_a_parent_in_another_project_is_refused_with_the_reason_and_what_to_do(
    client: TestClient, session: Session
) -> None:
    elsewhere = make_checkpoint(session, make_run(session, make_project(session)), 1)
    run = make_run(session, make_project(session))
    parents = [{"checkpoint_id": to_text(elsewhere), "relation": "fine_tuned_from"}]
    refused = client.post(f"/api/v1/runs/{to_text(run.id)}/checkpoints", json={"step": 1, "parents": parents})
    assert (refused.status_code, refused.json()["type"]) == (422, "/problems/parent-unknown")
    assert refused.json()["errors"][0]["pointer"] == "/parents/0/checkpoint_id"
    assert "Lineage stays within one project" in refused.json()["detail"]
    assert "recorded here as well" in refused.json()["detail"]
