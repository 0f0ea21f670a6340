"""Search of an open library, and its page in Chromium: as one types, by picture, like a frame, by video."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
import pytest

from kinodex.web.search import LibrarySearch, SearchRequest
from tests.support.libraries.viewer_library import EVIL, SCENE_S, SCENES, hits_of, library_of_films, picture, served
from tests.support.pages import browser_context, hard_to_use, width_px

if TYPE_CHECKING:
    from playwright.sync_api import Request

RTL = "שלום עולם, سلام"
TITLES = (EVIL, f"{RTL} ", "long " + "unbroken" * 40, ":bug: :b :smile: *bold* [link](javascript:1)")
RED = "red shoes in the city"
ARRIVES = """down => new Promise((arrive) => {
  const look = () => (scrollY === down ? arrive() : requestAnimationFrame(look));
  look();
})"""
"""Waits for a place of the page; Playwright's own wait looks again by `eval`, which the page's policy forbids."""
DROP = """([bytes, type]) => {
  const data = new DataTransfer();
  data.items.add(new File([Uint8Array.from(bytes)], "dropped", { type }));
  document.querySelector("main").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
}"""


def test_a_text_is_embedded_once_and_a_picture_is_searched_by_the_other_tower(shown):
    search = LibrarySearch(shown.library, shown.library.fingerprint)
    assert search.embed_text(RED) is search.embed_text(RED)
    found = search.search_picture(picture(SCENES[RED]), SearchRequest(most=5))
    tower = search.image_tower
    rgb = np.full((36, 64, 3), SCENES[RED], np.uint8)
    best = shown.library.search.frames(tower.embed(tower.prepare(rgb)[None])[0], k=5, min_gap_s=2.0)
    assert hits_of(found)[0]["similarity"] == pytest.approx(best[0].score, abs=0.02)
    assert "like the picture" in hits_of(found)[0]["why"]


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    library = library_of_films(tmp_path_factory.mktemp("films") / "library", TITLES)
    with served(library.uri) as address:
        yield address


@pytest.fixture(scope="module")
def context(address, two_spaces, films):
    with browser_context("clipboard-read", "clipboard-write") as context:
        yield context


def text_of(request: Request) -> str:
    return parse_qs(urlsplit(request.url).query).get("text", [""])[0]


@pytest.mark.needs_chromium
def test_hits_come_while_one_types_and_answers_to_older_keys_are_dropped(opened, address):
    page = opened(f"{address}/#/library/0")
    held, sent = [], []
    page.on("request", lambda request: sent.append(text_of(request)) if "/search?" in request.url else None)
    page.route("**/search?text=sn*", lambda route: held.append(route))
    box = page.get_by_role("searchbox", name="Search")
    with page.expect_request("**/search?text=sn*"):
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


@pytest.mark.needs_chromium
def test_a_search_keeps_to_video_and_time_gives_frames_and_positions_and_is_there_on_the_way_back(opened, address):
    page = opened(f"{address}/#/library/0")
    page.get_by_role("searchbox", name="Search").fill(RED)
    page.locator("select[name=kind]").select_option("frames")
    page.locator("[name=video]").fill("film")
    assert page.locator("datalist option").get_attribute("value") == f"film {EVIL}"
    page.locator("[name=video]").fill(f"film {EVIL}")
    page.locator("[name=from]").fill("0:10")
    with page.expect_response("**/search?*from=10*"):
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
    page.evaluate(ARRIVES, down_px)
    assert page.locator("[name=from]").input_value() == "0:10"
    assert page.locator(".hit-line .chip:not(.play)").all_inner_texts() == times


@pytest.mark.needs_chromium
def test_hits_of_hostile_titles_come_by_video_and_more_on_demand(opened, films):
    page = opened(f"{films}/#/library/0/search/text%3Dsnow", width=390, scheme="dark")
    page.locator(".group").nth(len(TITLES) - 1).wait_for()
    shown = [each.strip() for each in page.locator(".group h2 a").all_inner_texts()]
    assert sorted(shown) == sorted(title.strip() for title in TITLES)
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    group = page.locator(".group").first
    assert group.locator(".hit").count() == 4
    group.get_by_role("button", name="more in this film").click()
    assert group.locator(".hit").count() > 4
    assert page.evaluate("document.activeElement.closest('.hit') !== null")
    assert hard_to_use(page) == []


@pytest.mark.needs_chromium
def test_more_like_this_is_a_search_with_a_way_back(opened, films):
    page = opened(f"{films}/#/library/0/search/text%3Dsnow")
    page.get_by_role("link", name="More like").first.click()
    page.locator(".subject img").wait_for()
    page.locator(".hit").first.wait_for()
    assert page.locator(".why").first.inner_text() == "looks like that frame"
    assert "like%3D" in page.url
    page.go_back()
    page.locator(".why", has_text="looks like the words").first.wait_for()
    page.go_forward()
    page.locator(".subject img").wait_for()
    page.get_by_role("button", name="Back to words").click()
    page.locator(".subject img").wait_for(state="detached")
    assert page.locator(".hit").count() == 0


@pytest.mark.needs_chromium
def test_a_picture_is_dropped_or_chosen_and_what_is_no_picture_is_refused(opened, films):
    page = opened(f"{films}/#/library/0")
    jpeg = picture(SCENES[RED])
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


@pytest.mark.needs_chromium
def test_the_page_says_which_space_is_searched_if_it_is_not_the_librarys_own(opened, two_spaces):
    other = two_spaces.spaces()[1].name
    with served(two_spaces.uri, space=other) as there, served(two_spaces.uri) as here:
        page = opened(f"{there}/#/library/0/search/text=a+boat&kind=frames")
        page.locator(".hit").first.wait_for()
        assert page.get_by_text("Pictures are searched in the space").inner_text().endswith(f"{other}.")
        page = opened(f"{here}/#/library/0")
        page.locator("form").wait_for()
        assert page.get_by_text("Pictures are searched in the space").count() == 0
        page.goto("about:blank")
