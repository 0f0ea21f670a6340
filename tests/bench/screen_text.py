"""Measure text on screen on sketch films, whose scripts say which title card, and which sign, is shown when.

python -m tests.bench.screen_text LIBRARY FILMS: characters wrong, times off, and CPU seconds a frame. FILMS is the
folder of `python -m tests.world.sample`, LIBRARY holds them with `kinodex add screen_text`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from kinodex.index.library import Library
from kinodex.index.rows import ScreenTextRow
from kinodex.jobs.library import stored_pictures
from kinodex.pipeline.models.screen_text.lines import edit_distance, similarity
from kinodex.pipeline.models.screen_text.reader import TextReader, load_text_reader

FRAMES_TIMED = 60
SAME_S = 0.05
PART = 0.6


@dataclass(frozen=True, slots=True)
class Card:
    """A title card or sign that is shown in `[start_s, end_s)`."""

    text: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class ReadCard:
    """The letters of a card that were read wrong, and how far the times are off; None where no line was read."""

    letters: int
    wrong: int
    start_off_s: float | None
    end_off_s: float | None


@dataclass(frozen=True, slots=True)
class Score:
    """Scores of the cards of some films, and the number of lines that are read where there is none."""

    cards: tuple[ReadCard, ...]
    others: int

    def lines(self) -> Iterator[str]:
        """The figures, a line each."""
        read = [each for each in self.cards if each.start_off_s is not None and each.end_off_s is not None]
        letters, wrong = sum(each.letters for each in self.cards), sum(each.wrong for each in self.cards)
        yield f"{len(read)} of {len(self.cards)} cards and signs read; other lines: {self.others}"
        yield f"character error rate {wrong / max(letters, 1):.3f} ({wrong} of {letters}; of a card not read all)"
        for name in ("start_off_s", "end_off_s"):
            off = [abs(getattr(each, name)) for each in read]
            if off:
                yield f"{name.split('_')[0]} off by {median(off):.2f} s in the middle, {max(off):.2f} s at most"


def cards_of(script: Path) -> list[Card]:
    """Read what a film shows as text from its script; a sign that successive shots show is one."""
    held = json.loads(script.read_text("utf-8"))
    shots = [each | {"text": each["title_card"]} for each in held["shots"] if each.get("title_card")]
    cards: list[Card] = []
    for each in held.get("texts", shots):
        card = Card(each["text"], each["start_s"], each["end_s"])
        before = cards[-1] if cards else None
        if before is not None and before.text == card.text and card.start_s - before.end_s < SAME_S:
            cards[-1] = Card(card.text, before.start_s, card.end_s)
        else:
            cards.append(card)
    return cards


def score(films: Sequence[tuple[Sequence[Card], Sequence[ScreenTextRow]]]) -> Score:
    """Score the lines that were read in films against their cards: each card against the line it overlaps longest.

    Further lines that overlap a card and are like its text are parts of it: of a sign that is seen from another side.
    """
    cards, others = [], 0
    for shown, rows in films:
        used = set()
        for card in shown:
            near = [row for row in rows if _overlap_s(card, row) > 0]
            best = max(near, key=lambda row: _overlap_s(card, row), default=None)
            if best is None:
                cards.append(ReadCard(len(card.text), len(card.text), None, None))
                continue
            used |= {row for row in near if similarity(row.text, card.text) >= PART}
            used.add(best)
            wrong = min(edit_distance(card.text, best.text), len(card.text))
            cards.append(ReadCard(len(card.text), wrong, best.start_s - card.start_s, best.end_s - card.end_s))
        others += sum(row not in used for row in rows)
    return Score(tuple(cards), others)


def _overlap_s(card: Card, row: ScreenTextRow) -> float:
    return min(card.end_s, row.end_s) - max(card.start_s, row.start_s)


def cpu_seconds_a_frame(library: Library, reader: TextReader, most: int = FRAMES_TIMED) -> float:
    """CPU seconds that reading one stored frame takes, over the first frames of a library."""
    pictures = (
        picture for video in library.videos() for batch in stored_pictures(library, video, 4) for _, picture in batch
    )
    spent, count = 0.0, 0
    for picture in pictures:
        began = time.process_time()
        reader.read(picture)
        spent, count = spent + time.process_time() - began, count + 1
        if count == most:
            break
    return spent / max(count, 1)


def main() -> None:
    """Print the figures of one library."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("films", type=Path)
    chosen = parser.parse_args()
    library = Library.open(chosen.library)
    found = [
        (cards_of(script), library.screen_text(library.video(script.name.removesuffix(".script.json")).video_id))
        for script in sorted(chosen.films.glob("*.script.json"))
    ]
    for line in score(found).lines():
        print(line)
    print(f"{cpu_seconds_a_frame(library, load_text_reader()):.3f} CPU seconds a stored frame")


if __name__ == "__main__":
    main()
