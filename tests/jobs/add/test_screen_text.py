"""Text on screen of real films, by the carried weights: from stored frames and from the source at full size."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from kinodex.index.library import Library
from kinodex.jobs.add.run import add
from kinodex.jobs.add.stages import ScreenText
from tests.support.command import bad, json_of
from tests.support.models.stage_models import library_of
from tests.support.screen_text.film import text_film

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("rapidocr") is None, reason="the extra `text` is not installed"),
]
CHAPTERS = [(2.0, "GOOD MORNING"), (1.0, ""), (3.0, "Platform 13"), (1.0, "")]
SMALL_PRINT = 10


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return library_of(tmp_path / "library", [text_film(tmp_path / "signs.mp4", CHAPTERS)])


def lines(library: Library, title: str = "signs") -> list[tuple[float, float, str]]:
    return [(row.start_s, row.end_s, row.text) for row in library.screen_text(library.video(title).video_id)]


def test_lines_of_stored_frames_with_times_boxes_and_search(kinodex, library):
    add_to = ("add", "screen_text", library.uri)
    says = "got language 'ko', whose letters PP-OCRv6-small does not read"
    bad(kinodex, *add_to, "--language", "en,ko", code=2, says=says)
    says = "got nobody/nothing, which is no folder; give PP-OCRv6-small"
    bad(kinodex, *add_to, "--model", "nobody/nothing", code=2, says=says)
    says = "has no text on screen; `kinodex add screen_text`"
    bad(kinodex, "search", library.uri, "morning", "--in", "screen_text", code=2, says=says)
    made = json_of(kinodex, *add_to, "--language", "en")
    assert (made["stage"], made["added"], made["rows"]) == ("screen_text", 1, 2)
    assert lines(library) == [(0.0, 2.0, "GOOD MORNING"), (3.0, 6.0, "Platform 13")]
    first = library.screen_text(library.video("signs").video_id)[0]
    assert (first.frames, first.language, first.model) == (2, "en", "PP-OCRv6-small for en")
    assert first.confidence > 0.9 and first.box[0] < 0.2 < first.box[2] and first.box[3] < 0.5
    (hit,) = json_of(kinodex, "search", library.uri, "gud platfrom", "--in", "screen_text")
    assert (hit["text"], hit["found_in"], hit["time_s"]) == ("Platform 13", "screen_text", 3.0)
    assert json_of(kinodex, *add_to, "--language", "EN")["added"] == 0
    other = ("--language", "en", "--min-confidence", 0.5)
    bad(kinodex, *add_to, *other, code=2, says="made with --min-confidence 0.75")
    assert "screen_text" in kinodex("info", library.uri).out
    assert kinodex("remove", "added", library.uri, "screen_text", "PP-OCRv6-small for en", "--yes").code == 0
    assert lines(library) == []


def test_small_print_is_read_from_the_source_at_full_size_at_the_same_times(tmp_path):
    scenes = [(1.0, ""), (1.0, "Registered office: 7 Harbour Street"), (1.0, "")]
    film = text_film(tmp_path / "small.mp4", scenes, (1280, 720), SMALL_PRINT)
    library = library_of(tmp_path / "library", [film])
    (stored,) = {(row.width_px, row.height_px) for row in library.frames(library.video("small").video_id, [1])}
    assert stored == (512, 288)
    assert add(library, ScreenText()).failed == 0
    assert "Registered office: 7 Harbour Street" not in [text for _, _, text in lines(library, "small")]
    report = add(library, ScreenText(full=True))
    assert (report.model, report.failed) == ("PP-OCRv6-small at full size", 0)
    assert lines(library, "small") == [(1.0, 2.0, "Registered office: 7 Harbour Street")]
