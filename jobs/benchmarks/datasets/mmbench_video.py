"""MMBench-Video: free-form questions about films of some minutes (Fang et al. 2024, arXiv 2406.14515).

Published as `MMBench-Video.tsv`. A named model judges answers from 0 to 3. A question counts once in every leaf of the
tree of abilities that it names, in every branch that holds one of them, and in perception or reasoning or both.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from agent.core.question import Question
from jobs.benchmarks.samples import AS_PUBLISHED, AddNote, BadRow, ParsedRows, Sample, Target, csv_rows, parse_samples

# fmt: off
PERCEPTION = {
    "CP": ("Video Topic", "Video Emotion", "Video Scene", "Video Style"),
    "FP-S": ("OCR", "Object Recognition", "Attribute Recognition", "Event Recognition", "Human Motion", "Counting"),
    "FP-C": ("Spatial Relationship", "Human-object Interaction", "Human Interaction"),
    "HL": ("Hallucination",),
}
REASONING = {
    "LR": ("Structuralized Image-Text Understanding", "Mathematical Calculation"),
    "AR": ("Physical Property", "Function Reasoning", "Identity Reasoning"),
    "RR": ("Natural Relation", "Physical Relation", "Social Relation"),
    "CSR": ("Common Sense Reasoning",),
    "TR": ("Counterfactual Reasoning", "Causal Reasoning", "Future Prediction"),
}
# fmt: on
BRANCHES = {
    leaf: (branch, side)
    for side, branches in (("perception", PERCEPTION), ("reasoning", REASONING))
    for branch, leaves in branches.items()
    for leaf in leaves
}
"""The branch and the side of the tree on which each of the 26 leaves grows."""


class _Row(BaseModel):
    model_config = AS_PUBLISHED

    index: str
    video: str
    question: str
    answer: Annotated[str, Field(min_length=1)]
    dimensions: str


def read_mmbench_video(path: Path) -> ParsedRows:
    """Read questions, grouped by leaf, branch, and perception or reasoning."""
    return parse_samples(csv_rows(path, "\t"), _Row, _item)


def _item(row: _Row, note: AddNote) -> Sample:
    leaves = _leaves(row.dimensions)
    groups = {
        "dimension": leaves,
        "ability": tuple(dict.fromkeys(BRANCHES[leaf][0] for leaf in leaves)),
        "perception/reasoning": tuple(dict.fromkeys(BRANCHES[leaf][1] for leaf in leaves)),
    }
    return Sample(row.index, row.video, Question(row.question.strip()), Target(text=row.answer), groups)


def _leaves(dimensions: str) -> tuple[str, ...]:
    """Parse the leaves in a list that is written as a string: "['OCR', 'Counting']"."""
    try:
        leaves = ast.literal_eval(dimensions)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise BadRow(f"dimensions: got {dimensions!r:.60}, no list of abilities") from error
    if not isinstance(leaves, list) or not leaves or not all(leaf in list(BRANCHES) for leaf in leaves):
        raise BadRow(f"dimensions: got {dimensions!r:.60}; it is a list of some of {', '.join(BRANCHES)}")
    return tuple(dict.fromkeys(leaves))
