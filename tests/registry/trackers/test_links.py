"""What people paste to say which run is meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.trackers.links import BadTrackerLink, TrackerPlace, clean_uri, read_link

RUN = "0e1f2a3b4c5d6e7f8091a2b3c4d5e6f7"

MLFLOW = {
    f"http://localhost:5000/#/experiments/1/runs/{RUN}": ("http://localhost:5000", "1"),
    f"https://mlflow.example.org/#/experiments/12/runs/{RUN}/model-metrics": ("https://mlflow.example.org", "12"),
    f"https://mlflow.example.org/#/experiments/12/runs/{RUN}?compare=1#x": ("https://mlflow.example.org", "12"),
    f"https://example.org/mlflow/#/experiments/3/runs/{RUN}/artifacts/model": ("https://example.org/mlflow", "3"),
    f"https://example.org/a/b/#/experiments/3/runs/{RUN}": ("https://example.org/a/b", "3"),
    f"https://example.org/mlflow/experiments/3/runs/{RUN}": ("https://example.org/mlflow", "3"),
    f"HTTPS://Example.ORG:443/#/experiments/3/runs/{RUN}": ("https://example.org", "3"),
    f"http://example.org:80/index.html#/experiments/3/runs/{RUN}": ("http://example.org", "3"),
    f"http://[::1]:5000/#/experiments/3/runs/{RUN}": ("http://[::1]:5000", "3"),
    f"https://adb-1234.5.azuredatabricks.net/?o=1234#mlflow/experiments/77/runs/{RUN}": (
        "https://adb-1234.5.azuredatabricks.net",
        "77",
    ),
    f"https://dbc-a1b2.cloud.databricks.com/ml/experiments/77/runs/{RUN}?o=1234": (
        "https://dbc-a1b2.cloud.databricks.com",
        "77",
    ),
    f"runs:/{RUN}/model": ("", None),
    f"runs:/{RUN}": ("", None),
    f"mlflow:/{RUN}": ("", None),
    f"mlflow:/4/{RUN}": ("", "4"),
    f"mlflow:/experiments/4/runs/{RUN}": ("", "4"),
    f"mlflow://host.example.org:5000/#/experiments/4/runs/{RUN}": ("http://host.example.org:5000", "4"),
    f"mlflow-artifacts:/4/{RUN}/artifacts/model": ("", "4"),
    f"mlflow-artifacts://host:5000/4/{RUN}/artifacts": ("http://host:5000", "4"),
    f"  {RUN}\n": ("", None),
}

API = "https://api.wandb.ai"
WANDB = {
    "https://wandb.ai/team/llm/runs/3fy8k2": (API, "team", "llm"),
    "https://wandb.ai/team/llm/runs/3fy8k2/overview": (API, "team", "llm"),
    "https://forge.coreweave.com/wandb/team/llm/runs/3fy8k2?nw=nwuserjane": (API, "team", "llm"),
    "https://wandb.ai/team/llm/runs/3fy8k2?workspace=user-jane": (API, "team", "llm"),
    "https://wandb.ai/team/llm/runs/3fy8k2/files/media/images?nw=nwuserjane#page": (API, "team", "llm"),
    "https://www.wandb.ai/team/my%20llm/runs/3fy8k2/logs": (API, "team", "my llm"),
    "https://wandb.example.org/team/llm/runs/3fy8k2": ("https://wandb.example.org", "team", "llm"),
    "http://127.0.0.1:8080/team/llm/runs/3fy8k2": ("http://127.0.0.1:8080", "team", "llm"),
    "wandb:team/llm/3fy8k2": (API, "team", "llm"),
    "wandb://team/llm/runs/3fy8k2": (API, "team", "llm"),
    "team/llm/3fy8k2": (API, "team", "llm"),
    "team/llm/runs/3fy8k2": (API, "team", "llm"),
    "/team/llm/runs/3fy8k2": (API, "team", "llm"),
}


@pytest.mark.parametrize("text", MLFLOW)
def test_a_link_of_mlflow_names_server_experiment_and_run(text: str) -> None:
    uri, experiment = MLFLOW[text]
    assert read_link(text) == TrackerPlace("mlflow", RUN, uri, None, experiment)


@pytest.mark.parametrize("text", WANDB)
def test_a_link_of_wandb_names_entity_project_and_run(text: str) -> None:
    uri, entity, project = WANDB[text]
    assert read_link(text) == TrackerPlace("wandb", "3fy8k2", uri, entity, project)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "run", "https://example.org", "https://wandb.ai/team/llm", "https://wandb.ai/team/llm/sweeps/x"),
        *("ftp://example.org/#/experiments/1/runs/" + RUN, "file:///etc/passwd", "javascript:alert(1)"),
        *("https://wandb.ai/team/llm/runs/../../x", "https://example.org:port/#/experiments/1/runs/" + RUN),
        *("http://[::1/#/experiments/1/runs/" + RUN, "runs:/short", "wandb:a/b", "a/b/c/d/e", "x" * 5_000, "a\0/b/c"),
        *("https://mlflow.example.org/#/experiments/1", "https:///team/llm/runs/3fy8k2"),
    ],
)
def test_text_that_names_no_run_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(BadTrackerLink, match=r"expected the address of a run"):
        read_link(text)


def test_a_link_of_the_other_kind_is_refused() -> None:
    with pytest.raises(BadTrackerLink, match="a run of wandb, not of mlflow"):
        read_link("https://wandb.ai/team/llm/runs/3fy8k2", kind="mlflow")


@pytest.mark.parametrize(
    "text",
    [
        f"https://jane:s3cret@mlflow.example.org/#/experiments/1/runs/{RUN}",
        f"mlflow://jane:s3cret@mlflow.example.org/4/{RUN}",
        "https://jane:s3cret@wandb.example.org/team/llm/runs/3fy8k2",
    ],
)
def test_user_names_and_passwords_are_dropped(text: str) -> None:
    place = read_link(text)
    assert "example.org" in place.uri
    assert "s3cret" not in repr(place)
    assert "jane" not in repr(place)


def test_a_refusal_never_repeats_a_password() -> None:
    with pytest.raises(BadTrackerLink) as refused:
        read_link("https://jane:s3cret@example.org/nothing")
    assert "s3cret" not in refused.value.message
    assert clean_uri("postgresql://jane:s3cret@db/x") == "postgresql://db/x"
    assert clean_uri("https://jane:s3cret@h:99999999/x") == "https://h:99999999/x"


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for kind in (None, "mlflow", "wandb"):
        try:
            place = read_link(text, kind=kind)
        except BadTrackerLink:
            continue
        assert place.kind in ("mlflow", "wandb")
        assert place.run_id
