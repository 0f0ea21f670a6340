"""Questions about spoken lines of story films, in other words than the lines: `python -m
tests.support.stories.paraphrased_questions FILMS > questions.jsonl`.

FILMS are those of `kinodex sample FILMS --form story --hours 0.75 --seed 21`. The questions and options of
tests/data/story_paraphrases.jsonl were written from the lines before anything was searched; of each the first option is
right. Each is about one line, wherever the film says it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

HOURS, SEED = 0.75, 21
DATA = Path(__file__).parents[2] / "data" / "story_paraphrases.jsonl"


def paraphrases() -> list[dict[str, Any]]:
    """Film, line, question and options of each."""
    return [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]


def questions(films: Path) -> Iterator[dict[str, Any]]:
    """Rows as those of the questions.jsonl that `kinodex sample` writes, the options in an order of chance."""
    for number, row in enumerate(paraphrases(), start=1):
        script = json.loads((films / f"{row['film']}.script.json").read_text(encoding="utf-8"))
        ranges = [[line["start_s"], line["end_s"]] for line in script["spoken"] if line["text"] == row["line"]]
        options = Random(f"paraphrases/{number}").sample(row["options"], len(row["options"]))
        yield {
            "question_id": f"{row['film']}-p{number:02d}",
            "video": f"{row['film']}.mp4",
            "kind": "paraphrase",
            "asks": "paraphrase",
            "needs": "words",
            "question": row["question"],
            "options": options,
            "answer": options.index(row["options"][0]),
            "evidence": ranges[0],
            "ranges": ranges,
        }


if __name__ == "__main__":
    for each in questions(Path(sys.argv[1])):
        print(json.dumps(each))
