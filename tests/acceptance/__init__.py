"""The things that users do by `import kinodex`, the command line, HTTP and MCP: no redesign inside may break them.

The tests import nothing of kinodex but `kinodex` itself. Names that its faces give to kinds of things stand here, once.
"""

from __future__ import annotations

from dataclasses import dataclass

FRAMES, SPEECH, CAPTIONS, WORDS, DETECTIONS = "frames", "speech", "captions", "words", "detections"
"""Places to search in, and stages of `kinodex add`."""
SHOTS, SAID = "shots", SPEECH
"""Rows of `kinodex export --of`."""
IN_PYTHON, IN_MCP, IN_HTTP = "in_", "in", "in"
"""The argument that names the place to search in."""


@dataclass(frozen=True)
class Fact:
    """A thing that one drawn film shows, the seconds that show it, and a question about it."""

    words: str
    film: str
    start_s: float
    end_s: float
    question: str
    options: tuple[str, ...]
    letter: str

    def covers(self, time_s: float) -> bool:
        """True of a time in these seconds; of a frame a second, that on screen when they end may show it still."""
        return self.start_s - 1 <= time_s < self.end_s + 1


TENTS = Fact(
    *("red tents in the forest", "film-01", 17.75, 19.84, "What colour are the tents in the forest?"),
    options=("blue", "black", "red", "white"),
    letter="C",
)
BICYCLES = Fact(
    *("purple bicycles in the forest", "film-03", 19.08, 24.09, "What colour are the bicycles in the forest?"),
    options=("yellow", "purple", "blue", "orange"),
    letter="B",
)
BUTTERFLY = Fact(
    *("a black butterfly in the forest", "film-02", 11.41, 16.0, "What colour is the butterfly in the forest?"),
    options=("white", "orange", "black", "red"),
    letter="C",
)
FACTS = (TENTS, BICYCLES, BUTTERFLY)
LINE = ("Listen well: the code word is lantern.", "film-01", 12.7, 15.7)
"""A line that is said, in which film, and when."""
CAPTION = ("a walrus plays chess", "film-02", 8.0, 12.0)
CAMERAS = {"film-01": "front", "film-02": "rear", "film-03": "front"}
