"""CG-Bench: where the clues lie that answer a question about a long film (Chen et al. 2024, arXiv 2412.12075).

Published as JSON, `cgbench.json` and, with 3,000 questions, `cgbench_mini.json`. Here the question is the search and
its clue intervals are the moments; `jobs.benchmarks.datasets.cg_bench` reads the same file as questions with options.
"""

from __future__ import annotations

from pathlib import Path

from jobs.benchmarks.datasets.cg_bench import CluedRow
from jobs.benchmarks.moments import MomentSample, ParsedMoments, check_range, parse_moments
from jobs.benchmarks.samples import AddNote, json_rows


def read(path: Path) -> ParsedMoments:
    """Read the questions as searches; the options and the answer, which would help to find the clues, are left out."""
    return parse_moments(json_rows(path), CluedRow, _item)


def _item(row: CluedRow, note: AddNote) -> MomentSample:
    clues = tuple((row.video_uid, *check_range("clue_intervals", *clue)) for clue in row.clue_intervals)
    return MomentSample(
        row.qid,
        "cg-bench",
        row.question.strip(),
        row.video_uid,
        clues,
        category=row.sub_category or row.domain,
        duration_s=row.duration,
    )
