"""Lines found by their meaning, by the least cosine: `python -m tests.support.paraphrases SENTENCES`.

The lines are of ../shared/benchmarks: a caption of each of NExT-QA's videos, two narrations of each of EgoSchema's, and
the answers of LongTVQA that are sentences. The queries of tests/data/paraphrases.jsonl were written from them before
anything was searched: of a line, which a part of it names, one `near` and one `distant` paraphrase; or about something
`absent`, of which no line has a word. The first half of each, every other one, is to choose by; the second to report.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.spaces.likeness import measure_likeness
from kinodex.index.spaces.sentence_model import load_sentence_model

SHARED = Path(__file__).resolve().parents[3] / "shared" / "benchmarks"
QUERIES = Path(__file__).parents[1] / "data" / "paraphrases.jsonl"
NARRATED_S = (11, 101)
LEAST_WORDS = 6
DEVIATIONS = (0.0, 2.5, 3.0, 3.25, 3.5, 3.75, 4.0, 4.25, 4.5, 5.0)


def lines() -> Iterator[tuple[str, list[str]]]:
    """The lines of each benchmark."""
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


def main(sentences: str) -> None:
    """Print for each half of the queries what each least cosine keeps, and what it finds in vain."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in QUERIES.read_text(encoding="utf-8").splitlines()]
    paired, absent = [row for row in rows if "line" in row], [row["absent"] for row in rows if "absent" in row]
    model = load_sentence_model(sentences, "cpu")
    texts = [text for _, said in lines() for text in said]
    chance, vectors = measure_likeness(model), model.embed_lines(texts)
    print(f"{len(texts)} lines; chance {chance}, least {chance.least:.3f}")

    def cosines(queries: list[str]) -> NDArray[np.floating[Any]]:
        return model.embed_texts(queries) @ vectors.T

    kinds = [own_cosines(cosines([row[kind] for row in paired]), texts, paired) for kind in ("near", "distant")]
    kinds.append(cosines(absent).max(axis=1).tolist())
    for half in (0, 1):
        found = [each[half::2] for each in kinds]
        print(f"half {half + 1}: {len(found[0])} pairs, {len(found[2])} absent")
        for deviations in DEVIATIONS:
            least = -1.0 + (1 + chance.mean + deviations * chance.deviation) * (deviations > 0)
            shares = [sum(each > -1.0 and each >= least for each in kind) / len(kind) for kind in found]
            name = f"{deviations} ({least:.2f})" if deviations else "none"
            print(f"| {half + 1} | {name} | {' | '.join(f'{each:.2f}' for each in shares)} |")


def own_cosines(cosines: NDArray[np.floating[Any]], texts: list[str], paired: list[dict[str, Any]]) -> list[float]:
    """For each query the cosine of the line that it paraphrases; -1 if five others are nearer."""
    nearest = np.argsort(-cosines, axis=1)[:, :5].tolist()
    own = [[at for at in five if row["line"] in texts[at]] for five, row in zip(nearest, paired, strict=True)]
    return [max((float(some[at]) for at in found), default=-1.0) for some, found in zip(cosines, own, strict=True)]


if __name__ == "__main__":
    main(*sys.argv[1:])
