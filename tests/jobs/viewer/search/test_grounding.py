"""Ranges of a library in which something happens: as the server gives them, and on the pages in Chromium."""

from __future__ import annotations

import json
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from kinodex.agent.environment import Environment
from kinodex.index.errors import QueryError
from kinodex.index.spaces.space import load_space
from kinodex.jobs.errors import UsageError
from kinodex.jobs.ground import ground
from kinodex.web.search import GroundRequest, grounding_view, read_ground_request
from tests.support.libraries.viewer_library import SAID, library_of_titles, served
from tests.support.pages import browser_context, hard_to_use

SNOW, DRAGON = "snow", "a purple dragon"


def fetch(address, **query):
    with urlopen(f"{address}/data/libraries/0/moments?{urlencode(query)}") as reply:
        return json.load(reply)


@pytest.mark.parametrize(
    ("query", "error", "says"),
    [
        ({"text": " "}, QueryError, "empty"),
        ({"text": "a" * 2001}, QueryError, "2001 characters"),
        ({"text": "a", "in": "smells"}, UsageError, "pictures"),
        ({"text": "a", "most": "0"}, UsageError, "from 1 to 50"),
        ({"text": "a", "most": "-1"}, UsageError, "from 1 to 50"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused(query, error, says):
    with pytest.raises(error, match=says):
        read_ground_request(query)


def test_a_request_is_read_with_what_it_leaves_out():
    assert read_ground_request({"text": SNOW}) == GroundRequest(SNOW)
    read = read_ground_request({"text": SNOW, "in": "words", "video": "film", "most": "7"})
    assert read == GroundRequest(SNOW, "film", "words", 7)


def test_the_server_gives_ranges_with_the_frames_at_both_ends(address, shown):
    found = fetch(address, text=SNOW, **{"in": "pictures"})
    best = found["ranges"][0]
    assert (found["present"], best["start_s"], best["end_s"]) == (True, 40.0, 60.0)
    assert (best["begin_frame"], best["end_frame"], best["found_in"], best["words"]) == (40, 59, "pictures", "")
    assert best["score"] > found["least_score"] > 0
    row = shown.library.video(shown.video_id)
    assert found["videos"] == {row.video_id: {"title": row.title, "start_s": 0.0, "duration_s": row.duration_s}}


def test_what_is_not_there_comes_with_the_reason_and_the_best_places(address):
    found = fetch(address, text=DRAGON, video="film", most=1)
    assert (found["present"], found["ranges"], len(found["weaker"])) == (False, [], 1)
    assert f"stands out by {found['evidence']:.2f}, and it takes {found['least_evidence']:.2f}" in found["reason"]


def test_words_that_were_found_are_quoted(shown):
    tower = load_space("builtin", device="cpu", towers="text").embed_text
    environment = Environment.of(shown.library, shown.library.videos(), tower)
    found = ground(shown.library, environment, "we are at sea", evidence_from="words", least=1.0)
    view = grounding_view(shown.library, found, environment)
    assert view["ranges"][0]["words"].startswith(SAID[:13])
    assert grounding_view(shown.library, found)["ranges"][0]["words"] == ""


def test_of_videos_without_pictures_and_words_the_reason_says_so(tmp_path):
    library = library_of_titles(tmp_path / "library", 2)
    with served(library.uri) as address:
        found = fetch(address, text=SNOW)
    assert (found["present"], found["weaker"]) == (False, [])
    assert "neither pictures nor words" in found["reason"]


def test_an_unknown_library_video_and_an_empty_text_are_said(address):
    for path, status in (
        ("7/moments?text=a", 404),
        ("0/moments?text=a&video=nobody", 404),
        ("0/moments?text=", 400),
    ):
        with pytest.raises(HTTPError) as refused:
            urlopen(f"{address}/data/libraries/{path}")
        assert refused.value.code == status
        refused.value.close()


@pytest.fixture(scope="module")
def context(address):
    with browser_context() as context:
        yield context


@pytest.mark.needs_chromium
def test_by_keyboard_from_the_search_to_a_moment_that_plays_and_its_time_line(opened, address, shown):
    page = opened(f"{address}/#/library/0")
    page.get_by_label("Search", exact=True).fill(SNOW)
    page.get_by_role("link", name="Find moments").focus()
    page.keyboard.press("Enter")
    page.get_by_role("article", name="Moment 1").wait_for()
    assert page.get_by_label("What happens").input_value() == SNOW
    assert page.get_by_role("status").filter(has_text="2 moments").count() == 1
    card = page.get_by_role("article", name="Moment 1")
    assert [image.get_attribute("src") for image in card.locator("img").all()] == [
        f"/pictures/0/{shown.video_id}/{number}" for number in (40, 59)
    ]
    assert page.get_by_role("img", name="Time line of the video").get_attribute("aria-label").count(" to ") == 2
    card.get_by_role("button", name="Play").focus()
    page.keyboard.press("Enter")
    page.locator("dialog .player").wait_for()
    page.keyboard.press("Escape")
    card.get_by_role("link", name="On the time line").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="When does something happen?").wait_for()
    page.get_by_role("article", name="Moment 1").wait_for()
    assert page.get_by_label("What happens").input_value() == SNOW
    page.get_by_role("button", name="Go to 0:40.0 to 1:00.0").click()
    page.get_by_text("frame 40, 41 of 60").wait_for()


@pytest.mark.needs_chromium
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1400, "light")])
def test_an_absent_event_is_said_to_be_absent_and_the_terms_are_explained(opened, address, width, scheme):
    page = opened(f"{address}/#/library/0/moments/{urlencode({'text': DRAGON}).replace('=', '%3D')}", width, scheme)
    page.get_by_role("status").get_by_text("Not found.").wait_for()
    page.get_by_role("status").get_by_text("it takes 2.00 to be there").wait_for()
    page.get_by_role("button", name="it takes").press("Enter")
    page.get_by_text("Where the search draws the line").wait_for()
    page.keyboard.press("Escape")
    page.get_by_text("The 2 best places all the same").click()
    page.get_by_role("article").first.wait_for()
    assert hard_to_use(page) == []
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    page.get_by_label("What happens").fill(SNOW)
    page.keyboard.press("Enter")
    page.get_by_role("status").get_by_text("2 moments").wait_for()
    page.go_back()
    page.get_by_role("status").get_by_text("Not found.").wait_for()
