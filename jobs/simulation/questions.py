"""Question sets for simulations: generated in the likeness of LVBench, or with the times of a real annotation file.

Known of LVBench, and kept to: 103 videos of 4,101 s on average (alphaxiv.org/benchmarks/tsinghua-university/lvbench),
none under 30 minutes (VCA, section 4.1), some over 100 (EEA, Figure 8); four options. Assumed, for want of a source:
lengths are log-normal; evidence is one range that lies anywhere with equal chance, log-normal in length, half of all
under 20 s and one in twenty under 3 s (the one published example in hand, 00:15-00:19, is 4 s long). Questions
about a whole film have no evidence to be found and are left out; so are questions of an annotation file without
a time reference or a length.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jobs.errors import UsageError
from jobs.simulation.world.world import SimulatedQuestion

PER_VIDEO = 5
OPTIONS = 4
MEDIAN_S, SPREAD, SHORTEST_S, LONGEST_S = 3800.0, 0.4, 1800.0, 9000.0
EVIDENCE_S, EVIDENCE_SPREAD, LEAST_S = 20.0, 1.2, 2.0


def make_questions(count: int, seed: int) -> tuple[SimulatedQuestion, ...]:
    """Generate questions about videos that do not exist, `PER_VIDEO` about each."""
    chance = np.random.default_rng([seed, 1])
    made = []
    for number in range(count):
        if number % PER_VIDEO == 0:
            drawn_s = MEDIAN_S * float(np.exp(SPREAD * chance.standard_normal()))
            length_s = min(max(drawn_s, SHORTEST_S), LONGEST_S)
        shown_s = EVIDENCE_S * float(np.exp(EVIDENCE_SPREAD * chance.standard_normal()))
        shown_s = min(max(shown_s, LEAST_S), length_s / 2)
        start_s = float(chance.uniform(0, length_s - shown_s))
        video, option = f"video {number // PER_VIDEO}", int(chance.integers(OPTIONS))
        made.append(SimulatedQuestion(f"q{number}", video, length_s, ((start_s, start_s + shown_s),), option, OPTIONS))
    return tuple(made)


def read_questions(annotations: Path, count: int, seed: int) -> tuple[SimulatedQuestion, ...]:
    """Take up to `count` questions with their lengths and time references from an LVBench file, spread over it.

    Raises `UsageError` if none of them has both.
    """
    from jobs.benchmarks.registry import read_benchmark

    items = [
        item
        for item in read_benchmark("lvbench", annotations).samples
        if item.duration_s and item.truth.evidence and item.truth.option is not None
    ]
    if not items:
        raise UsageError(
            f"got {annotations}, in which no question has a time reference and a video's length; "
            "give LVBench's video_info.meta.jsonl, or leave it out for made-up questions"
        )
    chosen = np.sort(np.random.default_rng(seed).permutation(len(items))[:count])
    return tuple(
        SimulatedQuestion(
            item.item_id,
            item.video,
            item.duration_s or 0.0,
            item.truth.evidence,
            item.truth.option or 0,
            max(2, len(item.question.options)),
        )
        for item in (items[at] for at in chosen)
    )


def describe(questions: Sequence[SimulatedQuestion]) -> str:
    """Describe the set in one line: numbers of questions and videos, lengths of videos and evidence."""
    lengths_s = {each.video: each.duration_s for each in questions}
    shown_s = [end_s - start_s for each in questions for start_s, end_s in each.evidence]
    return (
        f"{len(questions)} questions about {len(lengths_s)} videos of {np.mean(list(lengths_s.values())) / 60:.0f} "
        f"minutes on average ({min(lengths_s.values()) / 60:.0f} to {max(lengths_s.values()) / 60:.0f}), "
        f"evidence {np.median(shown_s):.0f} s long in the middle case"
    )
