"""Problems become exceptions that a tired person can read."""

import json
from typing import Any

import cairn
import pytest
from cairn.errors import error_from_answer


def answer(status: int, **problem: Any) -> cairn.CairnError:
    return error_from_answer(status, json.dumps(problem).encode(), request="POST /api/v1/runs")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("not-found", cairn.NotFound),
        ("conflict", cairn.Conflict),
        ("invalid", cairn.Invalid),
        ("malformed", cairn.Malformed),
        ("forbidden", cairn.Forbidden),
        ("unauthenticated", cairn.Unauthenticated),
        ("too-large", cairn.TooLarge),
        ("too-many-requests", cairn.TooManyRequests),
        ("unavailable", cairn.Unavailable),
        ("checkpoint-exists", cairn.CheckpointExists),
        ("attempt-would-restart", cairn.AttemptWouldRestart),
        ("invalid-filter", cairn.Malformed),
    ],
)
def test_the_type_decides(code: str, kind: type[cairn.CairnError]) -> None:
    error = answer(418, type=f"/problems/{code}", title="t", detail="d")
    assert type(error) is kind
    assert error.code == code


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, cairn.Malformed),
        (401, cairn.Unauthenticated),
        (403, cairn.Forbidden),
        (404, cairn.NotFound),
        (409, cairn.Conflict),
        (413, cairn.TooLarge),
        (422, cairn.Invalid),
        (429, cairn.TooManyRequests),
        (503, cairn.Unavailable),
        (500, cairn.CairnError),
    ],
)
def test_a_type_of_a_newer_service_falls_back_to_the_status(status: int, kind: type[cairn.CairnError]) -> None:
    error = answer(status, type="/problems/invented-tomorrow", detail="d")
    assert type(error) is kind
    assert error.code == "invented-tomorrow"


def test_the_text_names_every_place_and_how_to_find_it_again() -> None:
    error = answer(
        422,
        type="/problems/invalid",
        title="A value was refused",
        detail="2 values were refused.",
        errors=[{"pointer": "/step", "detail": "expected a whole number"}, {"pointer": "", "detail": "x"}],
        differing=["loss"],
    )
    assert str(error) == (
        "2 values were refused.\n"
        "  /step: expected a whole number\n"
        "  (the whole body): x\n"
        "  [422 invalid, POST /api/v1/runs]"
    )
    assert error.extras == {"differing": ["loss"]}


def test_a_thousand_refused_items_do_not_fill_the_terminal() -> None:
    errors = [{"pointer": f"/{index}/step", "detail": "negative"} for index in range(1000)]
    error = answer(422, type="/problems/invalid", detail="Refused.", errors=errors, errors_left_out=7)
    assert "and 997 more" in str(error)
    assert len(error.errors) == 1000


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 422, 429, 500, 502])
@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"\xff\xfe", b"[" * 100_000, b"null", b"{}", b'{"errors": 3}', b'{"type": 1}', b"<html>nginx</html>"),
        b'{"detail": "Not Found"}',
        b'{"type": "about:blank", "title": "Not Found", "status": 404}',
    ],
)
def test_what_is_no_problem_of_ours_was_not_said_by_the_service(status: int, body: bytes) -> None:
    error = error_from_answer(status, body, url="https://cairn.example")
    assert type(error) is cairn.Unavailable
    assert (error.status, error.code) == (status, "")
    assert f"https://cairn.example answered {status}" in str(error)


def test_a_body_that_a_proxy_finds_too_large_is_too_large() -> None:
    assert type(error_from_answer(413, b"<html>nginx</html>")) is cairn.TooLarge


def test_every_exception_is_one_kind_of_cairn_error() -> None:
    named = [getattr(cairn, name) for name in cairn.__all__]
    errors = [each for each in named if isinstance(each, type) and issubclass(each, Exception)]
    assert len(errors) > 12
    assert all(issubclass(each, cairn.CairnError) for each in errors)
