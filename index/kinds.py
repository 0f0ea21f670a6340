"""The kinds of things that a library holds and a search finds. Each is declared here, once, under one name.

The name is the same everywhere: it is the table's, the place to search in (`--in`), what `kinodex add` makes, and the
word for it in JSON, HTTP, MCP and prompts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from kinodex.index.errors import QueryError

KindName = Literal["frames", "clips", "speech", "screen_text", "captions", "chapters", "detections"]
FoundIn = Literal[KindName, "extracts", "several"]
"""Where a hit was found: a kind, a row of an extract, or "several" kinds at once."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of thing, and how each part of kinodex treats it.

    >>> KINDS["screen_text"].label
    'text on screen'
    """

    name: KindName
    label: str
    """Its rows, in words for people."""
    searched: str
    """By what a search finds it, for help texts and tool descriptions."""
    found: str
    """How one was found, for the reason of a hit: "said", "seen"."""
    quote: str = ""
    """The name of one row where a prompt quotes it; empty for what is no text."""
    is_added: bool = True
    """`kinodex add NAME` makes it. Frames come with the videos."""
    is_line: bool = False
    """Its rows are lines: a text with a start and an end. The next three are about lines."""
    is_verbatim: bool = False
    """Its text is heard or read in the video, not a description of it. A confidence is then one in the reading, and
    agents are not told it."""
    is_quoted_with_frames: bool = True
    """Agents get its lines together with the frames of the same time, unless they describe those frames."""
    forgives_typos: bool = False
    """Where too few lines hold the words, those follow that hold them with a letter or two wrong."""

    def count(self, number: int) -> str:
        """Say a number of its rows in words.

        >>> KINDS["speech"].count(1), KINDS["captions"].count(2000)
        ('1 line of speech', '2,000 captions')
        """
        one, many = (
            (f"line of {self.label}", f"lines of {self.label}") if self.is_verbatim else (self.quote, self.label)
        )
        return f"{number:,} {one if number == 1 else many}"


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            Kind("frames", "pictures", "meaning", "seen", is_added=False),
            Kind("clips", "clips", "movement", "seen to move"),
            Kind("speech", "speech", "words", "said", "speech", is_line=True, is_verbatim=True),
            Kind(
                "screen_text",
                "text on screen",
                "words, typos forgiven",
                "shown as text",
                "screen text",
                is_line=True,
                is_verbatim=True,
                forgives_typos=True,
            ),
            Kind(
                "captions",
                "captions",
                "words and meaning",
                "described",
                "caption",
                is_line=True,
                is_quoted_with_frames=False,
            ),
            Kind("chapters", "chapters", "titles and summaries", "described", "chapter"),
            Kind("detections", "detections", "labels", "detected", "detection"),
        )
    }
)
"""All kinds by name, in the order in which help lists them."""
LINE_KINDS: tuple[KindName, ...] = tuple(kind.name for kind in KINDS.values() if kind.is_line)
"""Kinds whose rows are lines of text."""
WORDED_KINDS: tuple[KindName, ...] = tuple(kind.name for kind in KINDS.values() if kind.quote)
"""Kinds whose rows hold words."""
QUOTED_KINDS: tuple[KindName, ...] = tuple(name for name in LINE_KINDS if KINDS[name].is_quoted_with_frames)
"""Kinds whose lines agents get together with frames."""

ALL, WORDS = "all", "words"
SEVERAL: Literal["several"] = "several"
SEARCHED_TOGETHER: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {ALL: ("frames", "clips", *LINE_KINDS), WORDS: LINE_KINDS}
)
"""Places to search in that stand for several kinds, whose hits are fused."""
PLACES = (ALL, *KINDS, WORDS)
"""Where a search can look, besides the extracts of a library."""


def place_labels() -> dict[str, str]:
    """Label the places where a search can look, in words for people.

    >>> place_labels()["frames"]
    'pictures'
    """
    together = {ALL: "pictures and words", WORDS: "all words"}
    return {place: together.get(place) or KINDS[place].label for place in PLACES}


def line_kinds(names: Sequence[str]) -> tuple[KindName, ...]:
    """Check names of kinds of lines, and give each once, in the order of `LINE_KINDS`; raises QueryError.

    >>> line_kinds(["captions", "speech"])
    ('speech', 'captions')
    """
    unknown = next((name for name in names if name not in LINE_KINDS), None)
    if unknown is not None:
        raise QueryError(f"got {unknown!r}, which is no kind of lines; there are {', '.join(LINE_KINDS)}")
    return tuple(kind for kind in LINE_KINDS if kind in names)


def places_help() -> str:
    """Describe the places where a search can look, for help texts.

    >>> places_help()[:43]
    'all: frames, clips, words; frames: meaning;'
    """
    kinds = [f"{kind.name}: {kind.searched}" for kind in KINDS.values()]
    words = f"{WORDS}: {', '.join(LINE_KINDS)}"
    return "; ".join([f"{ALL}: frames, clips, {WORDS}", *kinds, words, "or an extract by its name"])
