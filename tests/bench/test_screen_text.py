"""Scores of text on screen against cards of known texts and times."""

from __future__ import annotations

import json

from kinodex.index.rows import ScreenTextRow
from tests.bench.screen_text import Card, cards_of, score

BOX = (0.1, 0.1, 0.5, 0.2)


def row(start_s: float, end_s: float, text: str) -> ScreenTextRow:
    return ScreenTextRow("v", start_s, end_s, text, 0.9, BOX, 1, None, "m")


def test_cards_are_scored_by_letters_and_times_and_other_lines_counted():
    cards = [Card("MORNING", 0.0, 3.5), Card("VOYAGE", 10.0, 12.0), Card("END", 20.0, 21.0)]
    rows = [row(0.0, 4.0, "M0RNING"), row(10.5, 12.0, "VOYAGE"), row(15.0, 16.0, "leaves")]
    found = score([(cards, rows), ([], [])])
    assert [(each.wrong, each.letters) for each in found.cards] == [(1, 7), (0, 6), (3, 3)]
    assert [(each.start_off_s, each.end_off_s) for each in found.cards] == [(0.0, 0.5), (0.5, 0.0), (None, None)]
    assert found.others == 1
    assert list(found.lines()) == [
        "2 of 3 cards and signs read; other lines: 1",
        "character error rate 0.250 (4 of 16; of a card not read all)",
        "start off by 0.25 s in the middle, 0.50 s at most",
        "end off by 0.25 s in the middle, 0.50 s at most",
    ]


def test_cards_come_from_a_films_script(tmp_path):
    script = tmp_path / "film.script.json"
    shots = [{"start_s": 0.0, "end_s": 3.0, "title_card": "MORNING"}, {"start_s": 3.0, "end_s": 9.0}]
    script.write_text(json.dumps({"shots": shots}))
    assert cards_of(script) == [Card("MORNING", 0.0, 3.0)]


def test_a_sign_of_successive_shots_is_one_card(tmp_path):
    script = tmp_path / "film.script.json"
    signs = [("SCHOOL 37", 3.0, 9.0), ("SCHOOL 37", 9.0, 12.0), ("SCHOOL 37", 20.0, 22.0)]
    texts = [{"text": text, "kind": "sign", "start_s": start_s, "end_s": end_s} for text, start_s, end_s in signs]
    script.write_text(json.dumps({"shots": [], "texts": texts}))
    assert cards_of(script) == [Card("SCHOOL 37", 3.0, 12.0), Card("SCHOOL 37", 20.0, 22.0)]
