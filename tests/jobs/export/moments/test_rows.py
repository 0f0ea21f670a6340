"""Moments of what a library holds: chapters and scenes by their titles, numbers where there is none."""

from __future__ import annotations

import json

from kinodex.index.library import Library
from kinodex.index.rows import SceneRow
from kinodex.jobs.export.moments import ROWS
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write
from tests.support.scenes.chapters import add_chapters


def test_chapters_and_scenes_in_text_exports(kinodex, tmp_path):
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(library, made("aa", 40, 1))
    assert kinodex("export", "vtt", library.uri, "--of", "chapters").code != 0
    add_chapters(library, "aa", 40.0)
    written = kinodex("export", "vtt", library.uri, "--of", "chapters").out
    assert "00:00:00.000 --> 00:00:20.000\nThe harbour\n" in written
    assert "00:00:20.000 --> 00:00:40.000\nchapter 2\n" in written
    lines = [json.loads(line) for line in kinodex("export", "jsonl", library.uri, "--of", "scenes").out.splitlines()]
    assert [(line["label"], line["start_s"], line["source"]) for line in lines] == [
        ("Scene of boats 0", 0.0, "scene"),
        ("Scene of boats 1", 10.0, "scene"),
        ("Scene of boats 2", 20.0, "scene"),
    ]
    for form in ("srt", "csv", "edl"):
        assert "THE HARBOUR" in kinodex("export", form, library.uri, "--of", "chapters").out.upper()


def test_a_title_of_several_lines_is_one_line_of_chapters(tmp_path):
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(library, made("aa", 40, 1))
    row = SceneRow("aa", "chapter", 0, 0.0, 40.0, 0, 1, "The harbour\n\n00:01.000 --> 00:02.000", "Boats.", "old")
    library.additions.discard_leftovers("summaries", "old")
    library.scenes.add({"aa": [row]})
    library.additions.complete("summaries", "old", {"aa": 1}, {})
    (chapter,) = ROWS["chapters"](library, library.video("aa"))
    assert chapter.label == "The harbour 00:01.000 --> 00:02.000"


def test_chapters_are_searched_by_the_command(kinodex, tmp_path):
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(library, made("aa", 40, 1))
    ran = kinodex("search", library.uri, "boats", "--only", "chapters")
    assert ran.code == 2 and "kinodex add chapters" in ran.error_line
    add_chapters(library, "aa", 40.0)
    (hit,) = json.loads(kinodex("search", library.uri, "boats", "--only", "chapters", "--json").out)
    assert (hit["source"], hit["time_s"], hit["end_s"]) == ("chapter", 0.0, 20.0)
