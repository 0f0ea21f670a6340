"""The player in a real headless Chromium: what it shows is what the library stored, however it comes there."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from numpy.typing import NDArray
from PIL import Image

from tests.support.libraries.play_library import EVIL, LATE_S, WAYS
from tests.support.libraries.viewer_library import chromium, library_of_films, served
from tests.support.servers.serve_server import Client, serving

pytestmark = [pytest.mark.needs_chromium, pytest.mark.slow, pytest.mark.timeout(120)]
WAIT_MS = 40_000
CODE = 'document.querySelector("link[rel=modulepreload]").href'
OPEN = """async ([id, title, start, end]) => {
  const { openPlayer } = (await import(CODE)).default["play/player.js"];
  document.querySelector("main a, main button, a").focus();
  await openPlayer(0, id, title, { start_s: start, end_s: end });
}""".replace("CODE", CODE)
MAKE = """async ([id, at, failed]) => {
  const { "play/player.js": { player }, "shared/source.js": { load } } = (await import(CODE)).default;
  window.inner?.close();
  window.inner?.element.remove();
  const { video } = await load(`libraries/0/videos/${id}`);
  window.inner = player(0, video, at);
  document.querySelector("main").prepend(window.inner.element);
  await window.inner.ready;
  return document.querySelector(".player .way").dataset.way;
}""".replace("CODE", CODE)
ARRIVE = """time => new Promise((arrived, refused) => {
  window.inner.seek(time);
  const look = () => {
    const video = document.querySelector(".player video");
    if (video?.error) return refused(new Error(video.error.message));
    const from = video?.src && new URL(video.src).searchParams.get("from"); // another stream for another time
    const there = !video || (video.readyState > 1 && !video.seeking && (!from || Math.abs(from - time) < 0.01));
    if (there && Math.abs(window.inner.time() - time) < 0.01) arrived();
    else requestAnimationFrame(look);
  };
  look();
})"""
DRAWN = 40
"""As many times the picture is looked at: a browser draws a moment after it has arrived, and says so unreliably."""
SHOWN = """async () => {
  const screen = document.querySelector(".player video, .player .slides img");
  if (screen.tagName === "IMG") await screen.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [192, 108];
  canvas.getContext("2d").drawImage(screen, 0, 0, 192, 108);
  return canvas.toDataURL("image/png").split(",")[1];
}"""
MOVES = """start => new Promise((moved) => {
  const look = () => {
    const video = document.querySelector(".player video");
    if (window.inner.time() > start + 0.5 && (!video || video.currentTime > 0)) moved(true);
    else requestAnimationFrame(look);
  };
  look();
})"""


@pytest.fixture(scope="module")
def gone(tmp_path_factory) -> Iterator[tuple[Client, Path, str]]:
    """A library, with stored frames, whose only film is not where it was."""
    folder = tmp_path_factory.mktemp("gone")
    film = folder / "late.mp4"
    library = library_of_films(folder / "library", [str(film.with_suffix(""))])
    with serving([library.uri], folder / "traces") as client:
        (row,) = library.videos()
        assert row.uri == str(film)
        yield client, film, row.video_id


@pytest.fixture(scope="module")
def browser(playing, gone):
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def page(browser, playing):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(WAIT_MS)
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(playing.address)
    page.wait_for_selector("main h1")
    yield page
    page.close()
    assert wrong == []


def stored(playing, video_id):
    """Pictures of a film that the library stored, by their times."""
    data = playing.get(f"/data/libraries/0/videos/{video_id}").json
    frames = zip(data["times_s"], data["frame_nos"], strict=True)
    return {time_s: grey(playing.get(f"/pictures/0/{video_id}/{number}").body) for time_s, number in frames}


def grey(picture: bytes) -> NDArray[np.float64]:
    return np.asarray(Image.open(io.BytesIO(picture)).convert("L").resize((192, 108)), np.float64)


def shown(page) -> NDArray[np.float64]:
    return grey(base64.b64decode(page.evaluate(SHOWN)))


def nearest(pictures, picture):
    """Time of the stored picture that is most like one, and by how much better than the next best."""
    order = sorted((float(np.abs(each - picture).mean()), time_s) for time_s, each in pictures.items())
    return order[0][1], order[0][0], order[1][0]


def best_match(page, pictures, time_s):
    """The stored picture that the one on screen is most like, once that is the one of `time_s`, else the last seen."""
    for _ in range(DRAWN):
        found = nearest(pictures, shown(page))
        if found[0] == time_s:
            break
    return found


@pytest.mark.parametrize("name", ["plain", "late", "packed", "old"])
def test_the_frame_shown_at_a_stored_frames_time_is_the_stored_one(page, playing, ids, name):
    pictures = stored(playing, ids[name])
    times = sorted(pictures)
    assert page.evaluate(MAKE, [ids[name], times[5], None]) == WAYS[name]
    for time_s in (times[7], times[2]):  # on, and back before the beginning of a stream
        page.evaluate(ARRIVE, time_s)
        found, difference, other = best_match(page, pictures, time_s)
        assert found == time_s and 2 * difference < other, (difference, other)
    page.evaluate("start => window.inner.play(start)", times[2])
    assert page.evaluate(MOVES, times[2])
    page.evaluate("window.inner.pause()")


def test_stored_frames_are_played_where_there_is_no_file(page, playing, ids, play_films, play_library, tmp_path):
    with served(play_library.uri) as address:  # without questions: nothing is played from the source
        page.goto(address)
        page.wait_for_selector("main h1")
        pictures = stored(playing, ids["plain"])
        times = sorted(pictures)
        assert page.evaluate(MAKE, [ids["plain"], times[0], None]) == "slideshow"
        page.evaluate(ARRIVE, times[3])
        assert best_match(page, pictures, times[3])[0] == times[3]
        assert page.locator(".player .said").inner_text() == EVIL.replace("<b>", "").replace("</b>", "")
        page.evaluate("start => window.inner.play(start, start + 1)", times[3])
        assert page.evaluate(MOVES, times[3])
        page.get_by_role("button", name="Play", exact=True).wait_for()  # it has stopped at the end of its range
        assert page.evaluate("window.inner.time()") == pytest.approx(times[3] + 1, abs=0.1)
        assert "kinodex serve" in page.locator(".player .way").inner_text()
        page.evaluate("window.inner.close()")
    page.goto(playing.address)
    page.wait_for_selector("main h1")


def test_a_range_is_played_in_a_dialog_by_keyboard(page, ids):
    page.evaluate(OPEN, [ids["late"], f"late {EVIL}", LATE_S + 3, LATE_S + 3.5])
    dialog = page.get_by_role("dialog")
    assert EVIL in dialog.get_by_role("heading").inner_text()
    dialog.get_by_role("button", name="Play", exact=True).wait_for()
    time = "Number(document.querySelector('dialog .time-line input').value)"
    page.wait_for_function("() => document.querySelector('dialog video')?.currentTime > 4.9")
    dialog.get_by_role("button", name="Play", exact=True).wait_for()
    assert LATE_S + 3.4 < page.evaluate(time) < LATE_S + 4, "it stops where the range ends"
    dialog.get_by_role("slider", name="Time").focus()
    page.keyboard.press("Home")
    assert page.evaluate(time) == pytest.approx(LATE_S, abs=0.01)
    page.keyboard.press("l")
    assert page.evaluate(time) == pytest.approx(LATE_S + 10, abs=0.01)
    page.keyboard.press(",")
    page.wait_for_function(f"() => Math.abs({time} - {LATE_S + 9}) < 0.01")
    page.keyboard.press("r")
    assert dialog.get_by_role("button", name="Repeat").get_attribute("aria-pressed") == "true"
    violations = [(each["id"], each["nodes"][0]["html"]) for each in Axe().run(page).response["violations"]]
    assert violations == []
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog").count() == 0
    assert page.evaluate("document.activeElement.tagName") in ("A", "BUTTON"), "the focus is back where it was"


def test_a_video_opens_at_its_poster_and_one_that_is_gone_has_a_banner(page, playing, ids, gone):
    at = f"{playing.address}/#/library/0/video/"
    with urlopen(f"{playing.address}/posters/0/{ids['plain']}") as poster:
        number = int(poster.headers["x-frame-no"])
    times_s = playing.get(f"/data/libraries/0/videos/{ids['plain']}").json["times_s"]
    page.goto(f"{at}{ids['plain']}")
    page.locator(".player video").wait_for()
    assert page.locator(".player video").get_attribute("poster") == f"/pictures/0/{ids['plain']}/{number}"
    shown_at = "() => Number(document.querySelector('.player .time-line input').value)"
    assert number and page.evaluate(shown_at) == pytest.approx(times_s[number], abs=0.01)
    client, film, video_id = gone
    page.goto(f"{client.address}/#/library/0/video/{video_id}")
    banner = page.locator(".player .banner")
    banner.wait_for()
    assert f"Nothing lies at {film} any more" in banner.inner_text()
    assert f" {film.parent} NEW_FOLDER" in banner.locator("pre").inner_text()
    assert page.locator(".player .slides img").is_visible(), "its stored frames"
    page.goto(playing.address)
    page.wait_for_selector("main h1")


def test_what_a_browser_cannot_play_after_all_is_made_playable(page, playing, ids):
    page.route("**/media/0/*", lambda route: route.fulfill(status=200, content_type="video/mp4", body=b"no video"))
    assert page.evaluate(MAKE, [ids["plain"], 2.0, None]) == "file"
    page.locator(".player .way[data-way=remuxed]").wait_for()
    page.unroute_all()
    assert "this browser did not play the file itself" in page.locator(".player .way").inner_text()
    page.evaluate("window.inner.play(2)")
    assert page.evaluate(MOVES, 2.0)
    page.evaluate("window.inner.close()")
