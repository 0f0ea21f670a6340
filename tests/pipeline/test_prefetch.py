"""Items come in order, a few ahead of their reader, and stop when it stops."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

from kinodex.pipeline.decoding.open import open_video
from kinodex.pipeline.sample import prefetch


def test_a_slow_reader_holds_the_decoder_back(media: Path) -> None:

    made: list[int] = []
    path = media / "awkward" / "mediabunny__frames.webm"
    with closing(decoded_numbers(path, made)) as numbers, closing(prefetch(numbers, 4)) as waiting:
        for taken, _ in enumerate(waiting, 1):
            threading.Event().wait(0.01)
            assert len(made) <= taken + 4
    assert len(made) == 100


def decoded_numbers(path: Path, made: list[int]) -> Generator[int, None, None]:
    with open_video(path) as video:
        for sample in video.samples(1000):
            made.append(sample.number)
            yield sample.number


def test_ahead_keeps_order_and_stops_when_its_reader_stops() -> None:
    made: list[int] = []
    closed = threading.Event()

    def numbers():
        try:
            for number in range(1000):
                made.append(number)
                yield number
        finally:
            closed.set()

    reader = prefetch(numbers(), 3)
    assert [next(reader) for _ in range(5)] == [0, 1, 2, 3, 4]
    reader.close()
    assert closed.is_set()
    assert len(made) <= 5 + 3 + 1
    assert list(prefetch((n for n in range(10)), 3)) == list(range(10))
