"""Texts that a space can compare with a picture, made of a question and its options.

A space was trained on descriptions of pictures. So an option is put before the words of the question that say what it
is about: "What colour is the kite?" and "red" become "red kite". No grammar is needed for that.
"""

from __future__ import annotations

import re

from kinodex.agent.protocol.question import Question

_FUNCTION_WORDS = re.compile(
    r"\b(?:what|which|who|whom|whose|when|where|why|how|many|much|is|are|was|were|do|does|did|has|have|had|can|could|"
    r"will|there|the|a|an|in (?:this|the) (?:video|film|clip)|on (?:the )?screen|you|see|seen|show|shows|shown|appear|"
    r"appears|visible|colou?rs?|things?|kind|of (?:these|the following)(?: \w+)?)\b"
)


def subject(question: Question) -> str:
    """Return the words of a question that say what it is about; its own text if none does.

    >>> subject(Question("What colour is the kite in the desert?"))
    'kite in desert'
    """
    words = re.sub(r"[^\w\s'-]", " ", question.text.casefold())
    return " ".join(_FUNCTION_WORDS.sub(" ", words).split()) or question.text


def statements(question: Question) -> tuple[str, ...]:
    """Return a text for each option, such that the one that fits the pictures best says which option is right.

    >>> statements(Question("What colour is the kite?", ("red", "blue")))
    ('red kite', 'blue kite')
    """
    about = subject(question)
    about = "" if about == question.text else about
    return tuple(f"{option} {about}".strip() for option in question.options)


def queries(question: Question) -> tuple[str, ...]:
    """Return the texts to search for, each once: a statement for each option, and what the question is about."""
    return tuple(dict.fromkeys((*statements(question), subject(question))))
