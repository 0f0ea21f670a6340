"""Recall of searches by words, by meaning and by both: `python -m tests.support.paraphrases SENTENCES WHISPER LIBRARY`.

The lines are those that Whisper hears in three clips of ../shared/media (WHISPER is its folder, or a JSON of what it
heard, by clip), two subtitle files beside them, and as many narrations of EgoSchema's videos (../shared/benchmarks) as
make 2,000 lines. The queries of tests/data/paraphrases.jsonl
were written from the lines, in other words, before anything was searched; those without a line are about nothing here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from kinodex.index.library import Library
from kinodex.index.rows import Hit, Scope
from kinodex.index.search.words import lines_like
from kinodex.index.sentences import Meaning
from kinodex.index.spaces.sentence_model import load_sentence_model, measure_likeness
from kinodex.pipeline.subtitles import subtitle_lines
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write

SHARED = Path(__file__).resolve().parents[3] / "shared"
CLIPS = ("moviepy__sintel_trailer_52s.mp4", "torchcodec__nasa_13013.mp4", "video2dataset__test_video.mp4")
SUBTITLES = ("iandevlin__sintel-en.vtt", "mediabunny__test.srt")
QUERIES = Path(__file__).parents[1] / "data" / "paraphrases.jsonl"
ALL_LINES, A_VIDEO = 2000, 8
DEVIATIONS = (3.0, 4.0, 4.5, 5.0)


def lines(whisper: str) -> Iterator[tuple[str, tuple[tuple[float, float, str], ...]]]:
    """Name and lines of each video."""
    total = 0
    for name, said in heard(whisper):
        total += len(said)
        yield name, said
    for name in SUBTITLES:
        data = (SHARED / "media" / "subs" / name).read_bytes()
        shown = tuple((line.start_s, line.end_s, line.text) for line in subtitle_lines(data, name))
        total += len(shown)
        yield name, shown
    narrated = json.loads((SHARED / "benchmarks" / "egoschema" / "lavila_subset.json").read_text())
    for name, texts in narrated.items():
        if total >= ALL_LINES:
            return
        some = [text.replace("#C C", "").replace("#O", "").strip() for text in texts[:: max(1, len(texts) // A_VIDEO)]]
        total += len(some)
        yield name, tuple((float(at), at + 1.0, text) for at, text in enumerate(some))


def heard(whisper: str) -> Iterator[tuple[str, tuple[tuple[float, float, str], ...]]]:
    """Name of each clip with speech, and the lines that Whisper hears."""
    if whisper.endswith(".json"):
        known = json.loads(Path(whisper).read_text())
        yield from ((name, tuple(tuple(line) for line in known[name])) for name in CLIPS)
        return
    from kinodex.pipeline.models.audio import sound_windows
    from kinodex.pipeline.models.speech import load_recogniser

    recogniser = load_recogniser(whisper, "cpu")
    for name in CLIPS:
        said = recogniser.transcribe(sound_windows(SHARED / "media" / "clips" / name, name, False))
        yield name, tuple((line.start_s, line.end_s, line.text) for line in said)


def make(folder: str, sentences: str, whisper: str) -> Library:
    """Make the library, or open the one that is there."""
    if Library.exists(folder):
        return Library.open(folder)
    library = Library.create(folder, SETTINGS, fingerprint())
    model = load_sentence_model(sentences, "cpu")
    library.sentences.add_space(model.space, measure_likeness(model))
    for number, (name, said) in enumerate(lines(whisper)):
        video_id = f"{number:04d}"
        write(library, made(video_id, 1, number, lines=said), name)
        rows = library.sentences.lines(video_id)
        library.sentences.add({video_id: (rows, model.embed_lines([row.text for row in rows]))}, model.space)
        library.additions.complete("sentences", model.space.digest, {video_id: len(rows)}, {})
    return library


def rank(hits: list[Hit], start: str) -> int | None:
    """The rank of the line that begins so, from 1; None where it was not found."""
    return next((at for at, hit in enumerate(hits, 1) if (hit.text or "").startswith(start)), None)


def row(name: str, ranks: list[int | None], empty: int, absent: int) -> str:
    """A row of the table."""
    shares = [sum(at is not None and at <= k for at in ranks) / len(ranks) for k in (1, 5, 10)]
    return f"| {name} | {' | '.join(f'{each:.2f}' for each in shares)} | {empty} of {absent} |"


def main(sentences: str, whisper: str, folder: str) -> None:
    library = make(folder, sentences, whisper)
    queries: list[dict[str, Any]] = [json.loads(line) for line in QUERIES.read_text().splitlines()]
    meanings: dict[str, Meaning] = {}
    for each in queries:
        meaning = library.sentences.meaning(each["query"])
        assert meaning is not None
        meanings[each["query"]] = meaning
    space = library.sentences.space()
    assert space is not None
    chance = library.sentences._likeness(space)
    print(f"{library.tables.count('transcript')} lines; chance {chance}, least {chance.least:.3f}")
    ways: dict[str, Any] = {"words (BM25)": lambda text, _: library.search.words(text, k=10)}
    for deviations in DEVIATIONS:
        least = chance.mean + deviations * chance.deviation
        ways[f"meaning, {deviations} deviations ({least:.2f})"] = lambda text, least: lines_like(
            library.tables, library.visible, replace(meanings[text], least_cosine=least), Scope(), 10
        )
        ways[f"both, {deviations} deviations"] = lambda text, least: library.search.words(
            text, k=10, meaning=replace(meanings[text], least_cosine=least)
        )
    for name, way in ways.items():
        number = next((d for d in DEVIATIONS if f" {d} " in name), 0.0)
        found = {q["query"]: way(q["query"], chance.mean + number * chance.deviation) for q in queries}
        ranks = [rank(found[q["query"]], q["line"]) for q in queries if q["line"]]
        absent = [found[q["query"]] for q in queries if not q["line"]]
        print(row(name, ranks, sum(not hits for hits in absent), len(absent)))


if __name__ == "__main__":
    main(*sys.argv[1:])
