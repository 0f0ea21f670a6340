"""MMBench-Video: free-form questions about films of some minutes (Fang et al. 2024, arXiv 2406.14515).

A named model judges answers from 0 to 3. A question counts once in every leaf of the tree of abilities that it names,
in every branch that holds one of them, and in perception or reasoning or both.
"""

from __future__ import annotations

import ast
from typing import Annotated

from pydantic import Field

from kinodex.agent.protocol.question import Question
from kinodex.jobs.eval.items import BadRow, Item, Target
from kinodex.jobs.eval.rows import AddNote, Row

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


class MMBenchVideoRow(Row):
    """In groups by leaf, branch, and perception or reasoning."""

    index: str
    video: str
    question: str
    answer: Annotated[str, Field(min_length=1)]
    dimensions: str

    def item(self, note: AddNote) -> Item:
        leaves = _leaves(self.dimensions)
        groups = {
            "dimension": leaves,
            "ability": tuple(dict.fromkeys(BRANCHES[leaf][0] for leaf in leaves)),
            "perception/reasoning": tuple(dict.fromkeys(BRANCHES[leaf][1] for leaf in leaves)),
        }
        return Item(self.index, self.video, Question(self.question.strip()), Target(text=self.answer), groups)


def _leaves(dimensions: str) -> tuple[str, ...]:
    """Parse the leaves in a list that is written as a string: "['OCR', 'Counting']"."""
    try:
        leaves = ast.literal_eval(dimensions)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise BadRow(f"dimensions: got {dimensions!r:.60}, no list of abilities") from error
    if not isinstance(leaves, list) or not leaves or not all(leaf in list(BRANCHES) for leaf in leaves):
        raise BadRow(f"dimensions: got {dimensions!r:.60}; it is a list of some of {', '.join(BRANCHES)}")
    return tuple(dict.fromkeys(leaves))
