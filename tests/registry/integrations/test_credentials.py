"""Secrets: found for their own host alone, never shown."""

from pathlib import Path

import pytest

from registry.integrations.credentials import NOTHING, BadCredentials, Credential, find_credential


def write(folder: Path, text: str, mode: int = 0o600) -> dict[str, str]:
    file = folder / "trackers.toml"
    file.write_text(text)
    file.chmod(mode)
    return {"CAIRN_TRACKER_CREDENTIALS": str(file)}


def test_a_file_gives_each_host_its_own(tmp_path: Path) -> None:
    env = write(tmp_path, '["a.example.org"]\ntoken = "t"\n["b.example.org:5000"]\nusername = "u"\npassword = "p"\n')
    assert find_credential("https://A.example.org/x", env).authorization == "Bearer t"
    assert find_credential("http://b.example.org:5000", env).authorization == "Basic dTpw"
    assert find_credential("http://b.example.org", env) is NOTHING
    assert find_credential("http://c.example.org", env).authorization is None


def test_mlflows_own_variables_count_for_its_own_host_and_port_alone() -> None:
    env = {"MLFLOW_TRACKING_URI": "https://a.example.org", "MLFLOW_TRACKING_TOKEN": "t"}
    assert find_credential("https://a.example.org/mlflow", env).authorization == "Bearer t"
    assert find_credential("https://b.example.org", env) is NOTHING
    assert find_credential("https://a.example.org:8443", env) is NOTHING
    assert find_credential("", env) is NOTHING
    basic = {"MLFLOW_TRACKING_URI": "http://h:1", "MLFLOW_TRACKING_USERNAME": "u", "MLFLOW_TRACKING_PASSWORD": "p"}
    assert find_credential("http://h:1", basic).authorization == "Basic dTpw"


def test_the_key_of_wandb_goes_to_wandb_alone() -> None:
    assert find_credential("https://api.wandb.ai", {"WANDB_API_KEY": "k"}).api_key == "k"
    assert find_credential("https://elsewhere.example.org", {"WANDB_API_KEY": "k"}) is NOTHING
    own = {"WANDB_API_KEY": "k", "WANDB_BASE_URL": "https://wandb.example.org"}
    assert find_credential("https://wandb.example.org", own).api_key == "k"
    assert find_credential("https://api.wandb.ai", own) is NOTHING


def test_no_text_of_a_credential_shows_a_secret() -> None:
    shown = repr(Credential(token="s3cret", username="u", password="s3cret", api_key="s3cret"))
    assert "s3cret" not in shown


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadCredentials, match="chmod 600"):
        find_credential("https://a", write(tmp_path, '["a"]\ntoken = "s3cret"\n', 0o644))


@pytest.mark.parametrize("text", ["[a", '["a"]\ntoken = 1', '["a"]\ntokn = "s3cret"', "a = 1"])
def test_a_damaged_file_is_refused_without_repeating_it(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadCredentials) as refused:
        find_credential("https://a", write(tmp_path, text))
    assert "s3cret" not in refused.value.message


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(BadCredentials, match="cannot be read"):
        find_credential("https://a", {"CAIRN_TRACKER_CREDENTIALS": str(tmp_path / "none")})
