"""The pages in a real browser against a real server: what only a browser can tell.

Skipped where Debian's chromium or Playwright is absent.
"""

import math
import re
import shutil
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import uvicorn

from registry.aliases import move_alias
from registry.checkpoints.registration import ReplicaSpec
from registry.config import Settings
from registry.db import Database, now
from registry.evals.scores import NewScore
from registry.ids import to_text
from registry.resume_points import ResumePoint
from registry.series import Points, record_series
from registry.snapshots import DataSpec, SourceSpec
from registry.tokens import issue_login_code, issue_token
from registry.types import Scope
from tests.application import application
from tests.client.until import until
from tests.databases import fresh_database
from tests.factories import ALL_PIECES, make_attempt, make_checkpoint, make_project, make_run

CHROMIUM = shutil.which("chromium")
playwright_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (Debian: apt-get install chromium)"),
]
LONG = "RW_v2_OH_fasttext_paraphrased_flan_t5_base_95-open_lm_1b-warm=5000-lr=0p003-wd=0p033-cd=3e-05-bs=256-seed=42"
PATIENCE = 120_000.0  # milliseconds, which only a failure takes
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")


@dataclass(frozen=True)
class Site:
    """A running service with a token of its administrator, and the pages to look at."""

    url: str
    token: str
    database: Database
    paths: tuple[str, ...]
    checkpoint: str

    def login_link(self) -> str:
        with self.database.write() as session:
            return f"{self.url}/login?code={issue_login_code(session, self.token)}"


def fill(database: Database) -> tuple[tuple[str, ...], str]:
    """A run with everything: long names, a rollback, NaN, scores with errors, a mix, an alias that moved."""
    with database.write() as session:
        project = make_project(session, "lang")
        run = make_run(session, project, LONG, owner="maria", parameter_count=1_439_795_200, config={"lr": 3e-4})
        make_attempt(session, run, key="one", started_at=now())
        checkpoints = []
        for number in range(1, 21):
            score = 0.4 + 0.05 * math.log(number) - (0.2 if number > 14 else 0)
            checkpoint = make_checkpoint(
                session,
                run,
                number * 1000,
                loss=math.nan if number == 20 else 3 / number,
                pieces=ALL_PIECES,
                replicas=(ReplicaSpec(f"/shared/{LONG}/{number}", "shared", bytes=10**11),),
                data_version=DataSpec("mix", {"web": SourceSpec(0.6), "math": SourceSpec(0.4)}),
                scores=[
                    NewScore("gsm8k", score, metric="exact_match", stderr=0.0135, n_samples=1319),
                    NewScore("mathqa", score, metric="acc", stderr=0.009, n_samples=2985),
                    NewScore("lambada_openai", 6.7e8 / number**5, metric="perplexity"),
                ],
                tags={"phase": "pretrain"},
                notes="kept for the paper",
            )
            checkpoints.append(checkpoint)
        steps = list(range(0, 20_000, 20))
        curve = [math.nan if step == 9_000 else 3 + 8 / (1 + step / 500) for step in steps]
        record_series(session, run.id, [Points("loss", steps, curve, attempt=1)])
        make_attempt(session, run, resumed_from=ResumePoint(step=14_000, attempt=1), key="two", reason="loss spike")
        make_checkpoint(session, run, 15_000, pieces=["weights"])
        move_alias(session, project.id, "production", checkpoints[13], actor="maria")
        move_alias(session, project.id, "production", checkpoints[19], actor="maria", reason="newest", force=True)
    one, two, run_id = to_text(checkpoints[13]), to_text(checkpoints[19]), to_text(run.id)
    paths = (
        *("/runs", f"/runs/{run_id}", f"/checkpoints/{two}", f"/compare?baseline={one}&candidate={two}&all=1"),
        *("/find", "/find?q=strong+math", "/find?mode=filter&columns=loss,scores.gsm8k,run.name"),
        *(
            "/find?mode=filter&filter=step+%3E+99999",
            f"/rollback?run={run_id}&watch=math",
            "/rollback?alias=lang/production",
        ),
        *("/aliases", f"/aliases/lang/production?to={one}", "/problems", "/problems/checkpoint-exists"),
        f"/rollback?run={run_id}&step=soon&after=someday&limit=-1",
    )
    return paths, two


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("site")
    with fresh_database("sqlite", home) as database:
        app = application(database, Settings(home, str(database.url)))
        paths, checkpoint = fill(database)
        with database.write() as session:
            token = issue_token(session, "maria", Scope.ADMIN, actor="test")
        listener = socket.create_server(("127.0.0.1", 0))
        # An idle connection that the server closes at the moment of a click would be a complaint.
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", timeout_keep_alive=600))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        until(lambda: server.started)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            yield Site(url, token, database, paths, checkpoint)
        finally:
            server.should_exit = True
            thread.join(60)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS), timeout=PATIENCE)
        yield browser
        browser.close()


def context_of(chromium: Any, **options: Any) -> Any:
    context = chromium.new_context(**options)
    context.set_default_timeout(PATIENCE)
    return context


@dataclass
class Tab:
    """A browser tab, and what it complained about."""

    page: Any
    complaints: list[str]

    def open(self, url: str) -> None:
        answer = self.page.goto(url)
        assert answer.status < 400, url


@pytest.fixture
def tab(chromium: Any, site: Site, request: pytest.FixtureRequest) -> Iterator[Tab]:
    """A signed-in tab; parametrised by (width, colour scheme)."""
    width, scheme = getattr(request, "param", (1440, "light"))
    context = context_of(chromium, viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(f"{page.url}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"{page.url}: {error}"))

    def failed(request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # what the next navigation cut off
            complaints.append(f"{page.url}: {request.url} {request.failure}")

    page.on("requestfailed", failed)
    tab = Tab(page, complaints)
    tab.open(site.login_link())
    yield tab
    context.close()


@pytest.mark.parametrize("tab", [(375, "light"), (1440, "light")], indirect=True, ids=["375", "1440"])
def test_no_page_scrolls_sideways_or_complains(tab: Tab, site: Site) -> None:
    for path in site.paths:
        tab.open(site.url + path)
        wide = tab.page.evaluate(
            """() => [document.documentElement.scrollWidth, document.documentElement.clientWidth,
                 [...document.querySelectorAll('main *')].filter(e => !e.closest('.table, svg, .unseen'))
                   .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
                   .map(e => e.outerHTML.slice(0, 200))]"""
        )
        assert wide[0] <= wide[1], (path, wide[2][:3])
        assert wide[2] == [], path
    assert tab.complaints == []


CONTRAST = """() => {
  const parse = text => { const n = text.match(/[\\d.]+/g).map(Number); return n.length > 3 && n[3] === 0 ? null : n };
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = e => { for (; e; e = e.parentElement) {
    const colour = parse(getComputedStyle(e).backgroundColor); if (colour) return colour; } return [255, 255, 255] };
  const bad = [];
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.checkVisibility({ visibilityProperty: true }) || e.closest('title, desc, option')) continue;
    const style = getComputedStyle(e);
    const colour = parse(e.closest('svg') ? style.fill : style.color);
    const [a, b] = [light(colour), light(behind(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) bad.push(`${ratio.toFixed(2)} ${e.outerHTML.slice(0, 120)}`);
  }
  return bad;
}"""


@pytest.mark.parametrize("tab", [(1440, "light"), (1440, "dark")], indirect=True, ids=["light", "dark"])
def test_text_can_be_read_in_light_and_dark(tab: Tab, site: Site) -> None:
    shades = set()
    for path in site.paths:
        tab.open(site.url + path)
        assert tab.page.evaluate(CONTRAST) == [], path
        shades.add(tab.page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(shades) == 1


def test_dark_is_dark(chromium: Any, site: Site) -> None:
    shades = []
    for scheme in ("light", "dark"):
        page = context_of(chromium, color_scheme=scheme).new_page()
        page.goto(f"{site.url}/login")
        shades.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.context.close()
    assert shades == ["rgb(255, 255, 255)", "rgb(20, 24, 28)"]


def test_nothing_shifts_after_the_first_paint_on_a_slow_machine_either(tab: Tab, site: Site) -> None:
    tab.page.context.new_cdp_session(tab.page).send("Emulation.setCPUThrottlingRate", {"rate": 6})
    tab.page.context.add_init_script(
        "window.shifts = []; new PerformanceObserver(list => shifts.push(...list.getEntries().map(e => e.value)))"
        ".observe({ type: 'layout-shift', buffered: true });"
    )
    for path in site.paths:
        tab.open(site.url + path)
        tab.page.wait_for_timeout(100)
        # A thousandth is what nobody sees: part of a pixel.
        assert sum(tab.page.evaluate("shifts")) < 0.001, path


# By button, whether it had the mark each time that its class changed: the mark stays for a moment only.
NOTE_MARKS = """() => {
  window.marks = {};
  new MutationObserver(records => records.forEach(({ target: button }) =>
    (marks[button.ariaLabel] ??= []).push(button.classList.contains('done'))))
    .observe(document.querySelector('h1'), { attributeFilter: ['class'], subtree: true });
}"""


def test_copy_buttons_copy_the_id_and_the_path(tab: Tab, site: Site) -> None:
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.url)
    tab.open(f"{site.url}/checkpoints/{site.checkpoint}")
    head = tab.page.locator("h1")
    tab.page.evaluate(NOTE_MARKS)
    for name, text in (("id", site.checkpoint), ("path", f"/shared/{LONG}/20")):
        button = head.get_by_role("button", name=f"Copy the {name}")
        button.click()
        tab.page.wait_for_function("name => marks[name]?.[0]", arg=f"Copy the {name}")
        assert tab.page.evaluate("navigator.clipboard.readText()") == text
        tab.page.wait_for_function("name => marks[name].at(-1) === false", arg=f"Copy the {name}")


def test_pages_are_complete_without_script(chromium: Any, site: Site) -> None:
    context = context_of(chromium, java_script_enabled=False)
    page = context.new_page()
    page.goto(site.login_link())
    page.get_by_label("Run name contains").fill("fasttext")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**/runs?*fasttext*")
    page.get_by_role("link", name="RW_v2").first.click()
    page.wait_for_url("**/runs/*")
    assert "Attempts" in page.inner_text("main")
    assert page.locator(".copy").first.is_hidden()
    page.get_by_text("Plot other scores").click()
    page.get_by_role("heading", name="Math").wait_for()
    context.close()


def test_back_returns_to_the_page_before_undimmed(tab: Tab, site: Site) -> None:
    tab.open(f"{site.url}/find?q=strong+math")
    answer = tab.page.inner_text(".answer")
    tab.page.locator(".results a").first.click()
    tab.page.wait_for_url("**/checkpoints/**")
    tab.page.go_back()
    tab.page.wait_for_url("**/find?q=strong+math")
    assert tab.page.inner_text(".answer") == answer
    assert "leaving" not in (tab.page.get_attribute("html", "class") or "")


def test_the_old_page_is_dimmed_while_the_next_one_loads(tab: Tab, site: Site) -> None:
    tab.open(f"{site.url}/runs")
    tab.page.evaluate(
        "new MutationObserver(() => sessionStorage.setItem('left', document.documentElement.className))"
        ".observe(document.documentElement, { attributes: true })"
    )
    tab.page.get_by_text("More", exact=True).click()
    tab.page.get_by_role("link", name="Aliases").click()
    tab.page.wait_for_url("**/aliases")
    assert tab.page.evaluate("sessionStorage.getItem('left')") == "js leaving"


def test_a_person_signs_in_with_a_token_and_out_again(chromium: Any, site: Site) -> None:
    context = context_of(chromium)
    page = context.new_page()
    page.goto(f"{site.url}/aliases")
    page.wait_for_url("**/login?next=*")
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("No token like that is valid here").wait_for()
    page.get_by_label("Token").fill(site.token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/aliases")
    (cookie,) = [each for each in context.cookies() if each["name"] == "cairn_session"]
    assert cookie["httpOnly"]
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/login")
    page.goto(f"{site.url}/runs")
    page.wait_for_url("**/login?next=*")
    context.close()


def test_an_alias_is_moved_by_hand_and_back(tab: Tab, site: Site) -> None:
    tab.open(f"{site.url}/aliases/lang/production")
    tab.page.get_by_role("link", name="Show what going back would do…").click()
    tab.page.get_by_text(re.compile(r"6\s000 steps earlier than now")).wait_for()
    tab.page.get_by_label("Reason").fill("math fell")
    tab.page.get_by_role("button", name="Move production").click()
    tab.page.wait_for_selector("text=Moved. The move can be undone below.")
    assert "math fell" in tab.page.inner_text("#history")
    tab.page.get_by_role("link", name="Move it here…").first.click()
    tab.page.get_by_text(re.compile(r"6\s000 steps later than now")).wait_for()
    tab.page.get_by_role("button", name="Move production").click()
    tab.page.get_by_label("Move it all the same").check()  # its loss is not finite
    tab.page.get_by_label("Reason").fill("it was the data")
    tab.page.get_by_role("button", name="Move production").click()
    tab.page.wait_for_selector("text=Moved. The move can be undone below.")
    assert [text for text in tab.complaints if "409" not in text] == []


@pytest.mark.parametrize("tab", [(375, "light")], indirect=True, ids=["375"])
def test_ranks_of_two_digits_stay_on_one_line_on_a_phone(tab: Tab, site: Site) -> None:
    tab.open(f"{site.url}/find?q=step+%3C+99999")
    ranks = tab.page.locator(".results .rank")
    assert ranks.count() > 10
    heights = ranks.evaluate_all(
        "ranks => ranks.map(e => { const r = document.createRange(); r.selectNodeContents(e);"
        " return [r.getClientRects().length, r.getBoundingClientRect().width <= e.clientWidth] })"
    )
    assert heights == [[1, True]] * ranks.count()
    assert tab.page.get_by_role("link", name="compare with the first").first.is_visible()


@pytest.mark.parametrize("tab", [(375, "light")], indirect=True, ids=["375"])
def test_plots_can_be_read_on_a_phone(tab: Tab, site: Site) -> None:
    """Letters of a plot are at least 11 pixels high there, and none leaves the drawing."""
    run = next(path for path in site.paths if path.startswith("/runs/"))
    tab.open(site.url + run)
    sizes = tab.page.evaluate(
        """() => [...document.querySelectorAll('svg.chart.narrow')].map(svg => {
          const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
          const box = svg.getBoundingClientRect();
          const outside = [...svg.querySelectorAll('text')]
            .map(t => [t.textContent, t.getBoundingClientRect()])
            .filter(([, t]) => t.right > box.right + 1 || t.left < box.left - 1 || t.bottom > box.bottom + 1);
          const size = scale * parseFloat(getComputedStyle(svg.querySelector('text')).fontSize);
          return [size, outside.map(([text]) => text)];
        })"""
    )
    assert len(sizes) == 2
    assert all(height >= 11 for height, _ in sizes)
    assert [outside for _, outside in sizes] == [[], []]
    assert tab.page.locator("svg.chart.wide").first.is_hidden()
