"""Every bench that is a script, on something tiny: what it counts is right, times are not judged."""

from __future__ import annotations

import json
from pathlib import Path

from kinodex.index.rows import ScreenTextRow
from tests.bench import screen_text


def test_cards_are_scored_by_letters_and_times_and_other_lines_counted(tmp_path: Path) -> None:
    def row(start_s: float, end_s: float, text: str) -> ScreenTextRow:
        return ScreenTextRow("v", start_s, end_s, text, 0.9, (0.1, 0.1, 0.5, 0.2), 1, None, "m")

    shots = [{"start_s": 0.0, "end_s": 3.5, "title_card": "MORNING"}, {"start_s": 3.5, "end_s": 9.0}]
    script = tmp_path / "film.script.json"
    script.write_text(json.dumps({"shots": shots}))  # of an independent film, which has no signs
    assert screen_text.cards_of(script) == [screen_text.Card("MORNING", 0.0, 3.5)]
    signs = [("MORNING", 0.0, 3.5), ("VOYAGE", 10.0, 11.0), ("VOYAGE", 11.0, 12.0), ("END", 20.0, 21.0)]
    texts = [{"text": text, "kind": "sign", "start_s": start_s, "end_s": end_s} for text, start_s, end_s in signs]
    script.write_text(json.dumps({"shots": [], "texts": texts}))
    cards = screen_text.cards_of(script)
    assert cards == [screen_text.Card(*each) for each in (signs[0], ("VOYAGE", 10.0, 12.0), signs[3])]
    rows = [row(0.0, 4.0, "M0RNING"), row(10.5, 12.0, "VOYAGE"), row(15.0, 16.0, "leaves")]
    assert list(screen_text.score([(cards, rows), ([], [])]).lines()) == [
        "2 of 3 cards and signs read; other lines: 1",
        "character error rate 0.250 (4 of 16; of a card not read all)",
        "start off by 0.25 s in the middle, 0.50 s at most",
        "end off by 0.25 s in the middle, 0.50 s at most",
    ]
