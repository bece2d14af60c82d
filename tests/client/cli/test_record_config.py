"""`cairn record --config`: any kind of config, sent with its numbers as they are written."""

from pathlib import Path

import pytest

from tests.client.conftest import Cli, FaultServer, Reply

WHERE = ("record", "--project", "p", "--run", "r", "--step", "1")


@pytest.fixture(autouse=True)
def _the_service_is_the_fault_server(faults: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAIRN_URL", faults.url)
    monkeypatch.setenv("CAIRN_TOKEN", "secret-token")
    faults.replies = [Reply(body={"accepted": 1, "results": [{"index": 0, "id": "0c1", "status": "created"}]})]


@pytest.mark.parametrize(
    "text",
    [
        "optimizer: {lr: 1.50e-4, name: adam}\n# a comment\nfused: yes\n",
        '{"optimizer": {"lr": 1.50e-4, "name": "adam",}, # a trailing comma\n "fused": true}',
        "fused = true\n[optimizer]\nlr = 1.50e-4\nname = 'adam'\n",
        "Namespace(optimizer=Namespace(lr=1.50e-4, name='adam'), fused=True)",
    ],
)
def test_a_config_of_any_kind_is_sent_as_it_stands(cli: Cli, faults: FaultServer, tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    code, _, err = cli(*WHERE, "--config", str(path))
    assert (code, err) == (0, "")
    assert faults.seen[0].json[0]["config"] == {"optimizer": {"lr": 1.5e-4, "name": "adam"}, "fused": True}
    assert b'"lr":1.50e-4' in faults.seen[0].body


def test_a_doubt_is_said_and_a_contradiction_stops(cli: Cli, faults: FaultServer, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("a: 1\nb: !!python/object/apply:os.system [false]\n")
    code, _, err = cli(*WHERE, "--config", str(path))
    assert code == 0
    assert "config.yaml: b: the tag !!python/object/apply:os.system would make an object of a program" in err
    assert faults.seen[0].json[0]["config"] == {"a": 1}
    path.write_text("a: {lr: 1, lr: 2}\n")
    code, _, err = cli(*WHERE, "--config", str(path))
    assert code == 2
    assert "'a.lr' stands twice, with different values." in err
    assert len(faults.seen) == 1


@pytest.mark.parametrize("text", ["- 1", "just words", "a: b: c", "", "[" * 9999])
def test_what_is_no_config_is_a_usage_error(cli: Cli, faults: FaultServer, tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    assert cli(*WHERE, "--config", str(path))[0] == 2
    assert faults.seen == []
