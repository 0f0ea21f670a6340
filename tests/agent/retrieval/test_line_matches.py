"""Lines of a video as matches of its frames: by kind, at the middle of their time, by words or by meaning."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from kinodex.agent.library_videos import frame_deviations, frames_of, line_deviations
from kinodex.agent.matches import robust_deviations, words_of
from kinodex.agent.protocol import Note
from tests.sketch.simulated_world import SimulatedVideo

VIDEO, OTHER = "v", "w"
TIMES_S = np.arange(0.0, 600.0, 1.0)
PLACES = 16


@dataclass(frozen=True)
class WrittenVideo(SimulatedVideo):
    """A made-up video with lines, and with vectors of them if `by_meaning`: bags of words with synonyms joined."""

    written: tuple[Note, ...] = ()
    by_meaning: bool = False
    synonyms: dict[str, str] = field(default_factory=lambda: {"captain": "skipper", "conceals": "hides"})

    def lines(self, video_id: str) -> tuple[Note, ...]:
        return tuple(line for line in self.written if line.video_id == video_id)

    def line_cosines(self, text: str, video_id: str) -> np.ndarray | None:
        if not self.by_meaning:
            return None
        return np.array([self._likeness(text, line.text) for line in self.lines(video_id)])

    def _likeness(self, first: str, second: str) -> float:
        one, two = ({self.synonyms.get(word, word) for word in words_of(text)} for text in (first, second))
        return len(one & two) / float(np.sqrt(len(one) * len(two)))


def talk(video_id: str = VIDEO, source: str = "subtitle", count: int = 100) -> list[Note]:
    """Lines of which each has some words of its own, so that likeness differs."""
    return [
        Note(video_id, 5.0 * at, 5.0 * at + 3.0, source, f"we went on to the next house {'and so on ' * (at % 3)}{at}")
        for at in range(count)
    ]


def video(*lines: Note, by_meaning: bool = False) -> WrittenVideo:
    return WrittenVideo(VIDEO, np.zeros((600, 2), np.float32), {}, tuple(lines), by_meaning)


def test_a_line_belongs_to_the_frame_on_screen_in_the_middle_of_its_time() -> None:
    hiding = Note(VIDEO, 250.0, 254.5, "subtitle", "the captain hides a compass")
    found = frame_deviations(video(*talk(), hiding), ["captain hides compass"], VIDEO, (), TIMES_S, PLACES)
    assert np.flatnonzero(np.isfinite(found[:, 0])).tolist() == [252]
    sparse_s = np.array([0.0, 240.0, 253.0, 300.0])
    assert frames_of([hiding], sparse_s).tolist() == [1]
    assert frames_of([Note(VIDEO, -5.0, -4.0, "subtitle", "before the first frame")], sparse_s).tolist() == [0]


def test_the_best_of_several_lines_at_one_frame_counts() -> None:
    weak = Note(VIDEO, 250.0, 251.0, "subtitle", "a captain")
    strong = Note(VIDEO, 250.2, 250.8, "subtitle", "the captain hides a compass")
    both = frame_deviations(video(*talk(), weak, strong), ["captain hides compass"], VIDEO, (), TIMES_S, PLACES)
    alone = frame_deviations(video(*talk(), strong), ["captain hides compass"], VIDEO, (), TIMES_S, PLACES)
    assert both[250, 0] == pytest.approx(alone[250, 0], abs=0.5)


def test_a_kind_of_line_is_judged_by_its_own_kind() -> None:
    """Every caption speaks of the night; a title that does is rare all the same."""
    captions = [Note(VIDEO, 5.0 * at, 5.0 * at + 5.0, "caption", f"the harbour at night {at}") for at in range(100)]
    titles = [Note(VIDEO, 10.0 * at, 10.0 * at + 2.0, "screen text", f"part {at}") for at in range(40)]
    title = Note(VIDEO, 405.0, 407.0, "screen text", "harbour night")
    found = frame_deviations(video(*captions, *titles, title), ["harbour at night"], VIDEO, (), TIMES_S, PLACES)
    assert np.flatnonzero(np.isfinite(found[:, 0])).tolist() == [406]


def test_lines_of_all_videos_that_are_searched_are_the_measure() -> None:
    hiding = Note(VIDEO, 250.0, 254.0, "subtitle", "the captain hides")
    elsewhere = [Note(OTHER, 5.0 * at, 5.0 * at + 3.0, "subtitle", "the captain hides") for at in range(100)]
    alone = line_deviations(video(*talk(), hiding), ["captain hides"], VIDEO, (), PLACES)
    among = line_deviations(video(*talk(), hiding, *elsewhere), ["captain hides"], VIDEO, (VIDEO, OTHER), PLACES)
    assert among.shape == alone.shape
    assert among.max() < alone.max()


def test_meaning_finds_what_words_do_not() -> None:
    said = Note(VIDEO, 250.0, 254.0, "subtitle", "a skipper conceals it")
    query = ["the captain hides"]
    assert np.isneginf(frame_deviations(video(*talk(), said), query, VIDEO, (), TIMES_S, PLACES)[252, 0])
    known = video(*talk(), said, by_meaning=True)
    found = frame_deviations(known, query, VIDEO, (), TIMES_S, PLACES)[:, 0]
    assert int(found.argmax()) == 252
    cosines = known.line_cosines(query[0], VIDEO)
    assert cosines is not None
    assert found[252] == pytest.approx(robust_deviations(cosines[:, None], cosines[:, None]).max())


def test_a_few_lines_are_no_measure_of_meaning() -> None:
    said = Note(VIDEO, 250.0, 254.0, "subtitle", "a skipper conceals it")
    known = video(*talk(count=4), said, by_meaning=True)
    assert np.isneginf(frame_deviations(known, ["the captain hides"], VIDEO, (), TIMES_S, PLACES)).all()


def test_without_lines_no_frame_matches() -> None:
    assert np.isneginf(frame_deviations(video(), ["captain"], VIDEO, (), TIMES_S, PLACES)).all()
