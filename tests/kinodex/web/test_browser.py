"""Pages in a real headless Chromium: traces, runs, libraries, videos, search, moments; asking to the answer.

One browser for all: what tests show is made before it is opened, since no event loop can run in this thread meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit
from urllib.request import urlopen

import pytest
from playwright.sync_api import expect

import kinodex as front
from kinodex.index.library import Library
from kinodex.jobs.models import ModelChoice
from kinodex.web.inputs import classify_inputs
from kinodex.web.one_file import one_file
from kinodex.web.video_list import ROWS
from kinodex.web.viewer_api import ViewerApi
from tests.jobs.add.test_extract import WHERE, row_of
from tests.support.libraries.photograph_library import photograph_library
from tests.support.libraries.viewer_library import CHAPTERS, EVIL, SCENE_S, SECONDS, library_of_films, picture, served
from tests.support.pages import browser_context, hard_to_use, width_px
from tests.support.scenes.chaptered_film import PLACES, make_film
from tests.support.servers.chat_server import ChatServer, failing
from tests.support.servers.gate import Gate
from tests.support.servers.rule_server import MODEL, Rules
from tests.support.servers.serve_server import Client, serving

if TYPE_CHECKING:
    from playwright.sync_api import Request

pytestmark = pytest.mark.needs_chromium
ARRIVES = """new Promise((arrive) => {
  const look = () => ((TRUE)() ? arrive() : requestAnimationFrame(look));
  look();
})"""
"""Waits for something of the page; Playwright's own wait looks again by `eval`, which the page's policy forbids."""
FOCUSED = "document.activeElement.dataset.focus ?? document.activeElement.textContent"
BESIDE_PX = "document.documentElement.scrollWidth - window.innerWidth"
RED, SNOW = "red shoes in the city", "snow"
BIRD, COLOURS = "What colour is the bird at sea?", ["red", "black", "white"]
RTL = "שלום עולם, سلام"
TITLES = (EVIL, f"{RTL} ", "long " + "unbroken" * 40, ":bug: :b :smile: *bold* [link](javascript:1)")
DROP = """([bytes, type]) => {
  const data = new DataTransfer();
  data.items.add(new File([Uint8Array.from(bytes)], "dropped", { type }));
  document.querySelector("main").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
}"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Iterator[str]:
    """Films with hostile titles."""
    library = library_of_films(tmp_path_factory.mktemp("films") / "library", TITLES)
    with served(library.uri) as address:
        yield address


@pytest.fixture(scope="module")
def photographs(tmp_path_factory) -> Iterator[str]:
    """A film of photographs, without a model."""
    folder = tmp_path_factory.mktemp("photographs")
    with serving([photograph_library(folder)], folder / "traces") as client:
        yield client.address


@pytest.fixture(scope="module")
def context(address, run, two_spaces, hostile, many, client, photographs):
    with browser_context("clipboard-read", "clipboard-write") as context:
        yield context


def rounds(page):
    return [label.inner_text() for label in page.locator(".round-label").all()]


def test_a_trace_is_walked_by_keys_slider_candidates_and_segments(opened, address):
    page = opened(f"{address}/#/trace/t0")
    segments = page.locator(".timeline .segment")
    assert rounds(page) == ["round 4 of 4"]
    whole = segments.count()
    page.keyboard.press("ArrowLeft")
    assert rounds(page) == ["round 3 of 4"]
    assert segments.count() < whole
    page.keyboard.press("Home")
    assert rounds(page) == ["before round 1"]
    page.get_by_role("slider", name="Round").focus()
    page.keyboard.press("ArrowRight")
    assert rounds(page) == ["round 1 of 4"]
    page.get_by_role("button", name="Next round").click()
    assert rounds(page) == ["round 2 of 4"]
    assert page.locator(".round h2").inner_text() == "Round 2"
    assert page.locator(".ledger tr.now th").inner_text() == "2"
    page.keyboard.press("End")
    assert EVIL in page.locator(".candidates tbody small").first.inner_text()
    page.locator(".candidates tbody button").first.focus()
    page.keyboard.press("Enter")
    assert page.locator(".candidates tr.selected").count() == 1
    number = page.locator(".timeline .segment.selected").get_attribute("data-number")
    assert page.evaluate("document.activeElement.dataset.focus") == f"candidate {number}"
    page.keyboard.press("+")
    page.get_by_role("button", name="Whole video").click()
    assert page.get_by_role("button", name="Whole video").count() == 0
    page.locator(".timeline .segment.open").last.dblclick()
    page.get_by_role("button", name="Whole video").click()
    page.wait_for_selector(".timeline .curve", state="attached")
    chip = page.locator(".queries .chip").first
    chip.click()
    assert chip.get_attribute("aria-pressed") == "true"
    page.locator(".calls summary").first.click()
    assert EVIL in page.locator(".call pre").first.inner_text()
    page.locator(".round .frame").first.click()
    large = page.locator("dialog img")
    assert width_px(large) == 64
    first = large.get_attribute("src")
    page.keyboard.press("ArrowRight")
    assert large.get_attribute("src") != first
    page.keyboard.press("Escape")
    assert rounds(page) == ["round 4 of 4"]


def test_traces_of_one_question_go_together_and_the_address_holds_round_and_frame(opened, address, shown):
    page = opened(address)
    assert page.locator("article.trace").count() == 2
    assert rounds(page) == ["round 4 of 4", "round 2 of 2"]
    page = opened(f"{address}/#/trace/t0,t1")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**/#/trace/t0,t1/1,1")
    page.reload()
    page.wait_for_selector("article + article")
    assert rounds(page) == ["round 1 of 4", "round 1 of 2"]
    page.goto(f"{address}/#/library/0/video/{shown.video_id}/0")
    page.wait_for_selector(".still img")
    page.keyboard.press("PageDown")
    page.wait_for_url(f"**/video/{shown.video_id}/10")
    page.go_back()
    page.wait_for_selector("article + article")
    assert rounds(page) == ["round 1 of 4", "round 1 of 2"]


def test_one_file_needs_no_server(opened, shown, tmp_path):
    out = tmp_path / "trace.html"
    whole = one_file(ViewerApi(classify_inputs([str(shown.traces[0]), shown.library.uri])))
    assert (whole.traces_left_out, whole.pictures_left_out) == (0, 0)
    out.write_text(whole.text, encoding="utf-8")
    page = opened(out.as_uri())
    assert width_px(page.locator(".round .frame img").first) == 64
    page.wait_for_selector(".timeline .curve", state="attached")
    page.keyboard.press("ArrowLeft")
    assert rounds(page) == ["round 3 of 4"]


def test_a_run_opens_its_traces(opened, run):
    with served(run) as address:
        page = opened(address)
        page.locator(".questions tbody tr").first.wait_for()
        assert page.locator(".questions tbody tr").count() == 4
        page.set_viewport_size({"width": 360, "height": 800})
        assert page.evaluate(BESIDE_PX) <= 0
        page.get_by_role("searchbox").fill("orchard")
        page.get_by_text("2", exact=True).first.wait_for()
        assert page.locator(".questions tbody tr").count() == 2
        page.get_by_role("link", name=re.compile("^Trace of uniform")).first.click()
        page.locator(".answer .tag").wait_for()
        assert page.locator(".truth-span").count() == 1 and page.locator("article").count() == 1
        page.go_back()
        page.locator(".questions th a").first.click()
        page.locator("article + article").wait_for()
        page.goto("about:blank")  # before the server ends, which its pictures come from


# A library and its videos.


def test_videos_are_chosen_by_their_columns_with_the_keyboard_and_the_address_holds_it(opened, tmp_path) -> None:
    library = library_of_films(tmp_path / "library", ("one", "two", "three"))
    ids = {row.title: row.video_id for row in library.videos()}
    cameras: dict[str, dict[str, Any]] = {
        "one": {"camera": "front's", "takes": 2},
        "two": {"camera": "back", "takes": 5},
        "three": {"takes": 5},
    }
    library.metadata.write({ids[title]: row | {"tags": [title, "all"]} for title, row in cameras.items()})
    with served(library.uri) as address:
        page = opened(f"{address}/#/library/0", expected="400")
        condition = page.get_by_label("only videos where")
        columns = page.locator("summary", has_text="Which videos")
        columns.wait_for()  # hidden until the columns have come, when no key reaches it
        columns.press("Enter")
        for name, expected in (
            ("front's 1", "camera = 'front''s'"),
            ("back 1", "camera IN ('back', 'front''s')"),
            ("all 3", "camera IN ('back', 'front''s') AND array_has(tags, 'all')"),
        ):
            page.get_by_role("checkbox", name=name).press("Space")
            expect(condition).to_have_value(expected)
        page.get_by_text("2 videos", exact=True).last.wait_for()
        page.get_by_role("textbox", name="duration_s from").fill("1")
        page.keyboard.press("Enter")
        expect(condition).to_have_value(re.compile(" AND duration_s >= 1$"))
        page.get_by_role("checkbox", name="front's 1").press("Space")
        page.locator(".library-videos").get_by_text("1 video", exact=True).wait_for()
        page.reload()
        page.locator(".library-videos").get_by_text("1 video", exact=True).wait_for()
        expect(page.locator(".posters a").first).to_contain_text("two")
        assert page.get_by_role("checkbox", name="back 1").is_checked()
        assert not page.get_by_role("checkbox", name="front's 1").is_checked()
        condition.fill("camra = 1")
        page.keyboard.press("Enter")
        page.get_by_text("did you mean camera?").first.wait_for()
        page.goto("about:blank")


def test_the_rows_of_an_extract_have_pictures_and_facets(opened, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "cache"))
    library = make_film(tmp_path / "library", "aa")
    with ChatServer(row_of) as server:
        front.open(library.uri).extract(WHERE, into="places", model="tester", base_url=server.base_url)
    with served(library.uri) as address:
        page = opened(f"{address}/#/library/0", expected="400")
        page.locator("summary", has_text="Table places").click()
        table = page.get_by_role("group", name="Table places")
        expect(table.get_by_role("row")).to_have_count(1 + len(PLACES))
        picture_of = table.get_by_role("img", name="film aa at 1:00")
        assert picture_of.evaluate("each => each.complete || new Promise((ok) => (each.onload = ok))")
        columns = page.locator(".extract summary", has_text="Which rows")
        columns.click()
        page.get_by_role("checkbox", name="kitchen 1").press("Space")
        expect(table.get_by_role("row")).to_have_count(2)
        table.get_by_role("link", name="1:00").last.click()
        page.wait_for_url(re.compile("/video/aa/60"))
        page.goto("about:blank")


def test_many_are_turned_found_and_sorted_and_the_address_holds_it(opened, many) -> None:
    with served(many.uri) as address:
        page = opened(address)
        links = page.locator(".posters a")
        page.wait_for_selector(".posters a")
        assert (links.count(), page.locator(".poster-title").first.inner_text()) == (ROWS, "film 0000")
        page.get_by_role("button", name="Next").click()
        page.get_by_text(f"{ROWS + 1} to {ROWS + 5} of {ROWS + 5} videos").wait_for()
        assert links.count() == 5
        page.get_by_label("Find videos by title").fill("FILM 0007")
        page.get_by_text("1 video", exact=True).wait_for()
        assert links.count() == 1
        page.reload()
        page.get_by_text("1 video", exact=True).wait_for()
        assert page.get_by_label("Find videos by title").input_value() == "FILM 0007"
        page.get_by_label("Find videos by title").fill("zebra")
        page.get_by_text("No title has “zebra”").wait_for()
        page.get_by_label("Find videos by title").fill("")
        page.get_by_label("Order of the videos").select_option("newest")
        page.wait_for_url("**sort%3Dnewest")
        page.goto("about:blank")


def time_of(page) -> float:
    return float(page.get_by_role("slider", name="Time line").get_attribute("aria-valuenow"))


def test_a_video_shows_detections_captions_lines_and_chapters_in_their_places(opened, address, shown):
    page = opened(f"{address}/#/library/0/video/{shown.video_id}/3.0")
    box = page.locator(".still .box")
    box.wait_for(state="attached")
    sides = box.evaluate("box => ['left', 'top', 'width', 'height'].map((side) => box.style[side])")
    assert sides == ["25%", "25%", "25%", "50%"] and box.inner_text() == f"shoe {EVIL}"
    assert EVIL in page.locator(".tag").first.inner_text()
    sizes = "['.still', '.still img'].map((each) => document.querySelector(each).getBoundingClientRect().height)"
    before = page.evaluate(sizes)
    page.route("**/pictures/**", lambda route: None)  # the next frame never comes, unless the filmstrip has it
    page.keyboard.press("ArrowRight")
    page.locator(".still img[src$='/4']").wait_for(state="attached")
    assert page.evaluate(sizes) == before and box.count() == 0
    page.unroute_all(behavior="ignoreErrors")
    chapters = page.locator(".contents > li")
    assert "The harbour" in chapters.first.inner_text() and "Boats leave & return." in chapters.first.inner_text()
    assert "Chapter 2" in chapters.nth(1).inner_text()
    assert chapters.first.get_attribute("aria-current") == "true"
    page.get_by_text("we are at sea").locator("button").click()
    assert page.locator(".still img").get_attribute("src").endswith("/20")
    assert page.locator(".lines li.now").count() == 2
    chapters.first.get_by_text("2 scenes").click()
    chapters.first.locator(".scenes .chip").nth(1).click()
    page.wait_for_url(f"**/video/{shown.video_id}/15")
    assert page.locator(".scenes [aria-current]").inner_text().endswith("A boat is seen.")
    chapters.nth(1).locator(".chip").click()
    assert page.locator(".contents > [aria-current] strong").inner_text() == "Chapter 2"


def test_the_time_line_is_used_by_keys_and_by_clicks_and_drags(opened, address, shown):
    page = opened(f"{address}/#/library/0/video/{shown.video_id}")
    page.locator(".still img[src]").wait_for()
    with urlopen(f"{address}/posters/0/{shown.video_id}") as poster:
        assert time_of(page) == float(poster.headers["x-frame-no"]) > 0
    page.goto(f"{address}/#/library/0/video/{shown.video_id}/10")
    page.locator(".still img[src$='/10']").wait_for()
    line = page.get_by_role("slider", name="Time line")
    line.focus()
    for key, time_s in (("ArrowRight", 11), ("PageDown", 21), ("Period", 40), ("Comma", 20), ("End", 59), ("Home", 0)):
        page.keyboard.press(key)
        assert time_of(page) == time_s, key
    page.wait_for_url(f"**/video/{shown.video_id}/0")
    place = line.bounding_box()
    line.click(position={"x": place["width"] / 2, "y": 50})
    assert time_of(page) == pytest.approx(SECONDS / 2, abs=1)
    span = page.locator(".line-buttons .span")
    page.get_by_role("button", name="Zoom in").click()
    page.get_by_text("0:15 to 0:45").wait_for()
    place = line.bounding_box()
    page.mouse.move(place["x"] + 300, place["y"] + 50)
    page.mouse.down()
    page.mouse.move(place["x"] + 100, place["y"] + 50, steps=4)
    page.mouse.up()
    span.filter(has_not_text="0:15 to 0:45").wait_for()
    assert time_of(page) == pytest.approx(SECONDS / 2, abs=1)  # a drag seeks nothing
    page.mouse.wheel(0, -5000)
    span.filter(has_text=re.compile("^0:00 to")).wait_for()
    page.keyboard.press("0")
    span.filter(has_text=re.compile("^$")).wait_for(state="attached")


# Searching.


def text_of(request: Request) -> str:
    return parse_qs(urlsplit(request.url).query).get("query", [""])[0]


def test_hits_come_while_one_types_and_answers_to_older_keys_are_dropped(opened, address):
    page = opened(f"{address}/#/library/0")
    held, sent = [], []
    page.on("request", lambda request: sent.append(text_of(request)) if "/search?" in request.url else None)
    page.route("**/search?*query=sn*", lambda route: held.append(route))
    box = page.get_by_label("Search for")
    with page.expect_request("**/search?*query=sn*"):
        box.fill("sn")
    box.fill("red")
    box.press_sequentially(" shoes in the city")
    page.get_by_text("Searching").wait_for()
    assert page.locator(".hit").count() == 0
    held[0].continue_()
    page.locator(".hit mark").first.wait_for()
    assert {each.lower() for each in page.locator(".hit mark").all_inner_texts()} == set(RED.split())
    assert (sent[0], sent[-1]) == ("sn", RED) and len(sent) <= 3
    assert unquote(unquote(page.url)).endswith("search/text=red+shoes+in+the+city")
    box.fill("")
    page.locator(".hit").first.wait_for(state="detached")
    assert page.url.endswith("#/library/0")


def test_a_search_keeps_to_video_and_time_gives_frames_and_positions_and_is_there_on_the_way_back(opened, address):
    page = opened(f"{address}/#/library/0")
    page.get_by_label("Search for").fill(RED)
    page.locator("select[name=in]").select_option("pictures")
    page.locator("[name=video]").fill("film")
    assert page.locator("datalist option").get_attribute("value") == f"film {EVIL}"
    page.locator("[name=video]").fill(f"film {EVIL}")
    page.locator("[name=from]").fill("0:10")
    with page.expect_response("**/search?*in=frames*start_s=10*"):
        page.keyboard.press("Enter")
    page.locator(".hit-line", has_text="0:00.0").wait_for(state="detached")
    page.wait_for_selector(".hit")
    times = page.locator(".hit-line .chip:not(.play)").all_inner_texts()
    assert times and all(time >= "0:10" for time in times) and times[0] < f"0:{SCENE_S}"
    assert width_px(page.locator(".hit img").first) == 64
    page.locator(".hit-line .chip:not(.play)").first.click()
    page.wait_for_selector(".toast")
    assert page.evaluate("navigator.clipboard.readText()") == f"film {EVIL} {times[0]}"
    page.set_viewport_size({"width": 390, "height": 300})
    last = page.locator(".hit > a").last
    last.scroll_into_view_if_needed()
    down_px = page.evaluate("scrollY")
    last.click()
    page.wait_for_selector(".still img")
    assert page.evaluate("scrollY") == 0 < down_px
    page.go_back()
    page.wait_for_selector(".hit")
    page.evaluate(ARRIVES.replace("TRUE", f"() => scrollY === {down_px}"))
    assert page.locator("[name=from]").input_value() == "0:10"
    assert page.locator(".hit-line .chip:not(.play)").all_inner_texts() == times


def test_hits_of_hostile_titles_come_by_video_and_more_like_one_is_a_search_with_a_way_back(opened, hostile):
    page = opened(f"{hostile}/#/library/0/search/text%3Dsnow")
    page.locator(".group").nth(len(TITLES) - 1).wait_for()
    shown = [each.strip() for each in page.locator(".group h2 a").all_inner_texts()]
    assert sorted(shown) == sorted(title.strip() for title in TITLES)
    group = page.locator(".group").first
    assert group.locator(".hit").count() == 4
    group.get_by_role("button", name="more in this film").click()
    assert group.locator(".hit").count() > 4
    assert page.evaluate("document.activeElement.closest('.hit') !== null")
    page.get_by_role("link", name="More like").first.click()
    page.locator(".subject img").wait_for()
    page.locator(".hit").first.wait_for()
    assert page.locator(".why").first.inner_text() == "looks like that frame"
    assert "like%3D" in page.url
    page.go_back()
    page.locator(".why", has_text="its picture is near the words").first.wait_for()
    page.go_forward()
    page.locator(".subject img").wait_for()
    page.get_by_role("button", name="Back to words").click()
    page.locator(".subject img").wait_for(state="detached")
    assert page.locator(".hit").count() == 0


def test_a_picture_is_dropped_or_chosen_and_what_is_no_picture_is_refused(opened, hostile):
    page = opened(f"{hostile}/#/library/0")
    jpeg = picture(CHAPTERS[RED])
    page.evaluate(DROP, [list(jpeg), "image/jpeg"])
    page.locator(".why", has_text="like the picture").first.wait_for()
    assert width_px(page.locator(".subject img")) == 64
    page.locator("input[type=file]").set_input_files({"name": "a.png", "mimeType": "image/png", "buffer": jpeg})
    page.wait_for_url("**/search/picture*2")
    page.evaluate(DROP, [[1, 2, 3], "text/plain"])
    page.get_by_text("That is not a picture").wait_for()
    page.go_back()
    page.wait_for_url("**/search/picture*1")
    page.locator(".why", has_text="like the picture").first.wait_for()
    page.reload()
    page.get_by_role("alert").get_by_text("Drop it here again").wait_for()


def test_the_page_says_which_space_is_searched_if_it_is_not_the_librarys_own(opened, two_spaces):
    other = two_spaces.spaces()[1].name
    with served(two_spaces.uri, space=other) as there, served(two_spaces.uri) as here:
        page = opened(f"{there}/#/library/0/search/text=a+boat&in=frames")
        page.locator(".hit").first.wait_for()
        assert page.get_by_text("Pictures are searched in the space").inner_text().endswith(f"{other}.")
        assert page.locator("select[name=in]").input_value() == "frames"
        page = opened(f"{here}/#/library/0")
        page.locator("form").wait_for()
        assert page.get_by_text("Pictures are searched in the space").count() == 0
        page.goto("about:blank")


def test_examples_are_what_is_seen_and_without_a_language_model_the_ways_to_one_are_shown(opened, photographs: str):
    for width in (1280, 390):
        page = opened(f"{photographs}/#/library/0", width)
        tries = page.locator(".examples a")
        tries.first.wait_for()
        assert tries.all_inner_texts()[:2] == ["mountains", "a cat"]
        assert hard_to_use(page) == []
        assert page.evaluate(BESIDE_PX) <= 0
        tries.nth(1).click()
        page.locator(".hit img").first.wait_for()
        assert page.get_by_label("Search or ask").input_value() == "a cat"
        assert not page.locator(".examples").is_visible()
        page.get_by_label("Search or ask").fill("")
        tries.first.wait_for()
    page.get_by_role("button", name="Ask, or connect a model").click()
    page.get_by_role("heading", name="Connect a model").wait_for()
    assert page.locator(".ways-to-a-model li").count() == 3
    assert page.get_by_label("One answer a line").is_visible(), "without words an answer is chosen of some"
    assert hard_to_use(page) == []


def test_words_that_the_space_does_not_know_are_said_to_be_unknown(opened, photographs: str):
    for page_of in ("search", "moments"):
        page = opened(f"{photographs}/#/library/0/{page_of}/text%3D%25E7%258C%25AB")
        page.get_by_text("photo is a table of English words and knows none in '猫'").wait_for()
        assert page.locator(".hit").count() == page.locator(".moment-card").count() == 0
        assert hard_to_use(page) == []


# Finding moments.


def test_by_keyboard_from_the_search_to_a_moment_that_plays_and_its_time_line(opened, address, shown):
    page = opened(f"{address}/#/library/0")
    page.get_by_label("Search for").fill(SNOW)
    page.get_by_role("link", name="Find moments").focus()
    page.keyboard.press("Enter")
    page.get_by_role("article", name="Moment 1").wait_for()
    assert page.get_by_label("What happens").input_value() == SNOW
    page.get_by_role("status").get_by_text("a probability of").first.wait_for()
    card = page.get_by_role("article", name="Moment 1")
    assert [image.get_attribute("src") for image in card.locator("img").all()] == [
        f"/pictures/0/{shown.video_id}/{number}" for number in (40, 59)
    ]
    assert page.get_by_role("img", name="Time line of the video").get_attribute("aria-label").count(" to ") >= 2
    card.get_by_role("button", name="Play").focus()
    page.keyboard.press("Enter")
    page.locator("dialog .player").wait_for()
    page.keyboard.press("Escape")
    page.locator("dialog .player").wait_for(state="hidden")  # closing it gives the focus back to the button
    card.get_by_role("link", name="On the time line").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="When does something happen?").wait_for()
    page.get_by_role("article", name="Moment 1").wait_for()
    assert page.get_by_label("What happens").input_value() == SNOW
    page.get_by_role("button", name="Go to 0:40.0 to 1:00.0").click()
    page.get_by_text("frame 40, 41 of 60").wait_for()


def test_an_agent_is_chosen_on_the_page_and_a_reload_finds_its_moments(opened, client):
    page = opened(f"{client.address}/#/library/0/moments")
    page.get_by_label("What happens").fill("a bird at sea")
    page.get_by_label("who looks").select_option("eea")
    assert page.get_by_label("look at").is_disabled()
    page.get_by_text("may cost money").wait_for()
    page.get_by_label("What happens").press("Enter")
    page.get_by_role("link", name="The answer of the agent").wait_for()
    said = page.locator(".moments-status").inner_text()
    assert "question%3Dq" in page.url
    page.reload()
    page.get_by_role("link", name="The answer of the agent").wait_for()
    assert page.locator(".moments-status").inner_text() == said


def test_the_menu_of_a_page_downloads(opened, client, library):
    video = Library.open(str(library)).video("film-01").video_id
    page = opened(f"{client.address}/#/library/0/video/{video}", 390)
    menu = page.locator("details.take-away").first
    menu.locator("summary").focus()
    page.keyboard.press("Enter")
    with page.expect_download() as download:
        menu.get_by_role("link", name="Subtitles (VTT)").click()
    assert download.value.suggested_filename.endswith(".vtt")
    assert "code word" in Path(download.value.path()).read_text()
    menu.get_by_role("button", name="Copy the command").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("kinodex export clips ") and f"--video {video}" in copied
    menu.locator("summary").focus()
    page.keyboard.press("Escape")
    assert menu.get_attribute("open") is None


def test_a_model_that_sees_is_offered_to_look_at_what_was_found(
    opened, looking: tuple[Client, ChatServer], client: Client
) -> None:
    with_model, _ = looking
    assert client.get("/data/home").json["serve"]["looks"] is None, "the built-in model does not see"
    page = opened(f"{with_model.address}#/library/0/search/text%3Da%2Bboat%26in%3Dpictures")
    page.get_by_role("button", name="Have tester look at the first 5").click()
    page.get_by_text("present: a model saw it in 1 of the 5 moments it looked at").wait_for()
    assert page.locator(".judged.yes").inner_text() == "yesa boat is in the picture (1)"
    assert page.locator(".judged.no").count() == 4 and page.locator(".look").count() == 0
    page.goto(f"{with_model.address}#/library/0/moments/text%3Da%2Bred%2Bboat")
    page.get_by_role("button", name="Have tester look at the first").click()
    page.locator(".judged.yes").wait_for()
    assert page.locator(".weaker .judged.no").count() >= 1, "what the model denied stands apart"
    page = opened(f"{client.address}#/library/0/search/text%3Da%2Bboat")
    page.locator(".hit").first.wait_for()
    assert page.locator(".look").count() == 0
    page.goto("about:blank")  # before the server ends


# Asking: live to the answer, stopped, followed up, by keyboard.


@pytest.fixture
def gated(library: Path, tmp_path: Path) -> Iterator[tuple[Client, Gate]]:
    gate = Gate(Rules())
    with ChatServer(gate, models=[MODEL]) as models:
        choice = ModelChoice(MODEL, models.base_url, cache=False, output_price=100.0)
        with serving([library], tmp_path / "traces", choice) as client:
            try:
                yield client, gate
            finally:
                gate.open.set()


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
    page.keyboard.press("Tab")  # past the summary of the options, which are open without a language model
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
    # Segments are drawn before the first round is: the line of figures follows with the next event.
    expect(figures).to_have_text(
        re.compile(r"^looking: round 1, \d+ frames?, \d+ calls?, \d+:\d\d, \$[\d.]+$"), timeout=30_000
    )
    page.locator(".now-sentence").get_by_text("Round 1: it opened").wait_for()
    assert page.locator(".answer").count() == 0
    page.get_by_text(re.compile(r"The model looks at \d+ frames now")).wait_for()
    page.locator(".said-of-frames li q").first.wait_for()
    at_px = "(marks, name) => marks.map((each) => Number(each.getAttribute(name)))"
    feet = page.locator(".timeline .seen-stem").evaluate_all(at_px, "x2")
    assert feet and {*feet} <= {*page.locator(".timeline .shown-frame").evaluate_all(at_px, "x1")}, "each in its place"
    page.locator(".seen-frame").first.press("Enter")
    assert width_px(page.locator("dialog img")) > 64
    page.keyboard.press("Escape")
    page.reload()
    page.locator(".timeline .segment").nth(1).wait_for(state="attached")
    assert question_key(page) == key and page.locator("h1").inner_text() == BIRD
    page.locator(".timeline .segment[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    focused = page.evaluate(FOCUSED)
    page.get_by_role("button", name="Stop and take the best answer so far").evaluate("button => button.click()")
    page.get_by_role("button", name="Do not wait").wait_for()
    expect(figures).to_have_text(re.compile("^stopping"))
    gate.open.set()
    page.locator(".answer .warn").get_by_text("you stopped it").wait_for()
    assert page.locator(".looking").count() == 0 and page.locator(".seen-frame").count() > 0
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
            page = opened(f"{client.address}/#/ask/0", 360, expected="400 (Bad Request)")
            page.get_by_label("Your question").fill(BIRD)
            page.get_by_text("Answers to choose from").click()
            page.get_by_label("One answer a line").fill("red")
            page.evaluate("document.querySelector('form').requestSubmit()")
            page.get_by_role("alert").get_by_text("2 to 26").wait_for()
            page.get_by_label("One answer a line").fill("red\nblack")
            page.get_by_role("button", name="Ask", exact=True).click()
            failed = page.get_by_role("alert").filter(has_text="There is no answer")
            calls = failed.get_by_role("link", name="Every call until then")
            calls.wait_for()
            said = failed.inner_text()
            assert "this key is not known" in said, "the server's words"
            assert f"eea asked {MODEL} at {models.base_url}; 0 replies came" in said, "what was tried"
            assert "Correct the key or the address: kinodex doctor --base-url URL" in said, "the one thing to do"
            page.reload()
            calls.wait_for()
            assert failed.inner_text() == said
            assert hard_to_use(page) == [] and page.evaluate(BESIDE_PX) <= 0
            page.get_by_role("link", name="Change the question").click()
            page.get_by_label("One answer a line").wait_for()
            assert page.get_by_label("Your question").input_value() == BIRD
            assert page.get_by_label("One answer a line").input_value() == "red\nblack"
            page.goto("about:blank")  # before the server ends


def test_without_a_language_model_the_page_says_how_to_give_one(opened, two_spaces, tmp_path) -> None:
    other = two_spaces.spaces()[1].name
    with serving([two_spaces.uri], tmp_path / "traces", space=other) as client:
        page = opened(f"{client.address}/#/ask/0", 360)
        assert hard_to_use(page) == [] and page.evaluate(BESIDE_PX) <= 0
        ways = page.locator(".ways-to-a-model pre").all_inner_texts()
        options = ("--base-url http", "--model gpt-4o", "--models models.toml")
        assert [each.startswith(f"kinodex serve {two_spaces.uri} --model") for each in ways] == [True] * 3
        assert [option in way for option, way in zip(options, ways, strict=True)] == [True] * 3
        page.get_by_role("button", name="Copy").first.click()
        assert page.evaluate("navigator.clipboard.readText()") == ways[0]
        assert page.get_by_label("Your question").is_visible()
        page.goto("about:blank")  # before the server ends
