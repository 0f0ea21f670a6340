"""Questions about drawn films, asked and scored as lmms-eval's own tasks of several choices are."""

from __future__ import annotations

import re
import string
from typing import Any


def videos(doc: dict[str, Any]) -> list[str]:
    """The video of a question: the kit sends its path."""
    return [doc["video"]]


def prompt(doc: dict[str, Any], lmms_eval_specific_kwargs: dict[str, Any] | None = None) -> str:
    """The text of a question, with the instruction of the kit's Video-MME."""
    options = "\n".join(f"{name}. {text}" for name, text in zip(string.ascii_uppercase, doc["options"], strict=False))
    return f"{doc['question']}\n{options}\nAnswer with the option's letter from the given choices directly."


def letter(doc: dict[str, Any]) -> str:
    """The right letter."""
    return string.ascii_uppercase[doc["answer"]]


def score(doc: dict[str, Any], results: list[str]) -> dict[str, float]:
    """1 for a reply that begins with the right letter."""
    found = re.match(r"\s*\(?([A-Z])\b", results[0])
    return {"accuracy": float(found is not None and found[1] == letter(doc))}
