"""Lines found by their meaning, by the least cosine: `python -m tests.support.paraphrases SENTENCES WHISPER LIBRARY`.

The lines are those that Whisper hears in three clips of ../shared/media (WHISPER is its folder, or a JSON of what it
heard, by clip), two subtitle files beside them, and as many narrations of EgoSchema's videos (../shared/benchmarks) as
make 2,000 lines. The queries of tests/data/paraphrases.jsonl
were written from the lines, in other words (the `distant` ones on purpose far from them), before anything was searched;
those without a line are about nothing here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kinodex.index.library import Library
from kinodex.index.rows import Hit, Scope
from kinodex.index.search.words import lines_like
from kinodex.index.spaces.sentence_model import load_sentence_model, measure_likeness
from kinodex.pipeline.subtitles import subtitle_lines
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write

SHARED = Path(__file__).resolve().parents[3] / "shared"
CLIPS = ("moviepy__sintel_trailer_52s.mp4", "torchcodec__nasa_13013.mp4", "video2dataset__test_video.mp4")
SUBTITLES = ("iandevlin__sintel-en.vtt", "mediabunny__test.srt")
QUERIES = Path(__file__).parents[1] / "data" / "paraphrases.jsonl"
SAME_FILM = {"iandevlin__sintel-en.vtt": "moviepy__sintel_trailer_52s.mp4"}
ALL_LINES, A_VIDEO = 2000, 8
DEVIATIONS = (0.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5)


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


def compared(library: Library, query: dict[str, Any], said: Mapping[str, Sequence[str]]) -> tuple[float | None, float]:
    """The cosine of a query's own line, -1 if five others are nearer, and the best of the films that do not say it.

    `said` are the lines of each video.
    """
    meaning = library.sentences.meaning(query["query"])
    assert meaning is not None
    every = replace(meaning, least_cosine=-1.0)

    def like(scope: Scope, k: int) -> list[Hit]:
        return lines_like(library.tables, library.visible, every, scope, k)

    if not query["line"]:
        return None, like(Scope(), 1)[0].cosine or 0.0
    own = [hit.cosine or 0.0 for hit in like(Scope(), 5) if (hit.text or "").startswith(query["line"])]
    films = {row.video_id: SAME_FILM.get(row.title, row.title) for row in library.videos()}
    own_films = {films[id_] for id_, texts in said.items() if any(text.startswith(query["line"]) for text in texts)}
    others = tuple(id_ for id_, film in films.items() if film not in own_films)
    return max(own, default=-1.0), like(Scope(others), 1)[0].cosine or 0.0


def main(sentences: str, whisper: str, folder: str) -> None:
    """Print for each half of the queries, every other one, what each least cosine keeps, and what it finds in vain."""
    library = make(folder, sentences, whisper)
    queries: list[dict[str, Any]] = [json.loads(line) for line in QUERIES.read_text().splitlines()]
    space = library.sentences.space()
    assert space is not None
    chance = library.sentences._likeness(space)
    print(f"{library.tables.count('transcript')} lines; chance {chance}, least {chance.least:.3f}")
    said = {row.video_id: [line.text for line in library.transcript(row.video_id)] for row in library.videos()}
    cosines = [compared(library, query, said) for query in queries]
    for half in ("first", "second"):
        at = range(half == "second", len(queries), 2)
        for deviations in DEVIATIONS:
            least = -1.0 + (1 + chance.mean + deviations * chance.deviation) * (deviations > 0)
            parts = [[cosines[each][0] for each in at if bool(queries[each].get("distant")) == kind] for kind in (0, 1)]
            kept = [[own > -1.0 and own >= least for own in part if own is not None] for part in parts]
            shares = [*kept, [cosines[each][1] >= least for each in at]]
            figures = " | ".join(f"{sum(each) / len(each):.2f}" for each in shares)
            print(
                f"| {half} | {deviations} ({least:.2f}) | {figures} |"
                if deviations
                else f"| {half} | none | {figures} |"
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
