"""Steps of agents that work with tools, in the words that each agent brings: "skimmed 0:10 to 2:00 for “a dog”"."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kinodex.agent.catalogue import VARIANTS
from kinodex.agent.traces.trace import Record

Words = Mapping[str, Callable[[Record], str]]

SHARED = {
    "captions": lambda acted: "put the video into words, with gaps",
    "chapters": lambda acted: (
        "read the list of scenes and chapters"
        if acted["arguments"]["listed"]
        else "found no scenes or chapters to read"
    ),
    "verify": lambda acted: (
        f"looked again at the evidence alone, which {'did not lead' if acted['problem'] else 'led'} to the answer"
    ),
}
"""Steps of all agents."""
WHOLE = ("chapters", "verify")
"""Steps whose problem the words tell already."""


def step_words(agent: str) -> Words:
    """Return the words for the steps of an agent of kinodex; a plugin's stand in its traces."""
    return {**SHARED, **next((each.words for each in VARIANTS if each.name == agent), {})}


def action_words(acted: Record, words: Words, titles: Mapping[str, str]) -> str:
    """Put one step into words, as a clause without a subject; "" for a step that another event tells about.

    `titles` are those of the videos where there are several. A step that its agent has no words for has its own name.
    """
    name, arguments = acted["action"], acted["arguments"]
    known = words.get(name)
    clause = known(acted) if known else acted.get("words") or f"took the step “{name.replace('_', ' ')}”"
    if not clause or name in WHOLE:
        return clause
    title = titles.get(arguments.get("video") or "") or _titled(arguments.get("video"), titles)
    return clause + (f" of “{title}”" if title else "") + (", which did not work" if acted["problem"] else "")


def _titled(name: str | None, titles: Mapping[str, str]) -> str:
    if not name:
        return ""
    return next((title for video_id, title in titles.items() if video_id.startswith(name) or title == name), "")
