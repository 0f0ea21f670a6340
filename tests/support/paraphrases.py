"""Lines found by their meaning, by the least cosine: `python -m tests.support.paraphrases SENTENCES LIBRARY`.

The lines are of ../shared/benchmarks: a caption of each of NExT-QA's videos, two narrations of each of EgoSchema's, and
the answers of LongTVQA that are sentences. The queries of tests/data/paraphrases.jsonl were written from them before
anything was searched: of a line, which a part of it names, one `near` and one `distant` paraphrase; or about something
`absent`, of which no line has a word. Every other one of each
kind is to choose by, the rest to report.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from kinodex.index.library import Library
from kinodex.index.rows import Hit, Scope
from kinodex.index.search.words import lines_like
from kinodex.index.spaces.sentence_model import load_sentence_model, measure_likeness
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write

SHARED = Path(__file__).resolve().parents[3] / "shared" / "benchmarks"
QUERIES = Path(__file__).parents[1] / "data" / "paraphrases.jsonl"
NARRATED_S = (11, 101)
LEAST_WORDS = 6
DEVIATIONS = (0.0, 2.5, 3.0, 3.25, 3.5, 3.75, 4.0, 4.25, 4.5, 5.0)


def lines() -> Iterator[tuple[str, list[str]]]:
    """The lines of each benchmark, which are here those of one video."""
    with zipfile.ZipFile(SHARED / "nextqa" / "nextqa_allcaps_1fps.zip") as held:
        names = sorted(each for each in held.namelist() if each.endswith(".json"))
        captions: list[dict[str, str]] = [json.loads(held.read(name)) for name in names]
    yield "nextqa", [each[sorted(each, key=int)[len(each) // 2]].strip() for each in captions]
    narrated: dict[str, list[str]] = json.loads((SHARED / "egoschema" / "lavila_subset.json").read_text())
    said = [narrated[name][at] for name in sorted(narrated) for at in NARRATED_S]
    yield "egoschema", [text.replace("#C C", "").replace("#O", "").strip() for text in said]
    rows = json.loads((SHARED / "longtvqa" / "LongTVQA_plus_val.first150.json").read_text())
    answers = [row[row["answer"]] for row in rows]
    yield "longtvqa", [answer for answer in answers if len(answer.split()) >= LEAST_WORDS]


def make(folder: str, sentences: str) -> Library:
    """Make the library, or open the one that is there."""
    if Library.exists(folder):
        return Library.open(folder)
    library = Library.create(folder, SETTINGS, fingerprint())
    model = load_sentence_model(sentences, "cpu")
    library.sentences.add_space(model.space, measure_likeness(model))
    for number, (name, texts) in enumerate(lines()):
        video_id = f"{number:04d}"
        said = tuple((float(at), at + 1.0, text) for at, text in enumerate(texts))
        write(library, made(video_id, 1, number, lines=said), name)
        rows = library.sentences.lines(video_id)
        library.sentences.add({video_id: (rows, model.embed_lines([row.text for row in rows]))}, model.space)
        library.additions.complete("sentences", model.space.digest, {video_id: len(rows)}, {})
    return library


def nearest(library: Library, query: str, k: int) -> list[Hit]:
    """The lines nearest to a query by meaning, however far."""
    meaning = library.sentences.meaning(query)
    assert meaning is not None
    return lines_like(library.tables, library.visible, replace(meaning, least_cosine=-1.0), Scope(), k)


def own_cosine(library: Library, query: str, line: str) -> float:
    """The cosine of the line that a query paraphrases; -1 if five others are nearer."""
    return max((hit.cosine or 0.0 for hit in nearest(library, query, 5) if line in (hit.text or "")), default=-1.0)


def main(sentences: str, folder: str) -> None:
    """Print for each half of the queries what each least cosine keeps, and what it finds in vain."""
    library = make(folder, sentences)
    rows: list[dict[str, Any]] = [json.loads(line) for line in QUERIES.read_text(encoding="utf-8").splitlines()]
    paired, absent = [row for row in rows if "line" in row], [row["absent"] for row in rows if "absent" in row]
    space = library.sentences.space()
    assert space is not None
    chance = library.sentences._likeness(space)
    print(f"{library.tables.count('transcript')} lines; chance {chance}, least {chance.least:.3f}")
    near, distant = ([own_cosine(library, row[kind], row["line"]) for row in paired] for kind in ("near", "distant"))
    in_vain = [nearest(library, query, 1)[0].cosine or 0.0 for query in absent]
    for half in (0, 1):
        kinds = [cosines[half::2] for cosines in (near, distant, in_vain)]
        print(f"half {half + 1}: {len(kinds[0])} pairs, {len(kinds[2])} absent")
        for deviations in DEVIATIONS:
            least = -1.0 + (1 + chance.mean + deviations * chance.deviation) * (deviations > 0)
            shares = [sum(each > -1.0 and each >= least for each in kind) / len(kind) for kind in kinds]
            name = f"{deviations} ({least:.2f})" if deviations else "none"
            print(f"| {half + 1} | {name} | {' | '.join(f'{each:.2f}' for each in shares)} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
