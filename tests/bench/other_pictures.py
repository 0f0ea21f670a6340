"""Questions asked about pictures that have nothing to do with them: the part of an answerer's share that is no sight.

    python -m tests.bench.other_pictures LIBRARY QUESTIONS

Each question with options is asked of `similarity`, about its own film and about every other film of the library.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import kinodex
from kinodex.jobs.eval.readers.own import OwnRow
from kinodex.jobs.eval.row_files import json_lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("questions", type=Path)
    given = parser.parse_args()
    library = kinodex.open(given.library)
    titles = [video.title for video in library.videos()]
    own: list[bool] = []
    others: list[float] = []
    abstained = 0
    for _, row in json_lines(given.questions):
        item = OwnRow.model_validate(row).item(lambda note: None)
        title = library.video(item.video).title
        answers = {each: library.ask(item.question, agent="similarity", videos=each) for each in titles}
        own.append(answers[title].option == item.truth.option)
        abstained += answers[title].option is None
        wrong_film = [answer for each, answer in answers.items() if each != title]
        others.append(sum(answer.option == item.truth.option for answer in wrong_film) / len(wrong_film))
    print(f"{len(own)} questions, {len(titles)} films")
    print(f"right about its own film: {_share([float(each) for each in own])}; no answer: {abstained}")
    print(f"right about another film: {_share(others)}")


def _share(values: list[float]) -> str:
    mean = sum(values) / len(values)
    error = math.sqrt(sum((each - mean) ** 2 for each in values) / (len(values) - 1) / len(values))
    return f"{mean:.3f} ± {error:.3f}"


if __name__ == "__main__":
    main()
