"""A failure in words: beside the server's error stand what was tried, and the one thing to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kinodex.agent.errors import (
    AllRejected,
    ContextSpent,
    KeyMissing,
    ModelRejected,
    ModelUnknown,
    ModelUnreachable,
    NeedsPictures,
    TakesNoPictures,
)
from kinodex.agent.traces.trace import Record
from kinodex.errors import KinodexError
from kinodex.web.sentences import latest_sentence


class QuestionFault(KinodexError):
    """A fault of the program ended a question: its traceback is on the server's terminal, not on the wire."""


AGAIN = "Ask it again, or change the question."
DOCTOR = "kinodex doctor --base-url URL"
REMEDIES: tuple[tuple[type[Exception], str], ...] = (
    (KeyMissing, "Put the key into the environment of the server, and start it again."),
    (ModelUnknown, f"Start the server again with a model that the endpoint has; {DOCTOR} lists them."),
    (AllRejected, f"Correct the key or the address: {DOCTOR} tries both. Then start the server again."),
    (TakesNoPictures, "Start the server again with a model that sees, or choose a method that reads only words."),
    (ContextSpent, "Ask it again with fewer frames (under Limits), or about fewer videos."),
    (ModelRejected, f"See what the endpoint takes: {DOCTOR}. Or ask again with another method or fewer frames."),
    (ModelUnreachable, "Start the model's server, or start this one again with the right --base-url; then ask again."),
    (NeedsPictures, "Choose a method that reads only words, or videos with pictures."),
    (QuestionFault, "Look at the terminal of the server: it shows the fault. Please report it."),
)


def remedy(error: Exception) -> str:
    return next((words for kind, words in REMEDIES if isinstance(error, kind)), AGAIN)


def tried(records: Sequence[Record], agent: str, models: Mapping[str, str]) -> str:
    """Return the work of a question until it failed, in a sentence; `models` are as `describe_models` names them."""
    if not records:
        return f"The method {agent} had not begun."
    asked = " and ".join(dict.fromkeys(models.values()))
    replies = sum(each["event"] == "Exchanged" for each in records)
    came = f"{replies} {'reply' if replies == 1 else 'replies'} came"
    last = latest_sentence(records) if replies else "It was the first call that failed."
    return f"The method {agent} asked {asked}; {came}. {last}"
