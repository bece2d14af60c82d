"""What an operator reads on each page, on both databases; hostile names; who may see what."""

import html
import math
import re
import shlex
from datetime import timedelta

import cairn
import click
import pytest
from cairn.cli.app import cli
from cairn.recorder import Recorder
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from api.problems import status_of
from api.server import main as server
from registry.aliases import move_alias
from registry.attempts import amend_attempt, plain_attempts
from registry.checkpoints.commands import register_checkpoint
from registry.checkpoints.registration import ParentSpec, PieceSpec, Registration, ReplicaSpec
from registry.db import Database, now
from registry.errors import every_leaf
from registry.evals.scores import NewScore
from registry.ids import to_text
from registry.models import Checkpoint
from registry.resume_points import ResumePoint
from registry.runs import RunRow, TrackerSpec
from registry.series import Points, record_series
from registry.snapshots import CodeSpec, DataSpec, LayoutSpec, SourceSpec
from registry.types import Scope
from tests.factories import ALL_PIECES, at, make_attempt, make_checkpoint, make_project, make_run
from tests.ui.conftest import sign_in
from tests.ui.reading import Page

HOSTILE = "<script>alert('run')</script>\"><img src=x onerror=alert(1)>"
LATELY = r"(just now|\d+ (s|min) ago)"  # by when a busy machine has drawn the page


def read(browser: TestClient, path: str, status: int = 200) -> Page:
    answer = browser.get(path)
    assert answer.status_code == status, answer.text[:2000]
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    page = Page(answer.text)
    assert page.unclosed == []
    return page


def scored(benchmark: str, value: float, stderr: float | None = 0.01, metric: str = "acc") -> NewScore:
    return NewScore(benchmark, value, metric=metric, stderr=stderr, n_samples=1000)


# ---- frame


def test_a_page_allows_nothing_inline_and_nothing_foreign(browser: TestClient, session: Session) -> None:
    run = make_run(session, name=HOSTILE)
    make_checkpoint(session, run, loss=math.nan, scores=[scored("piqa", 0.7)], notes=HOSTILE, tags={HOSTILE: HOSTILE})
    answer = browser.get(f"/runs/{to_text(run.id)}")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    page = Page(answer.text)
    assert not [each for each in page.attributes if each[1] == "style" or each[1].startswith("on")]
    loaded = [value for tag, name, value in page.attributes if name == "src" or (tag == "link" and name == "href")]
    assert loaded
    assert all(value.startswith(("/static/", "#")) for value in loaded)  # a place on the page itself loads nothing


def test_static_files_are_kept_for_ever_under_their_content(stranger: TestClient) -> None:
    page = stranger.get("/login").text
    for url in re.findall(r'"(/static/[^"]+)"', page):
        answer = stranger.get(url)
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        stale = stranger.get(re.sub(r"/static/\w+/", "/static/0000000000000000/", url))
        assert stale.headers["cache-control"] == "no-store"
    assert stranger.get("/static/x/../../pyproject.toml").status_code == 404


# ---- runs


def test_an_empty_registry_says_how_to_send_the_first_checkpoint(browser: TestClient) -> None:
    page = read(browser, "/")
    assert page.answer == "No run yet: the first checkpoint makes one."
    assert "curl -X POST http://testserver/api/v1/checkpoints:batch" in page.text
    assert 'data-copy="curl' in page.html


def test_runs_show_their_newest_checkpoint_and_its_pieces(browser: TestClient, session: Session) -> None:
    project = make_project(session, "lang")
    run = make_run(session, project, "base-7b", owner="maria", parameter_count=7_000_000_000)
    make_attempt(session, run, key="one", started_at=now())
    make_checkpoint(session, run, 1000, loss=2.5, saved_at=now() - timedelta(hours=3), pieces=ALL_PIECES)
    make_checkpoint(session, run, 2000, loss=math.nan, saved_at=now() - timedelta(minutes=12), pieces=["weights"])
    page = read(browser, "/runs")
    assert page.answer == "1 run in 1 project; the newest checkpoint was saved 12 min ago."
    assert "base-7b lang running 2 000 loss NaN NaN 12 min ago 2 7 B maria" in page.text.replace("  ", " ")
    assert "weights present, optimizer unknown, data position unknown, random state unknown" in page.html
    assert page.links["base-7b"] == f"/runs/{to_text(run.id)}"


def test_a_time_that_nobody_gave_is_called_the_time_of_the_record(browser: TestClient, session: Session) -> None:
    make_checkpoint(session, make_run(session), 10)
    page = read(browser, "/runs")
    assert re.search(rf"the newest checkpoint was recorded {LATELY}\.$", page.answer)
    assert re.search(f"recorded {LATELY}", page.text)


def test_the_state_of_a_run_that_nobody_reported_is_not_called_running(browser: TestClient, session: Session) -> None:
    run = make_run(session)
    make_checkpoint(session, run, 10)
    assert "running" not in read(browser, "/runs").text
    assert read(browser, f"/runs/{to_text(run.id)}").answer.startswith("Nobody reports its state;")


def test_runs_can_be_searched_sorted_and_paged(browser: TestClient, session: Session) -> None:
    project = make_project(session)
    for number in range(5):
        run = make_run(session, project, f"Run-{number}", parameter_count=10**number)
        make_checkpoint(session, run, 1, saved_at=at("2026-11-01") + timedelta(days=number))

    def names(page: Page) -> list[str]:
        return [text for text in page.links if re.fullmatch(r"Run-\d", text)]

    assert names(read(browser, "/runs?sort=size")) == ["Run-4", "Run-3", "Run-2", "Run-1", "Run-0"]
    first = read(browser, "/runs?sort=name&limit=2")
    assert names(first) == ["Run-0", "Run-1"]
    second = read(browser, first.links["Next rows"] + "&limit=2")
    assert names(second) == ["Run-2", "Run-3"]
    assert names(read(browser, "/runs?q=RUN-3")) == ["Run-3"]
    nothing = read(browser, "/runs?q=100%25")
    assert nothing.answer == "No run in 1 project has ‘100%’ in its name."


def test_a_cursor_that_cannot_be_read_is_a_problem_page(browser: TestClient, session: Session) -> None:
    make_checkpoint(session)
    for cursor in ("!!!", "bnVsbA", "WzEsMl0", "W1tdXQ"):
        page = read(browser, f"/runs?after={cursor}", status=400)
        assert "invalid-cursor" in page.text


# ---- one run


def make_history(session: Session) -> RunRow:
    """A run that went back from 3,000 to 1,000 and on from there."""
    run = make_run(session, make_project(session, "lang"), "base", config={"lr": 0.0003, "opt": {"betas": [0.9, 0.95]}})
    make_attempt(session, run, key="one", started_at=now() - timedelta(days=2))
    for step in (1000, 2000, 3000):
        make_checkpoint(session, run, step, loss=3 - step / 2000, scores=[scored("piqa", 0.5 + step / 10_000)])
    make_attempt(session, run, resumed_from=ResumePoint(step=1000, attempt=1), key="two", reason="spike on node 17")
    make_checkpoint(session, run, 2000, loss=1.9, scores=[scored("piqa", 0.9)], pieces=ALL_PIECES)
    return run


def test_a_run_shows_attempts_superseded_steps_and_its_newest_checkpoint(browser: TestClient, session: Session) -> None:
    run = make_history(session)
    page = read(browser, f"/runs/{to_text(run.id)}")
    newest = f"the newest checkpoint, step 2 000, was recorded {LATELY}: it resumes exactly."
    assert re.fullmatch(f"Running, attempt 2; {newest}", page.answer)
    assert "step 1 000; later ones are superseded" in page.text
    rows = re.findall(r'<tr><td class="num">(\d+)</td>(.*?)</tr>', page.html.partition('id="attempts"')[2], re.S)
    cells = {number: Page(cells).text for number, cells in rows}
    assert "3 000 step 1 000; later ones are superseded 3 " in cells["1"]
    assert "2 000 all steps 1 " in cells["2"]
    assert "spike on node 17" in page.text
    assert page.text.count("superseded") >= 3
    assert 'class="mark rollback"' in page.html
    assert "opt.betas.0" in page.text


def test_an_attempt_shows_the_last_step_it_made_and_the_last_it_saved(browser: TestClient, session: Session) -> None:
    run = make_run(session)
    attempt = make_attempt(session, run, key="one")
    make_checkpoint(session, run, 3000)
    shown = f"/runs/{to_text(run.id)}"
    assert "saved 3 000" not in read(browser, shown).text
    amend_attempt(session, run.id, attempt.number, {"step": 3700})
    assert "3 700 saved 3 000" in read(browser, shown).text


def test_an_attempt_from_which_another_went_on_does_not_run(browser: TestClient, session: Session) -> None:
    run = make_run(session)
    make_attempt(session, run, key="one", started_at=now())
    make_checkpoint(session, run, 1000)
    make_attempt(session, run, resumed_from=ResumePoint(step=1000, attempt=1), key="two")
    page = read(browser, f"/runs/{to_text(run.id)}")
    assert page.html.count("ended, nobody said how") == 1


def test_a_time_to_come_is_called_a_wrong_clock(browser: TestClient, session: Session) -> None:
    """Such times were taken once."""
    identity = make_checkpoint(session, make_run(session), 10, saved_at=now())
    session.get_one(Checkpoint, identity).saved_at = now().replace(year=2096, month=3, day=1)
    session.flush()
    page = read(browser, "/")
    assert page.answer.endswith("the newest checkpoint is dated 2096-03-01, by a clock that was wrong.")


def test_a_run_plots_loss_and_scores_with_links_to_checkpoints(browser: TestClient, session: Session) -> None:
    run = make_history(session)
    record_series(session, run.id, [Points("loss", [1, 2, 3, 4], [3.0, 2.5, math.nan, 2.0], attempt=2)])
    page = read(browser, f"/runs/{to_text(run.id)}")
    assert "loss; axis starts at 2" in page.html
    assert "loss, step 3: NaN" not in page.html  # one line of one attempt: named by the attempt
    assert "attempt 2, step 3: NaN" in page.html
    assert "Bars are ± one standard error." in page.text
    assert re.search(r'<a href="/checkpoints/\w{13}"><g><title>piqa\.acc, step 2\u202f000: 0\.900 ± 0\.010', page.html)


def test_scores_of_superseded_checkpoints_are_in_the_csv_and_not_in_the_line(
    browser: TestClient, session: Session
) -> None:
    run = make_history(session)
    rows = browser.get(f"/runs/{to_text(run.id)}/scores.csv").text.splitlines()
    assert rows[0] == "checkpoint,attempt,step,superseded,benchmark,metric,filter,value,stderr,via"
    assert [row.split(",")[1:4] for row in rows[1:]] == [
        ["1", "1000", "no"],
        ["1", "2000", "yes"],
        ["1", "3000", "yes"],
        ["2", "2000", "no"],
    ]
    html = read(browser, f"/runs/{to_text(run.id)}").html
    assert "piqa.acc, step 1\u202f000: 0.6" in html
    assert "piqa.acc, step 3\u202f000: 0.8" not in html


def test_plotted_scores_and_axis_are_in_the_address(browser: TestClient, session: Session) -> None:
    run = make_run(session)
    scores = [scored("piqa", 0.7), scored("wikitext", 12.5, None, "word_perplexity")]
    make_checkpoint(session, run, 10, scores=scores)
    make_checkpoint(session, run, 20, scores=scores)
    page = read(browser, f"/runs/{to_text(run.id)}?score=wikitext.word_perplexity&axis=log")
    assert "log scale; axis starts at" in page.html
    assert "step (log scale)" in page.html
    assert "piqa.acc, step" not in page.html


def test_curves_are_given_as_csv_with_nan_as_a_word(browser: TestClient, session: Session) -> None:
    run = make_history(session)
    record_series(session, run.id, [Points("loss", [1, 2], [3.0, math.nan], attempt=2)])
    answer = browser.get(f"/runs/{to_text(run.id)}/curves.csv")
    assert answer.text.splitlines() == ["curve,attempt,step,value", "loss,2,1,3.0", "loss,2,2,NaN"]
    assert answer.headers["content-disposition"] == 'attachment; filename="base-curves.csv"'


def test_a_run_without_checkpoints_says_how_to_record_one(browser: TestClient, session: Session) -> None:
    run = make_run(session, make_project(session, "lang"), "it's new")
    page = read(browser, f"/runs/{to_text(run.id)}")
    assert "no checkpoint yet, so nothing to come back to" in page.answer
    assert "cairn record --project lang --run 'it'\"'\"'s new' --step 1000" in page.text


def test_tracker_links_are_links_only_where_they_are_web_addresses(browser: TestClient, session: Session) -> None:
    trackers = [
        TrackerSpec("mlflow", "abc", "https://mlflow.example/"),
        TrackerSpec("wandb", "def", "javascript:alert(1)"),
    ]
    run = make_run(session, trackers=trackers)
    page = read(browser, f"/runs/{to_text(run.id)}")
    assert "https://mlflow.example/" in page.links.values()
    assert not any(href.startswith("javascript:") for href in page.links.values())


def test_an_attempt_that_was_started_over_is_superseded_whole(browser: TestClient, session: Session) -> None:
    run = make_run(session)
    make_checkpoint(session, run, 1000)
    make_attempt(session, run, restart=True, key="two")
    make_checkpoint(session, run, 500)
    page = read(browser, f"/runs/{to_text(run.id)}")
    assert "no step: all are superseded" in page.text
    assert "−1" not in page.text


@pytest.mark.parametrize(("restart", "words"), [(True, "from scratch"), (False, "not said")])
def test_a_run_was_trained_from_scratch_only_where_somebody_said_so(
    browser: TestClient, session: Session, restart: bool, words: str
) -> None:
    run = make_run(session)
    make_attempt(session, run, restart=restart)
    found = read(browser, f"/runs/{to_text(run.id)}").text
    assert [each for each in ("from scratch", "not said") if each in found] == [words]


def test_a_gap_in_the_numbers_of_attempts_is_no_attempt(browser: TestClient, session: Session) -> None:
    run = make_run(session)
    plain_attempts(session, run.project_id, [(run.id, 1), (run.id, 7)])
    make_checkpoint(session, run, 10, attempt=7)
    page = read(browser, f"/runs/{to_text(run.id)}")
    assert page.answer.startswith("Nobody reports its state; the newest checkpoint, step 10,")
    assert "attempts 2" in page.text


def test_an_order_by_times_that_nobody_gave_says_so(browser: TestClient, session: Session) -> None:
    make_checkpoint(session, make_run(session), 10)
    make_checkpoint(session, make_run(session), 10, saved_at=at("2026-11-01"))
    words = "Nobody said when 1 of these runs saved: their place in this order is when their records arrived."
    assert words in read(browser, "/runs").text
    assert words not in read(browser, "/runs?sort=name").text
    assert "(arrival)" in read(browser, "/find?mode=filter&columns=saved_at").text


def test_a_long_name_is_cut_in_its_middle_and_whole_in_its_title(browser: TestClient, session: Session) -> None:
    name = "RW_v2_" + "paraphrased_" * 8 + "seed=42"
    make_checkpoint(session, make_run(session, name=name), 10)
    page = read(browser, "/runs")
    (shown,) = [text for text in page.links if text.startswith("RW_v2_")]
    assert len(shown) <= 56
    assert "…" in shown
    assert shown.endswith("seed=42")
    assert f'title="{name}"' in page.html


# ---- one checkpoint


def test_a_checkpoint_page_shows_everything_known(browser: TestClient, session: Session) -> None:
    project = make_project(session, "lang")
    run = make_run(session, project, "base", parameter_count=7_000_000_000)
    parent = make_checkpoint(session, run, 1000)
    pieces = {
        "weights": PieceSpec("present", "14 safetensors files"),
        "optimizer": PieceSpec("present"),
        "data_position": PieceSpec("present", None, "counter"),
        "random_state": PieceSpec("absent"),
    }
    checkpoint = register_checkpoint(
        session,
        run.id,
        Registration(
            2000,
            loss=2.123456,
            lr=3e-5,
            tokens_seen=299_892_736_000,
            metrics={"grad_norm": math.inf},
            pieces=pieces,
            replicas=(ReplicaSpec("/shared/base/2000", "shared", bytes=14_300_000_000, file_count=28),),
            parents=(ParentSpec(parent, "converted_from"),),
            data_version=DataSpec("mix-3", {"web": SourceSpec(3.0), "code": SourceSpec(1.0)}),
            code=CodeSpec("5a3c9d1e", True, None, "https://example.org/code"),
            environment={"torch": "2.9"},
            layout=LayoutSpec(world_size=64, tp=4, sharding="zero-1"),
            config={"lr": 0.00003, "empty": ""},
            save_seconds=42.1,
            stall_seconds=0.45,
            tags={"phase": "pretrain"},
            notes="kept for the paper",
            milestone=True,
            scores=[scored("piqa", 0.7123, 0.0107), NewScore("my_eval", math.nan)],
        ),
    ).checkpoint_id
    move_alias(session, project.id, "production", checkpoint, actor="maria")
    page = read(browser, f"/checkpoints/{to_text(checkpoint)}")
    assert page.answer == (
        "Resumable, though not bit for bit: the random state is absent; one copy on shared storage, never verified."
    )
    for words in (
        *("2.123", "3e−5", "300 B", "14.3 GB", "42.1 s", "450 ms", "14 safetensors files", "a counter of samples"),
        *("It continues, but not bit for bit.", "/shared/base/2000", "0.712 ± 0.011", "converted from", "mix-3"),
        *("75.0%", "25.0%", "5a3c9d1e", "with uncommitted changes", "torch", "world size 64", "unknown"),
        *("phase pretrain", "kept for the paper", "kept for ever", "production", "∞", "NaN"),
    ):
        assert words in page.text, words
    assert page.links["← step 1 000"] == f"/checkpoints/{to_text(parent)}"
    assert f'data-copy="{to_text(checkpoint)}"' in page.html
    assert 'data-copy="/shared/base/2000"' in page.html


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ({}, "Whether it can be resumed is unknown: nobody said whether it has weights"),
        (dict.fromkeys(ALL_PIECES, "present"), "Resumes exactly: all four pieces are recorded"),
        ({"weights": "present", "optimizer": "absent"}, "Incomplete: without optimizer"),
        (
            {"weights": "present", "optimizer": "absent", "data_position": "absent", "random_state": "absent"},
            "Weights only: good for evaluation and fine-tuning, not for resuming",
        ),
    ],
)
def test_a_missing_piece_is_said_first(
    browser: TestClient, session: Session, pieces: dict[str, str], words: str
) -> None:
    run = make_run(session)

    given = {name: PieceSpec(presence) for name, presence in pieces.items()}
    made = register_checkpoint(session, run.id, Registration(10, pieces=given)).checkpoint_id
    assert read(browser, f"/checkpoints/{to_text(made)}").answer.startswith(words)


def test_an_unevaluated_checkpoint_says_how_to_import_results(browser: TestClient, session: Session) -> None:
    checkpoint = make_checkpoint(session)
    page = read(browser, f"/checkpoints/{to_text(checkpoint)}")
    assert f"cairn evals results.json --checkpoint {to_text(checkpoint)}" in page.text


def test_a_second_evaluation_is_counted_beside_the_first(browser: TestClient, session: Session) -> None:
    older = NewScore("piqa", 0.7, metric="acc", evaluated_at=at("2026-11-01"))
    newer = NewScore("piqa", 0.72, metric="acc", evaluated_at=at("2026-11-02"))
    checkpoint = make_checkpoint(session, scores=[older, newer])
    page = read(browser, f"/checkpoints/{to_text(checkpoint)}")
    assert "0.72" in page.text
    assert "and 1 earlier result" in page.text
    rows = browser.get(f"/checkpoints/{to_text(checkpoint)}/scores.csv").text.splitlines()
    assert sorted(row.rsplit(",", 1)[1] for row in rows[1:]) == ["no", "yes"]


# ---- names that would be markup


def test_hostile_names_are_shown_as_text_on_every_page(browser: TestClient, session: Session) -> None:
    project = make_project(session, "lang")
    run = make_run(session, project, HOSTILE, owner=HOSTILE, tags={HOSTILE: HOSTILE})
    one = make_checkpoint(
        session,
        run,
        10,
        notes=HOSTILE,
        tags={HOSTILE: HOSTILE},
        config={HOSTILE: HOSTILE},
        replica=f"/x/{HOSTILE}",
        metrics={HOSTILE: 1.0},
        format=HOSTILE,
        scores=[NewScore(HOSTILE, 0.5, metric=HOSTILE)],
        data_version=DataSpec(HOSTILE, {HOSTILE: SourceSpec(1.0)}),
    )
    two = make_checkpoint(session, run, 20, config={HOSTILE: "other"}, scores=[NewScore(HOSTILE, 0.6, metric=HOSTILE)])
    move_alias(session, project.id, "prod", one, actor=HOSTILE, reason=HOSTILE)
    record_series(session, run.id, [Points(HOSTILE, [1, 2], [1.0, 2.0])])
    for path in (
        *("/runs", f"/runs/{to_text(run.id)}", f"/checkpoints/{to_text(one)}", "/aliases", "/aliases/lang/prod"),
        f"/compare?baseline={to_text(one)}&candidate={to_text(two)}&all=1",
        f"/rollback?run={to_text(run.id)}&mode=production",
        "/find?mode=filter&columns=run.name,run.owner,format",
        "/find?q=step+%3C+50",
    ):
        page = read(browser, path)
        assert "<script>alert" not in page.html, path
        assert "<img" not in page.html, path
        assert "alert(" in page.html, path  # it is shown, as text


def test_hostile_parameters_come_back_as_text(browser: TestClient, session: Session) -> None:
    make_checkpoint(session, make_run(session, make_project(session, "lang")), 10)
    for path, status in (
        ("/runs?q={}", 200),
        ("/find?q={}", 400),
        ("/find?mode=filter&filter={}", 400),
        ("/find?mode=filter&order_by={}", 400),
        ("/compare?baseline={}&candidate={}", 404),
        ("/runs?project={}", 404),
        ("/rollback?alias=lang/{}", 404),
    ):
        page = read(browser, path.format(*["%3Cscript%3Ealert(1)%3C/script%3E"] * 2), status)
        assert "<script>alert" not in page.html


# ---- who may see what


def test_who_is_not_signed_in_is_led_to_the_sign_in_page_and_back(stranger: TestClient) -> None:
    answer = stranger.get("/runs?sort=name", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=%2Fruns%3Fsort%3Dname"


def test_a_token_bound_to_another_project_sees_nothing_of_this_one(
    stranger: TestClient, session: Session, database: Database
) -> None:
    secret = make_run(session, make_project(session, "secret"), "hidden-run")
    hidden = make_checkpoint(session, secret, 10, scores=[scored("piqa", 0.9), scored("gsm8k", 0.9)])
    move_alias(session, secret.project_id, "prod", hidden, actor="x")
    mine = make_run(session, make_project(session, "mine"), "my-run")
    own = make_checkpoint(session, mine, 10, scores=[scored("piqa", 0.5)])
    sign_in(stranger, database, Scope.READ, project_ids=[mine.project_id])
    for path in ("/runs", "/aliases", "/find?mode=filter", "/find?q=piqa+%3E+0.1", "/rollback", "/compare"):
        page = Page(stranger.get(path).text)
        assert "hidden-run" not in page.html, path
        assert "secret" not in page.html, path
    for path in (
        f"/runs/{to_text(secret.id)}",
        f"/runs/{to_text(secret.id)}/scores.csv",
        f"/checkpoints/{to_text(hidden)}",
        f"/checkpoints/{to_text(hidden)}/scores.csv",
        f"/compare?baseline={to_text(own)}&candidate={to_text(hidden)}",
        f"/compare.csv?baseline={to_text(own)}&candidate={to_text(hidden)}",
        f"/rollback?run={to_text(secret.id)}",
        "/rollback?alias=secret/prod",
        "/aliases/secret/prod",
        "/runs?project=secret",
        "/find?mode=filter&project=secret",
    ):
        assert stranger.get(path).status_code in (403, 404), path


def test_problems_are_pages_for_browsers_and_documents_for_programs(browser: TestClient) -> None:
    for path in ("/runs/nope", "/runs/0000000000000", "/checkpoints/nope", "/nowhere", "/aliases/a/b"):
        page = read(browser, path, status=404)
        assert {"All runs", "Find a checkpoint"} & page.links.keys()
    plain = browser.get("/runs/nope", headers={"Accept": "application/json"})
    assert plain.headers["content-type"] == "application/problem+json"
    api = browser.get("/api/v1/nowhere")
    assert api.headers["content-type"] == "application/problem+json"
    wrong = read(browser, "/runs?limit=99999", status=422)
    assert "limit: expected 200 or less" in wrong.text
    assert "/query/" not in wrong.text


def test_an_attempt_that_came_from_a_checkpoint_is_one_row_of_its_lineage(
    browser: TestClient, session: Session
) -> None:
    run = make_run(session, make_project(session, "lang"), "7b")
    first = make_checkpoint(session, run, 1000)
    make_attempt(session, run, resumed_from=ResumePoint(step=1000, attempt=1), key="two")
    for step in (3000, 2000, 4000):
        make_checkpoint(session, run, step)
    lineage = read(browser, f"/checkpoints/{to_text(first)}").text.partition("direction")[2].partition("Data")[0]
    assert lineage.count("this led to") == 1
    assert "7b · 2 · 2 000" in lineage
    assert "and 2 more of that attempt, up to step 4 000" in lineage


@pytest.mark.parametrize("path", ["/runs?project=flurb", "/aliases/lang/flurb", "/aliases/flurb/x", "/rollback?run=x"])
def test_a_page_never_tells_people_to_call_the_api(browser: TestClient, session: Session, path: str) -> None:
    make_project(session, "lang")
    page = read(browser, path, status=404)
    assert not re.search(r"\b(GET|POST|PUT|PATCH|DELETE)\b|/api/", page.text)
    api = browser.get(path, headers={"Accept": "application/json"}).json()
    assert api["detail"].partition(". ")[0] in page.html.replace("&#39;", "'")  # the API keeps its own words


def test_a_parameter_that_a_page_does_not_have_is_said(browser: TestClient, session: Session) -> None:
    run = make_run(session, make_project(session, "lang"))
    make_checkpoint(session, run, 10)
    for path in ("/runs?flurb=1", f"/runs/{to_text(run.id)}?flurb=1", f"/rollback?run={to_text(run.id)}&flurb=-1"):
        assert "This page has no parameter ‘flurb’: it was left out." in read(browser, path).text
    assert "was left out" not in read(browser, "/runs?q=a&project=lang&sort=name&limit=5").text


def test_a_choice_that_a_page_does_not_have_is_said(browser: TestClient, session: Session) -> None:
    run = make_run(session)
    make_checkpoint(session, run, 10, scores=[scored("piqa", 0.7)])
    assert "‘flurb’ is no order" in read(browser, "/runs?sort=flurb").text
    page = read(browser, f"/runs/{to_text(run.id)}?score=flurb&score=piqa.acc&axis=cubic")
    assert "This run has no score ‘flurb’." in page.text
    assert "‘cubic’ is no step axis" in page.text


# ---- error codes


def test_every_error_code_has_a_page_that_needs_no_token(stranger: TestClient) -> None:
    listed = read(stranger, "/problems")
    codes = {leaf.code for leaf in every_leaf()}
    assert codes <= {href.removeprefix("/problems/") for href in listed.links.values()}
    for leaf in every_leaf():
        page = read(stranger, f"/problems/{leaf.code}")
        assert str(status_of(leaf)) in page.text
        assert len(page.text.partition("Error codes")[2]) > 100, leaf.code


def test_an_unknown_error_code_is_a_404_page_with_the_known_ones(stranger: TestClient) -> None:
    page = read(stranger, "/problems/%3Cb%3Eflurb", status=404)
    assert page.answer == "There is no error code ‘<b>flurb’."
    assert page.links["run-not-found"] == "/problems/run-not-found"


def test_a_problem_page_leads_to_what_its_code_means(browser: TestClient) -> None:
    page = read(browser, "/runs/nope", status=404)
    href = page.links["run-not-found"]
    assert "An id is not the name of the run." in read(browser, href).text
    assert browser.get("/runs/nope", headers={"Accept": "application/json"}).json()["type"] == href


def test_every_command_that_a_page_shows_exists(browser: TestClient, stranger: TestClient) -> None:
    """Each is parsed by the command line that it names, the Python one against the client's own methods."""
    shown = re.findall(
        r'<div class="command"><pre>(.*?)</pre>', browser.get("/").text + browser.get("/aliases").text, re.S
    )
    browser.cookies.clear()
    shown += re.findall(r'<div class="command"><pre>(.*?)</pre>', stranger.get("/login").text, re.S)
    commands = [html.unescape(text) for text in shown]
    assert len(commands) == 8
    for text in commands:
        if text.startswith(("cairn ", "cairn-server ")):
            name, *arguments = shlex.split(text)
            group: click.Command = cli if name == "cairn" else server
            while isinstance(group, click.Group):
                found = group.get_command(click.Context(group), arguments.pop(0))
                assert found is not None, text
                group = found
            group.make_context("x", arguments, resilient_parsing=False)
        for method in re.findall(r"client\.(\w+)\(", text):
            assert hasattr(cairn.Client, method)
        for method in re.findall(r"^run\.(\w+)\(", text, re.M):
            assert hasattr(Recorder, method)
    assert sum(text.startswith(("cairn ", "cairn-server ")) for text in commands) == 3
