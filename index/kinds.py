"""The kinds of things that a library holds and a search finds. Each is declared here, once, under one name.

The name is the same everywhere: it is the table's, the place to search in (`--in`), what `kinodex add` makes, and the
word for it in JSON, HTTP, MCP and prompts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

KindName = Literal["frames", "clips", "speech", "screen_text", "captions", "chapters", "detections"]
LineKind = Literal["speech", "screen_text", "captions"]
"""Kinds whose rows are lines of text with a start and an end."""
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
    forgives_typos: bool = False
    """Of lines: where too few hold the words, those follow that hold them with a letter or two wrong."""

    @property
    def is_line(self) -> bool:
        """True for a kind of `LineKind`."""
        return self.name in LINE_KINDS


LINE_KINDS: tuple[LineKind, ...] = get_args(LineKind)
KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            Kind("frames", "pictures", "meaning", "seen", is_added=False),
            Kind("clips", "clips", "movement", "seen to move"),
            Kind("speech", "speech", "words", "said", "speech"),
            Kind(
                "screen_text",
                "text on screen",
                "words, typos forgiven",
                "shown as text",
                "screen text",
                forgives_typos=True,
            ),
            Kind("captions", "captions", "words and meaning", "described", "caption"),
            Kind("chapters", "chapters", "titles and summaries", "described", "chapter"),
            Kind("detections", "detections", "labels", "detected"),
        )
    }
)
"""All kinds by name, in the order in which help lists them."""

ALL, WORDS = "all", "words"
SEVERAL: Literal["several"] = "several"
SEARCHED_TOGETHER: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {ALL: ("frames", "clips", *LINE_KINDS), WORDS: LINE_KINDS}
)
"""Places to search in that stand for several kinds, whose hits are fused."""
PLACES = (ALL, *KINDS, WORDS)
"""Where a search can look, besides the extracts of a library."""


def places_help() -> str:
    """Describe the places where a search can look, for help texts.

    >>> places_help()[:43]
    'all: frames, clips, words; frames: meaning;'
    """
    kinds = [f"{kind.name}: {kind.searched}" for kind in KINDS.values()]
    words = f"{WORDS}: {', '.join(LINE_KINDS)}"
    return "; ".join([f"{ALL}: frames, clips, {WORDS}", *kinds, words, "or an extract by its name"])
