"""Videos of a library in the orders of its page: found by words, a hundred at a time, and as pictures in a browser."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.web.inputs import ROWS, VideoList, natural
from tests.bench.page import make_page_library
from tests.support.libraries.viewer_library import library_of_films, library_of_titles, served
from tests.support.pages import browser_context, width_px

VIDEOS = ROWS + 5


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> Library:
    return library_of_titles(tmp_path_factory.mktemp("many") / "library", VIDEOS)


@pytest.fixture(scope="module")
def made_up(tmp_path_factory) -> Library:
    return make_page_library(str(tmp_path_factory.mktemp("made-up") / "library"), 12, lambda done: None)


@pytest.fixture(scope="module")
def films(tmp_path_factory) -> Library:
    return library_of_films(tmp_path_factory.mktemp("films") / "library", ["Harbour 10", "harbour 9", "Bakery"])


def titles(page) -> list[str]:
    return [row["title"] for row in page["rows"]]


def test_they_come_in_pages_and_by_all_words_of_title_or_place(many) -> None:
    videos = VideoList(many)
    first, last = videos.page(), videos.page(start=ROWS)
    assert first["count"] == last["count"] == VIDEOS
    assert (len(first["rows"]), len(last["rows"])) == (ROWS, 5)
    assert titles(first)[0] == "film 0000" and titles(last)[-1] == f"film {VIDEOS - 1:04}"
    assert titles(videos.page("0007 FILM")) == ["film 0007"]
    assert videos.page("film.mp4")["count"] == VIDEOS and videos.page("film zebra")["count"] == 0


def test_they_are_sorted_as_people_count_by_length_and_by_age(films) -> None:
    videos = VideoList(films)
    assert titles(videos.page()) == ["Bakery", "harbour 9", "Harbour 10"]
    row = films.videos()[0]
    other = replace(
        row, video_id="f" * 32, title="long", duration_s=9999.0, frames=0, segments=0, transcript_lines=0,
        ingested_at=row.ingested_at + timedelta(hours=1),
    )  # fmt: skip
    films.writer.complete([other])
    assert titles(videos.page())[-1] == "long"  # noticed without opening the library again
    assert titles(videos.page(order="length"))[0] == titles(videos.page(order="newest"))[0] == "long"
    with pytest.raises(UsageError, match="title, length, newest"):
        videos.page(order="codec")


def test_digits_sort_by_value() -> None:
    assert sorted(["b", "part 10", "Part 2", "10", "9a"], key=natural) == ["9a", "10", "b", "Part 2", "part 10"]


def test_a_row_counts_what_was_added(made_up) -> None:
    (row,) = VideoList(made_up).page("made-up://3")["rows"]
    assert (row["frames"], row["transcript_lines"]) == (12, 4)
    assert (row["captions"], row["detections"], row["speech"], row["text"]) == (2, 0, 0, 0)


@pytest.fixture(scope="module")
def context(many, made_up, films):
    with browser_context() as context:
        yield context


@pytest.mark.needs_chromium
def test_a_library_opens_as_pictures_and_a_click_opens_the_video(opened, made_up) -> None:
    with served(made_up.uri) as address:
        page = opened(address)
        card = page.locator(".posters li").first
        card.wait_for()
        assert width_px(card.locator("img")) == 480
        assert "12 frames" in card.inner_text() and "4 lines" in card.inner_text()
        assert page.locator("table").count() == 0
        card.locator("a").click()
        page.wait_for_selector(".still img")
        page.go_back()
        page.wait_for_selector(".posters li")
        page.goto("about:blank")


@pytest.mark.needs_chromium
def test_many_are_turned_found_and_sorted_and_the_address_holds_it(opened, many) -> None:
    with served(many.uri) as address:
        page = opened(address)
        links = page.locator(".posters a")
        page.wait_for_selector(".posters a")
        assert (links.count(), page.locator(".poster-title").first.inner_text()) == (ROWS, "film 0000")
        page.get_by_role("button", name="Next").click()
        page.get_by_text(f"{ROWS + 1} to {VIDEOS} of {VIDEOS} videos").wait_for()
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
