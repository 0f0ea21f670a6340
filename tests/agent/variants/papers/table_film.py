"""A film whose similarities with some texts are numbers of a table, and what the transcriptions of trees share.

Its space has a dimension for each text, so that the cosine of a frame and a text is the table's number.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from kinodex.agent.answer import Answer
from kinodex.agent.ask import ask
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.request import Request
from kinodex.agent.requests.tree import Decide, ScoreSegments
from kinodex.agent.traces.events import Event, Remembered
from kinodex.agent.videos.environment import Environment
from kinodex.index.rows import SpeechRow
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.pipeline.sample import FrameRow
from tests.support.libraries.agent_library import JPEG, ScriptedModel
from tests.support.libraries.random_library import empty_library, plain_row
from tests.support.screen_text.lines import Line, add_screen_text

QUESTION = Question("What colour is the kite over the desert, at 1:10?", ("blue", "red"))
TEXTS = ("red kite desert", "white boat sea", "green tree forest", "black dog city")
SPOKEN = "Look at my kite!"
WRITTEN = "NO KITES HERE"
ROUNDS = 5
Span = tuple[float, float]
Scored = tuple[float, float]
"""A time in seconds, and its similarity or reward."""


def raw_cosine(text: str, second: int) -> float:
    """The table: two or three peaks for each text, over a floor that wavers."""
    number = TEXTS.index(text)
    floor = ((second * (7 + 4 * number)) % 359) / 4096
    peaks = {(41 + 53 * number) % 300: 0.5, (97 + 71 * number) % 300: 0.375, (11 + 29 * number) % 300: 0.25}
    return max([floor, *(height - 0.0625 * abs(second - at) for at, height in peaks.items())])


def embed(texts: Sequence[str]) -> np.ndarray:
    """Each text of the table is a dimension of its own; all others share one."""
    places = [TEXTS.index(text) if text in TEXTS else len(TEXTS) for text in texts]
    return np.eye(len(TEXTS) + 2, dtype=np.float32)[places]


def table_film(folder: Path, seconds: int) -> Environment:
    """A film of a frame a second, with a line that is said and text on screen, which EEA and VCA never see."""
    library = empty_library(folder, {"fps": 1.0}, Fingerprint("table", "table", "0" * 64, "{}", len(TEXTS) + 2, True))
    rows = []
    for second in range(seconds):
        vector = np.zeros(len(TEXTS) + 2)
        vector[: len(TEXTS)] = [raw_cosine(text, second) for text in TEXTS]
        vector[-1] = math.sqrt(1 - float(vector @ vector))
        rows.append(FrameRow(second, float(second), 8, 8, JPEG, vector.astype(np.float16)))
    video_id = "f" * 32
    library.writer.add_frames({video_id: rows})
    size = {"duration_s": float(seconds), "width_px": 8, "height_px": 8, "frames": seconds, "space": "table"}
    library.writer.complete([plain_row(video_id, "film", start_s=0.0, zero_s=0.0, **size)])
    library.writer.add_speech({video_id: [SpeechRow(video_id, 41.0, 43.0, SPOKEN, source="subtitles")]})
    add_screen_text(library, video_id, [Line(42.0, 44.0, WRITTEN)])
    return Environment.of(library, library.videos(), embed)


def run(
    environment: Environment, agent: str, script: Callable[[Request[Any]], Any]
) -> tuple[Answer, list[Event], ScriptedModel]:
    """Ask an agent with its own settings, as a researcher does."""
    model, events = ScriptedModel(script), list[Event]()
    answer = asyncio.run(ask(QUESTION, environment, model, agent=agent, on_event=events.append))
    return answer, events, model


class TreePolicy:
    """A model that rates by the table, opens what the table says, and ends after five rounds."""

    decided = 0

    def __call__(self, request: Request[Any]) -> Any:
        match request:
            case ScoreSegments():
                spans = {each.number: span_of(each) for each in request.segments}
                return {f"Segment {n}": {"explanation": reason(s), "score": reward(s)} for n, s in spans.items()}
            case Decide():
                self.decided += 1
                if self.decided == ROUNDS:
                    return {"option": "B", "evidence": []}
                open_ones = [each for each in request.candidates if each.explorable]
                scores = {span_of(each.segment): each.rank for each in open_ones}
                numbers = {span_of(each.segment): each.segment.number for each in request.candidates}
                return {"Segment": numbers[chosen(scores, self.decided, ())]}
        raise TypeError(type(request).__name__)


def reward(span: Span) -> float:
    """A reward in steps of five, with many ties, as models give them."""
    return 20.0 + 5 * (int(37 * span[0] + 11 * span[1]) % 4)


def reason(span: Span) -> str:
    """A long reason: the papers' agents rely on all of it."""
    return f"Between {span[0]:g} and {span[1]:g} " + "the light on the sand changes slowly and somebody walks; " * 8


def chosen(scores: Mapping[Span, float], number: int, sampled: Collection[float]) -> Span:
    """The segment that promises most, in the third round the one that promises least of those that hide frames."""
    open_ones = {span: score for span, score in scores.items() if unseen(span, sampled)}
    return (min if number == 3 else max)(open_ones, key=lambda span: (open_ones[span], span))


def unseen(span: Span, sampled: Collection[float]) -> list[float]:
    """The seconds of a segment of which no frame was seen."""
    seconds = range(math.ceil(span[0]), math.ceil(span[1]))
    return [float(second) for second in seconds if second not in sampled]


def parts_of(span: Span, frames_s: Sequence[float]) -> list[Span]:
    return [part for part in pairwise([span[0], *frames_s, span[1]]) if part[0] < part[1]]


def beside(frame_s: float, children: Sequence[Span]) -> float:
    """The larger of the rewards of the two segments that a frame borders."""
    return max(reward(child) for child in children if frame_s in child)


def without_lowest(memory: Sequence[Scored], capacity: int) -> list[Scored]:
    """Frames and their rewards, without the lowest ones beyond the capacity; of equal ones the latest leave."""
    ranked = sorted(range(len(memory)), key=lambda at: (-memory[at][1], at))
    return [memory[at] for at in sorted(ranked[:capacity])]


def calibrated(texts: Sequence[str], seconds: int) -> dict[str, list[float]]:
    """The table's numbers on the index's scale, which stands for a cosine: z / (z + 6) of robust deviations z.

    A batch of queries has one scale, the mean of theirs.
    """
    columns = {text: [raw_cosine(text, second) for second in range(seconds)] for text in texts}
    middles = {text: median(column) for text, column in columns.items()}
    spreads = [1.4826 * median(abs(each - middles[text]) for each in column) for text, column in columns.items()]
    scale = sum(spreads) / len(spreads)
    z = {text: [max(0.0, (each - middles[text]) / scale) for each in column] for text, column in columns.items()}
    return {text: [each / (each + 6.0) for each in column] for text, column in z.items()}


def memories(events: Sequence[Event]) -> Iterator[list[float]]:
    """The memory after each round, in the order of arrival."""
    memory: list[Any] = []
    for event in (event for event in events if isinstance(event, Remembered)):
        memory = [each for each in (*memory, *event.added) if each not in event.evicted]
        yield [each.time_s for each in memory]


def span_of(segment: Any) -> Span:
    return segment.start_s, segment.end_s


def times_of(frames: Sequence[Any]) -> list[float]:
    return [frame.time_s for frame in frames]


def assert_says(prompt: str, holds: Sequence[str], lacks: Sequence[str]) -> None:
    """Check what a paper's prompt contains, and that nothing of ours is added."""
    text = " ".join(prompt.split())
    assert [each for each in holds if each.casefold() not in text.casefold()] == [], text
    assert [each for each in lacks if each.casefold() in text.casefold()] == [], text
