"""Small real libraries of videos that are known by their words alone, as `kinodex import` makes them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from kinodex.index.library import Library
from kinodex.index.rows import SpeechRow, VideoRow
from kinodex.index.spaces.embedders import TextEmbedder
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.spaces.load import load_text_tower
from tests.support.libraries.agent_library import DIM, add_film, embed_words, film
from tests.support.libraries.random_library import add_stage, plain_row

Lines = Sequence[tuple[float, float, str]]
"""(start_s, end_s, text) in time order."""
WRITER = "by hand"


def text_library(
    folder: Path,
    captions: Mapping[str, Lines],
    transcript: Mapping[str, Lines] | None = None,
    space: str = "words",
) -> Library:
    """A library of text-only videos by name, each as long as its text.

    "words" is the space of tests.support.libraries.agent_library (use its `environment_of`); commands need one that
    can be loaded.
    """
    said = transcript or {}
    library = Library.create(str(folder), {"fps": 1.0}, _fingerprint(space))
    for name in dict.fromkeys([*captions, *said]):
        id_, described = text_video_id(name), captions.get(name, ())
        library.writer.add_segments(
            {id_: [SimpleNamespace(start_s=s, end_s=e, kind="caption") for s, e, _ in described]}
        )
        end_s = max(end_s for _, end_s, _ in (*described, *said.get(name, ())))
        assert library.writer.complete([_row(name, end_s, len(described), space)]) == ()
    _add_captions(library, captions, space)
    _add_lines(library, said)
    return library


def text_video_id(name: str) -> str:
    return hashlib.sha256(f"imported:{name}".encode()).hexdigest()[:32]


def _add_captions(library: Library, videos: Mapping[str, Lines], space: str) -> None:
    rows = {
        text_video_id(name): [
            SimpleNamespace(segment_no=n, start_s=s, end_s=e, text=text, confidence=None, vector=vector)
            for n, ((s, e, text), vector) in enumerate(zip(lines, _embed(lines, space), strict=True))
        ]
        for name, lines in videos.items()
        if lines
    }
    add_stage(library, "captions", WRITER, rows)


def _add_lines(library: Library, videos: Mapping[str, Lines]) -> None:
    rows = {
        text_video_id(name): [
            SimpleNamespace(start_s=s, end_s=e, text=text, language=None, speaker=None) for s, e, text in lines
        ]
        for name, lines in videos.items()
    }
    library.additions.add_speech(rows, WRITER, "imported")
    counts = {video_id: len(each) for video_id, each in rows.items()}
    assert library.additions.complete("speech", WRITER, counts, {}) == ()


def _embed(lines: Lines, space: str) -> np.ndarray:
    texts = [text for _, _, text in lines]
    vectors = embed_words(texts) if space == "words" else _tower(space).embed_text(texts)
    return vectors.astype(np.float16)


def _fingerprint(space: str) -> Fingerprint:
    if space != "words":
        return _tower(space).fingerprint
    return Fingerprint("words", "bag-of-words", "0" * 64, "{}", DIM, True)


@cache
def _tower(space: str) -> TextEmbedder:
    return load_text_tower(space)


def _row(name: str, duration_s: float, segments: int, space: str) -> VideoRow:
    return plain_row(
        text_video_id(name),
        name,
        uri=f"imported:{name}",
        duration_s=duration_s,
        fps=None,
        width_px=0,
        height_px=0,
        codec="text",
        segments=segments,
        space=space,
    )


def _seconds(texts: list[str]) -> list[tuple[float, float, str]]:
    return [(float(at), at + 1.0, text) for at, text in enumerate(texts)]


def words_library(folder: Path) -> Library:
    """A described minute with a line, a talk without captions, a minute of cooking, and one film with pictures."""
    cooking = [f"the cook {what} in the kitchen" for what in ("cuts onions", "stirs the soup", "tastes the soup")]
    captions = {"told": _seconds(film(3, 60, {40: ("red kite desert", 5)})), "dinner": _seconds(cooking * 10)}
    talk = [(5.0 * at, 5.0 * at + 4.0, text) for at, text in enumerate(["hello", "a red kite", "a boat"] * 4)]
    lines = {"told": [(41.0, 43.0, "mind the wind")], "talk": talk}
    library = text_library(folder, captions, lines)
    add_film(library, "film", film(2, 60))
    spoken = SpeechRow(library.video("film").video_id, 11.0, 13.0, "said at twelve", "sidecar")
    library.writer.add_speech(
        {spoken.video_id: [spoken, replace(spoken, start_s=13.0, end_s=17.0, text="said between")]}
    )
    return library
