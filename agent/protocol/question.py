"""Questions, open-ended or with options."""

from __future__ import annotations

import string
from dataclasses import dataclass

from kinodex.agent.errors import BadQuestion

MAX_OPTIONS = 26


@dataclass(frozen=True, slots=True)
class Earlier:
    """A question that was answered before in the same conversation."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question, open-ended (no options) or multiple-choice (2 to 26 distinct options), perhaps after `earlier` ones.

    Raises `BadQuestion` for an empty text, one option, too many, empty or repeated options, and halves of characters.
    """

    text: str
    options: tuple[str, ...] = ()
    earlier: tuple[Earlier, ...] = ()

    def __post_init__(self) -> None:
        if not (isinstance(self.text, str) and all(isinstance(each, str) for each in self.options)):
            raise BadQuestion(f"got {(self.text, *self.options)!r:.80}; a question and its options are texts")
        if not self.text.strip():
            raise BadQuestion("the question is empty; write what you want to know about the video")
        if len(self.options) == 1 or len(self.options) > MAX_OPTIONS:
            got = f"got {len(self.options)} option" + "s" * (len(self.options) > 1)
            raise BadQuestion(
                f"{got}; a question has none (open-ended) or 2 to {MAX_OPTIONS}; give --option once for each"
            )
        if any(not option.strip() for option in self.options):
            raise BadQuestion("an option is empty; every option needs some text")
        folded = [option.strip().casefold() for option in self.options]
        repeated = next((option for option in folded if folded.count(option) > 1), None)
        if repeated is not None:
            raise BadQuestion(f"the option {repeated!r} is given more than once; options must differ")
        for text in (self.text, *self.options):
            try:
                text.encode()
            except UnicodeEncodeError as error:  # JSON and command lines accept such texts
                half = f"{text[:60]!r} holds {text[error.start]!r}"
                raise BadQuestion(f"{half}, which is half a character; write it in UTF-8") from error

    @property
    def lettered(self) -> tuple[tuple[str, str], ...]:
        """Options with their letters: (("A", "red"), ("B", "blue"), ...)."""
        return tuple(zip(string.ascii_uppercase, self.options, strict=False))
