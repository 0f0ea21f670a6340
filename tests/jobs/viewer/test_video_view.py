"""One video: what its time line draws, the frame that it opens on, boxes by frame; and its page in Chromium."""

from __future__ import annotations

import re
from urllib.request import urlopen

import numpy as np
import pytest

from kinodex.index.errors import TimeOutside
from kinodex.index.rows import SegmentRow
from kinodex.web.inputs import frame_detections, opening_s, video_view
from tests.support.libraries.viewer_library import EVIL, SECONDS
from tests.support.pages import browser_context, hard_to_use


def test_a_video_comes_in_columns_with_frames_by_label_and_boxes_frame_by_frame(shown):
    view = video_view(shown.library, shown.video_id)
    assert view["frame_nos"] == view["times_s"] == list(range(SECONDS))
    assert view["segments"][1] == {"start_s": 20.0, "end_s": 40.0, "kind": "shot"}
    assert view["screen_text"][1] == {"start_s": 50.0, "end_s": 52.0, "text": "THE END"}
    assert [(each["level"], each["title"]) for each in view["contents"]] == [
        ("chapter", "The harbour"),
        ("scene", "Scene of boats 0"),
        ("scene", "Scene of boats 1"),
        ("chapter", ""),
        ("scene", "Scene of boats 2"),
    ]
    assert view["detected"] == {f"shoe {EVIL}": [3]}
    (box,) = frame_detections(shown.library, shown.video_id, 3)
    assert box.box == (0.25, 0.25, 0.5, 0.75)
    assert frame_detections(shown.library, shown.video_id, 4) == []
    with pytest.raises(TimeOutside):
        frame_detections(shown.library, shown.video_id, 999)


def test_a_film_opens_in_the_middle_of_its_longest_shot():
    times_s = np.arange(0.0, 60.0)
    shots = [SegmentRow("v", at, *span, "shot") for at, span in enumerate([(0.0, 10.0), (10.0, 50.0), (50.0, 60.0)])]
    assert opening_s(times_s, shots) == 30.0
    assert opening_s(times_s, []) == 29.0
    assert opening_s(times_s[:0], shots) is None


@pytest.fixture(scope="module")
def context(address):
    with browser_context("clipboard-read", "clipboard-write") as context:
        yield context


def time_of(page) -> float:
    return float(page.get_by_role("slider", name="Time line").get_attribute("aria-valuenow"))


@pytest.mark.needs_chromium
def test_labels_and_frames_stay_in_their_places(opened, address, shown):
    page = opened(f"{address}/#/library/0/video/{shown.video_id}/3.0")
    page.wait_for_selector(".box", state="attached")
    sizes = "['.still', '.still img'].map((each) => document.querySelector(each).getBoundingClientRect().height)"
    before = page.evaluate(sizes)
    page.route("**/pictures/**", lambda route: None)  # the next frame never comes
    with page.expect_request("**/pictures/**/4"):
        page.keyboard.press("ArrowRight")
    assert page.evaluate(sizes) == before
    page.unroute_all(behavior="ignoreErrors")


@pytest.mark.needs_chromium
def test_a_video_shows_detections_captions_and_what_is_said(opened, address, shown):
    page = opened(f"{address}/#/library/0/video/{shown.video_id}/3.0")
    box = page.locator(".still .box")
    box.wait_for(state="attached")
    sides = box.evaluate("box => ['left', 'top', 'width', 'height'].map((side) => box.style[side])")
    assert sides == ["25%", "25%", "25%", "50%"] and box.inner_text() == f"shoe {EVIL}"
    assert EVIL in page.locator(".tag").first.inner_text()
    page.keyboard.press("ArrowRight")
    assert box.count() == 0
    page.get_by_text("we are at sea").locator("button").click()
    assert page.locator(".still img").get_attribute("src").endswith("/20")
    assert page.locator(".lines li.now").count() == 2


@pytest.mark.needs_chromium
def test_chapters_are_listed_and_go_to_their_beginning(opened, address, shown):
    page = opened(f"{address}/#/library/0/video/{shown.video_id}/3.0")
    chapters = page.locator(".contents > li")
    chapters.first.wait_for()
    assert "The harbour" in chapters.first.inner_text() and "Boats leave & return." in chapters.first.inner_text()
    assert "Chapter 2" in chapters.nth(1).inner_text()
    assert chapters.first.get_attribute("aria-current") == "true"
    chapters.first.get_by_text("2 scenes").click()
    chapters.first.locator(".scenes .chip").nth(1).click()
    page.wait_for_url(f"**/video/{shown.video_id}/15")
    assert page.locator(".scenes [aria-current]").inner_text().endswith("A boat is seen.")
    chapters.nth(1).locator(".chip").click()
    assert page.locator(".contents > [aria-current] strong").inner_text() == "Chapter 2"


@pytest.mark.needs_chromium
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


@pytest.mark.needs_chromium
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_the_page_of_a_video_is_easy_to_use(opened, address, shown, width, scheme):
    page = opened(f"{address}/#/library/0/video/{shown.video_id}/3", width, scheme)
    page.wait_for_selector(".box", state="attached")
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    assert hard_to_use(page) == []
    assert "shot" not in page.locator("main").inner_text().replace("3 shots", "").replace("from shot to shot", "")
