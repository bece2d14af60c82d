"""How a run and a checkpoint are named on the command line."""

from urllib.parse import parse_qs, urlsplit

import pytest

from tests.client.cli.answers import CHECKPOINT
from tests.client.conftest import Cli, FaultServer, Reply

pytestmark = pytest.mark.usefixtures("scripted")


def test_a_checkpoint_is_named_by_project_run_and_step(cli: Cli, faults: FaultServer) -> None:
    older = {**CHECKPOINT, "id": "0c0", "attempt": 1}
    light = {**CHECKPOINT, "id": "0c9", "kind": "light"}
    page = {"items": [{"checkpoint": each} for each in (light, CHECKPOINT, older)], "next_cursor": None}
    faults.replies = [Reply(body=page), Reply(body=page), Reply(body={"scores": []})]
    assert cli("compare", "llm/7b-a@41200", "llm/7b-a@1.41200")[0] == 0
    assert "attempt+%3D+1" in faults.seen[1].path
    assert faults.seen[2].json == {"baseline": "0c1", "candidate": "0c1"}


def test_a_run_may_be_called_anything(cli: Cli, faults: FaultServer) -> None:
    faults.replies = [
        Reply(body={"items": [{"checkpoint": CHECKPOINT}], "next_cursor": None}),
        Reply(body={"scores": []}),
    ]
    assert cli("compare", "llm/it's a/b@c@41200", "0c1")[0] == 0
    asked = parse_qs(urlsplit(faults.seen[0].path).query)["filter"][0]
    assert asked == "project = 'llm' and run.name = 'it''s a/b@c' and step = 41200"


@pytest.mark.parametrize("text", ["llm/a b", "llm/7b-a@", "llm/7b-a@x", "a/b@c", "llm/@1", "x y"])
def test_what_names_no_checkpoint_is_a_usage_error(cli: Cli, faults: FaultServer, text: str) -> None:
    code, _, err = cli("compare", text, "0c1")
    assert code == 2
    assert "does not name a checkpoint" in err
    assert "project/run@step" in err
    assert "project/alias" in err
    assert faults.seen == []


def test_a_checkpoint_is_named_by_an_alias(cli: Cli, faults: FaultServer) -> None:
    alias = {"checkpoint": CHECKPOINT, "project": "llm", "name": "production"}
    faults.replies = [Reply(body=alias), Reply(body={"scores": []})]
    assert cli("compare", "llm/production", "0c2")[0] == 0
    assert faults.seen[0].path == "/api/v1/aliases/llm/production"
    assert faults.seen[1].json == {"baseline": "0c1", "candidate": "0c2"}
