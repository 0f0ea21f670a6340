"""Lines of a video as matches of its frames: by kind, at the middle of their time, by words or by meaning."""

from __future__ import annotations

import numpy as np
import pytest

from kinodex.agent.protocol.notes import Note
from kinodex.agent.videos.library_videos import LibraryVideos
from kinodex.agent.videos.line_matches import frame_deviations, frames_of
from kinodex.agent.videos.scale import calibrate, robust_deviations
from kinodex.agent.videos.word_matches import word_deviations, words_of

VIDEO = "v"
PLACES = 16


SYNONYMS = {"captain": "skipper", "conceals": "hides"}


class WrittenVideo(LibraryVideos):
    """The lines of a made-up video, and vectors of them if `by_meaning`: bags of words with synonyms joined."""

    def __init__(self, written: tuple[Note, ...], by_meaning: bool) -> None:
        self.written, self.by_meaning = written, by_meaning

    def lines(self, video_id: str) -> tuple[Note, ...]:
        return tuple(line for line in self.written if line.video_id == video_id)

    def line_cosines(self, text: str, video_id: str) -> np.ndarray | None:
        if not self.by_meaning:
            return None
        return np.array([self._likeness(text, line.text) for line in self.lines(video_id)])

    def _likeness(self, first: str, second: str) -> float:
        one, two = ({SYNONYMS.get(word, word) for word in words_of(text)} for text in (first, second))
        return len(one & two) / float(np.sqrt(len(one) * len(two)))


def talk() -> list[Note]:
    """Lines of which each has some words of its own, so that likeness differs."""
    texts = [f"we went on to the next house {'and so on ' * (at % 3)}{at}" for at in range(100)]
    return [Note(VIDEO, 5.0 * at, 5.0 * at + 3.0, "speech", text) for at, text in enumerate(texts)]


def video(*lines: Note, by_meaning: bool = False) -> WrittenVideo:
    return WrittenVideo(lines, by_meaning)


def matches(written: WrittenVideo, query: str) -> np.ndarray:
    """Deviations of the frames, one a second, from a query."""
    return frame_deviations(written, [query], VIDEO, (), np.arange(0.0, 600.0), PLACES)[:, 0]


def test_a_line_belongs_to_the_frame_in_the_middle_of_its_time_and_is_judged_by_its_own_kind() -> None:
    hiding = Note(VIDEO, 250.0, 254.5, "speech", "the captain hides a compass")
    found = matches(video(*talk(), hiding), "captain hides compass")
    assert np.flatnonzero(np.isfinite(found)).tolist() == [252]
    sparse_s = np.array([0.0, 240.0, 253.0, 300.0])
    assert frames_of([hiding], sparse_s).tolist() == [1]
    assert frames_of([Note(VIDEO, -5.0, -4.0, "speech", "before the first frame")], sparse_s).tolist() == [0]
    night = [Note(VIDEO, 5.0 * at, 5.0 * at + 5.0, "captions", f"the harbour at night {at}") for at in range(100)]
    titles = [Note(VIDEO, 10.0 * at, 10.0 * at + 2.0, "screen_text", f"part {at}") for at in range(40)]
    title = Note(VIDEO, 405.0, 407.0, "screen_text", "harbour night")
    found = matches(video(*night, *titles, title), "harbour at night")
    assert np.flatnonzero(np.isfinite(found)).tolist() == [406], "every caption speaks of it; the title is rare"


def test_meaning_finds_what_words_do_not() -> None:
    said, query = Note(VIDEO, 250.0, 254.0, "speech", "a skipper conceals it"), "the captain hides"
    assert np.isneginf(matches(video(*talk(), said), query)[252])
    known = video(*talk(), said, by_meaning=True)
    found, cosines = matches(known, query), known.line_cosines(query, VIDEO)
    assert int(found.argmax()) == 252 and cosines is not None
    assert found[252] == pytest.approx(robust_deviations(cosines[:, None], cosines[:, None]).max())


def test_rare_words_stand_out_and_similarities_tell_a_match_from_noise() -> None:
    lines = [f"we went on to the next house and the {n}th door" for n in range(300)]
    lines += ["a captain hides the silver compass"]
    found = calibrate(word_deviations("the captain hides a compass", lines, lines, PLACES))
    assert int(found.argmax()) == 300 and found[300] > 0.45 and found[:300].max() == 0.0
    noise = calibrate(np.random.default_rng(0).normal(size=3600))
    assert noise.max() < 0.4 and np.median(noise) < 0.01 and calibrate(np.asarray([12.0]))[0] > 0.6
    strong = calibrate(np.asarray([-np.inf, 30.0, 60.0, 120.0, 1e9]))
    assert strong[0] == 0.0 and (np.diff(strong) > 0).all() and strong[-1] <= 1.0
