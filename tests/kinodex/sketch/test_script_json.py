"""A story as plain data: texts, lines and events at the times of the screen."""

from __future__ import annotations

import json
from itertools import pairwise

from kinodex.sketch.story import as_json, shuffle_shots, subtitles, texts_on_screen, write_story


def test_texts_are_listed_while_they_are_in_view() -> None:
    film = write_story("film", 600, 1)
    rows = texts_on_screen(film)
    cards = [row for row in rows if row["kind"] == "title"]
    assert [row["text"] for row in cards] == [shot.card.word for shot in film.shots if shot.card]
    signs = [row for row in rows if row["kind"] == "sign"]
    assert signs and all(min(row["box"]) >= 0 and max(row["box"]) <= 1 for row in signs)
    for first, second in pairwise(rows):
        assert first["end_s"] <= second["start_s"]
        assert (first["end_s"], first["text"], first["box"]) != (second["start_s"], second["text"], second["box"])


def test_lines_move_with_their_shots() -> None:
    film = write_story("film", 300, 1)
    shuffled = shuffle_shots(film)
    before, after = as_json(film), as_json(shuffled)
    texts = sorted(line["text"] for line in before["spoken"])
    assert sorted(line["text"] for line in after["spoken"]) == texts
    starts = [line["start_s"] for line in after["spoken"]]
    assert starts == sorted(starts) != [line["start_s"] for line in before["spoken"]]
    blocks = subtitles(shuffled).strip().split("\n\n")
    assert [block.splitlines()[2] for block in blocks] == [line["text"] for line in after["spoken"]]


def test_the_script_is_json_and_names_everything() -> None:
    script = json.loads(json.dumps(as_json(write_story("film", 300, 1))))
    assert script["duration_s"] == script["shots"][-1]["end_s"] == 300
    assert {event["kind"] for event in script["events"]} >= {"enter", "leave", "pass"}
    for event in script["events"]:
        assert event["ranges"] == [[event["start_s"], event["end_s"]]], "a story shows an event in one piece"
    assert all(line["speaker"] in script["names"] for line in script["spoken"])
