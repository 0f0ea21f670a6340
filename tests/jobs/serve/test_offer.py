"""Asking as the page offers it, in a real headless Chromium: live to the answer, stopped, followed up, by keyboard."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from kinodex.index.library import Library
from kinodex.jobs.models import ModelChoice
from tests.support.libraries.viewer_library import EVIL, chromium
from tests.support.servers.chat_server import ChatServer, failing
from tests.support.servers.rule_server import MODEL, Rules
from tests.support.servers.serve_server import Client, serving

pytestmark = pytest.mark.needs_chromium
WAIT_MS = 30_000
BIRD = "What colour is the bird at sea?"
COLOURS = ["red", "black", "white"]
ARRIVES = """new Promise((arrive) => {
  const look = () => ((TRUE)() ? arrive() : requestAnimationFrame(look));
  look();
})"""
"""Waits for something of the page; Playwright's own wait looks again by `eval`, which the page's policy forbids."""
FOCUSED = "document.activeElement.dataset.focus ?? document.activeElement.textContent"


class Gate:
    """A model that replies by rules, and from the first decision on only once it is open."""

    def __init__(self) -> None:
        self._rules = Rules()
        self.open = threading.Event()
        self.reached = threading.Event()

    def __call__(self, body: dict[str, Any]) -> Any:
        if '"Decision"' in json.dumps(body.get("response_format", {})):
            self.reached.set()
            self.open.wait(60)
        return self._rules(body)


@pytest.fixture
def gated(library: Path, tmp_path: Path) -> Iterator[tuple[Client, Gate]]:
    gate = Gate()
    with ChatServer(gate, models=[MODEL]) as models:
        choice = ModelChoice(MODEL, models.base_url, cache=False, output_price=100.0)
        with serving([library], tmp_path / "traces", choice) as client:
            try:
                yield client, gate
            finally:
                gate.open.set()


@pytest.fixture(scope="module")
def browser(client: Client, described: Path) -> Iterator[Any]:
    """A browser, opened after what it shows is made: no event loop can run in this thread while it is open."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def opened(browser: Any) -> Iterator[Any]:
    """Opens an address of a server; nothing hostile may have run, and nothing but `expected` may have gone wrong."""
    contexts, wrong = [], []

    def open_page(address: str, expected: str = "nothing", **options: Any) -> Any:
        context = browser.new_context(permissions=["clipboard-read", "clipboard-write"], **options)
        context.set_default_timeout(WAIT_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: note(message, expected))
        page.goto(address)
        page.wait_for_selector("main h1")
        return page

    def note(message: Any, expected: str) -> None:
        if message.type == "error" and expected not in message.text:
            wrong.append(message.text)

    yield open_page
    hurt = {page.evaluate("window.hurt") for context in contexts for page in context.pages}
    for context in contexts:
        context.close()
    assert wrong == [] and hurt <= {None}


def question_key(page: Any) -> str:
    """The key of the question in the address."""
    found = re.search(r"#/ask/0/(q\d+)$", page.url)
    assert found
    return found[1]


def ask(page: Any, question: str, options: list[str]) -> str:
    """Fill in the form and send it; the question's key."""
    page.get_by_label("Your question").fill(question)
    page.get_by_text("Answers to choose from").click()
    page.get_by_label("One answer a line").fill("\n".join(options))
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_url(re.compile(r"#/ask/0/q\d+$"))
    return question_key(page)


def test_by_keyboard_alone_from_the_question_to_the_answer_and_its_terms(opened, client: Client) -> None:
    page = opened(f"{client.address}/#/ask/0")
    page.evaluate(ARRIVES.replace("TRUE", "() => document.activeElement.name === 'question'"))
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # opens the options
    page.keyboard.press("Tab")
    page.keyboard.type("\n".join(COLOURS))
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.type(BIRD)
    page.keyboard.press("Enter")
    page.locator(".answer").wait_for()
    assert page.locator(".answer .big").inner_text().strip() == "B. black"
    key = question_key(page)
    trace = client.get(f"/data/traces/{key}").json["trace"]
    said = [step["sentence"] for step in trace["steps"]] + [f"{trace['ending']} The answer: B. black"]
    assert page.get_by_role("log").locator("li").all_inner_texts() == said
    page.locator("main").focus()
    while page.evaluate("document.activeElement.className") != "term":
        page.keyboard.press("Tab")
    word = page.evaluate(FOCUSED)
    page.keyboard.press("Enter")
    tip = page.locator(".tip:popover-open")
    assert tip.inner_text().startswith("A way to search a video") and word == "term agent"
    page.keyboard.press("Escape")
    assert tip.count() == 0 and page.evaluate(FOCUSED) == word
    page.reload()
    page.locator(".answer").wait_for()
    page.get_by_role("link", name="Every round").click()
    page.locator(".bar").wait_for()
    page.get_by_role("button", name="Round 1", exact=True).click()
    assert page.locator(".round-label").inner_text().startswith("round 1 of ")


def test_the_evidence_is_shown_as_the_stored_frames_and_plays_and_is_copied(opened, client: Client) -> None:
    key = client.ask(BIRD, options=COLOURS)
    client.wait(key)
    held = client.get(f"/data/traces/{key}").json
    (first, *_), (frame, *_) = held["trace"]["answer"]["evidence"], held["evidence"]
    assert first["start_s"] <= frame["time_s"] < first["end_s"]
    page = opened(f"{client.address}/#/ask/0/{key}")
    picture = page.locator(".evidence img").first
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
    library: Library = client.site.api.inputs.libraries[0]
    (stored,) = library.frames(frame["video_id"], [frame["frame_no"]])
    assert client.get(picture.get_attribute("src")).body == stored.jpeg
    page.locator(".evidence .chip").first.click()
    page.locator(".toast").wait_for()
    title = library.video(frame["video_id"]).title
    minutes, seconds = divmod(first["start_s"], 60)
    assert page.evaluate("navigator.clipboard.readText()") == f"{title} {minutes:.0f}:{seconds:04.1f}"
    play = page.get_by_role("button", name=f"Play {title} ").first
    play.focus()
    page.keyboard.press("Enter")
    page.get_by_role("region", name=f"Player: {title}").wait_for()
    page.locator("video").wait_for()
    at_start = f"() => document.querySelector('video').currentTime >= {first['start_s']}"
    page.evaluate(ARRIVES.replace("TRUE", at_start))
    assert page.locator(".answer .big").is_visible(), "the answer stays in sight"
    page.get_by_role("button", name="Close").focus()
    page.keyboard.press("Escape")
    page.locator("video").wait_for(state="detached")
    assert page.evaluate("document.activeElement.className") == "moment"


def test_the_tree_grows_live_a_reload_goes_on_and_a_stop_gives_the_best_answer_so_far(opened, gated) -> None:
    client, gate = gated
    page = opened(f"{client.address}/#/ask/0")
    key = ask(page, BIRD, COLOURS)
    assert gate.reached.wait(60)
    page.locator(".timeline .segment").nth(1).wait_for(state="attached")
    figures = page.locator(".progress-figures")
    assert re.fullmatch(r"looking: round 1, \d+ frames?, \d+ calls?, \d+:\d\d, \$[\d.]+", figures.inner_text())
    page.locator(".now-sentence").get_by_text("Round 1: it opened").wait_for()
    assert page.locator(".answer").count() == 0
    page.reload()
    page.locator(".timeline .segment").nth(1).wait_for(state="attached")
    assert question_key(page) == key and page.locator("h1").inner_text() == BIRD
    page.locator(".timeline .segment[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    focused = page.evaluate(FOCUSED)
    page.get_by_role("button", name="Stop and take the best answer so far").evaluate("button => button.click()")
    page.get_by_role("button", name="Do not wait").wait_for()
    assert figures.inner_text().startswith("stopping")
    gate.open.set()
    page.locator(".answer .warn").get_by_text("you stopped it").wait_for()
    assert page.evaluate(FOCUSED) == focused, "what is drawn anew keeps the focus"
    assert page.locator(".state").is_hidden()
    assert client.get(f"/data/traces/{key}").json["trace"]["answer"]["reason"] == "stopped"
    page.goto("about:blank")  # before the server ends


def test_a_follow_up_knows_the_question_before_it_and_hostile_words_stay_words(opened, client: Client) -> None:
    first = client.ask(f"{BIRD} {EVIL}", options=COLOURS)
    client.wait(first)
    page = opened(f"{client.address}/#/ask/0/{first}")
    page.get_by_label("Ask more about this").fill(f"And the sky? {EVIL}")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda address: not address.endswith(f"/{first}"))
    second = question_key(page)
    client.wait(second)  # an answer is on the page already: that of the question before
    earlier = client.get(f"/data/traces/{second}").json["trace"]["question"]["earlier"]
    assert [each["question"] for each in earlier] == [f"{BIRD} {EVIL}"]
    page.get_by_role("link", name=f"“{BIRD} {EVIL}”").click()
    page.wait_for_url(f"**/{first}")
    page.get_by_role("navigation").get_by_role("link", name="Ask").click()
    page.locator(".earlier li").nth(1).wait_for()
    assert page.locator(".earlier b").first.inner_text() == f"And the sky? {EVIL}"


def test_videos_are_found_by_typing_and_limits_are_sent(opened, client: Client) -> None:
    page = opened(f"{client.address}/#/ask/0")
    field = page.get_by_label("Find a video")
    field.fill("film-02")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Leave out film-02").wait_for()
    assert field.input_value() == ""
    page.get_by_text("Limits", exact=True).click()
    page.get_by_label("Frames").fill("3")
    page.get_by_label("Your question").fill(BIRD)
    page.keyboard.press("Enter")
    page.locator(".answer").wait_for()
    trace = client.get(f"/data/traces/{question_key(page)}").json["trace"]
    assert trace["budget"]["frames"] == 3 and trace["answer"]["ledger"]["frames"] <= 3
    assert [video["title"] for video in trace["videos"]] == ["film-02"]


def test_a_refusal_is_said_beside_the_form_and_a_failure_leads_back_to_it(
    opened, library: Path, tmp_path: Path
) -> None:
    refusing = failing(401, "this key is not known")
    with ChatServer(lambda body: refusing, models=[MODEL]) as models:
        choice = ModelChoice(MODEL, models.base_url, cache=False)
        with serving([library], tmp_path / "traces", choice) as client:
            page = opened(f"{client.address}/#/ask/0", expected="400 (Bad Request)")
            page.get_by_label("Your question").fill(BIRD)
            page.get_by_text("Answers to choose from").click()
            page.get_by_label("One answer a line").fill("red")
            page.evaluate("document.querySelector('form').requestSubmit()")
            page.get_by_role("alert").get_by_text("2 to 26").wait_for()
            page.get_by_label("One answer a line").fill("red\nblack")
            page.get_by_role("button", name="Ask", exact=True).click()
            page.get_by_role("alert").get_by_text("There is no answer").wait_for()
            page.get_by_role("link", name="Change the question").click()
            page.get_by_label("One answer a line").wait_for()
            assert page.get_by_label("Your question").input_value() == BIRD
            assert page.get_by_label("One answer a line").input_value() == "red\nblack"
            page.goto("about:blank")  # before the server ends


def test_without_a_model_the_page_says_how_to_give_one_and_searches(opened, described: Path, tmp_path: Path) -> None:
    other = Library.open(str(described)).spaces()[1].name
    with serving([described], tmp_path / "traces", space=other) as client:
        page = opened(f"{client.address}/#/ask/0")
        assert "kinodex serve LIBRARY --model NAME --base-url URL" in page.locator(".how").inner_text()
        assert page.get_by_label("Your question").count() == 0
        page.get_by_label("Search").fill("bird")
        page.keyboard.press("Enter")
        page.wait_for_url("**/#/library/0/search/text%3Dbird")
        page.locator(".hits").wait_for(state="attached")
        page.goto("about:blank")  # before the server ends


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1400, "light")])
def test_form_and_answer_fit_a_phone_and_a_desk_and_are_easy_to_use(opened, client: Client, width, scheme) -> None:
    key = client.ask(BIRD, options=COLOURS)
    client.wait(key)
    size = {"width": width, "height": 900}
    page = opened(f"{client.address}/#/ask/0/{key}", viewport=size, color_scheme=scheme, reduced_motion="reduce")
    for place, sign in ((f"#/ask/0/{key}", ".answer"), ("#/ask/0", "form.ask"), (f"#/trace/{key}", ".bar")):
        page.goto(f"{client.address}/{place}")
        page.locator(sign).wait_for()
        assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0, place
        found = [
            (each["id"], [node["html"] for node in each["nodes"]]) for each in Axe().run(page).response["violations"]
        ]
        assert found == [], place
