"""Steps of agents that work with tools, in plain words: "skimmed 0:10 to 2:00 for “a dog”"."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from agent.trace.trace import Record
from jobs.viewer.words.spans import clock, joined, span

IN_WORDS = ("caption", "broaden", "deepen")
"""Actions that say themselves how many frames were looked at."""
QUOTED = 3
LONGEST = 80
UNSAID = ("answer",)
"""Actions that the decision after them puts into words."""


def action_words(acted: Record, titles: Mapping[str, str]) -> str:
    """Put one step into words, as a clause without a subject; "" for a step that another event tells about.

    `titles` are those of the videos where there are several. An unknown action, of an agent from elsewhere, has its
    own name.
    """
    name, arguments = acted["action"], acted["arguments"]
    if name in UNSAID:
        return ""
    if name == "verify":
        led = "did not lead" if acted["problem"] else "led"
        return f"looked again at the evidence alone, which {led} to the answer"
    if name == "chapters":
        return "read the list of scenes and chapters" if arguments["listed"] else "found no scenes or chapters to read"
    words = _WORDS.get(name, _unknown(name))(acted)
    title = titles.get(arguments.get("video") or "") or _titled(arguments.get("video"), titles)
    return words + (f" of “{title}”" if title else "") + (", which did not work" if acted["problem"] else "")


def quoted(texts: Sequence[str]) -> str:
    """The first few of some texts in quotation marks, with the count of the others."""
    shown = [f"“{_short(each)}”" for each in texts[:QUOTED]]
    rest = len(texts) - QUOTED
    return joined([*shown, f"{rest} more"] if rest > 0 else shown)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _titled(name: str | None, titles: Mapping[str, str]) -> str:
    """Title of a video that a model named by the first digits of its id, or by its title."""
    if not name:
        return ""
    return next((title for video_id, title in titles.items() if video_id.startswith(name) or title == name), "")


def _unknown(name: str) -> Callable[[Record], str]:
    return lambda acted: f"took the step “{name.replace('_', ' ')}”"


def _caption(acted: Record) -> str:
    arguments = acted["arguments"]
    if "frames" in arguments:
        return f"put {_frames(acted)} into words"
    return f"had {span(arguments)} put into words"


def _frames(acted: Record, more: str = "") -> str:
    count = acted["arguments"]["frames"]
    return f"{count} {more}frame{'' if count == 1 else 's'}"


def _retrieve(acted: Record) -> str:
    texts = [each.partition(": ")[2] or each for each in acted["arguments"]["frames"]]
    return f"went to look for {quoted(texts)}" if texts else "found nothing more to look for"


def _query(acted: Record) -> str:
    query = acted["arguments"].get("query")
    return f" for {quoted([query])}" if query else ""


def _ground(acted: Record) -> str:
    found = joined([span(note) for note in acted["notes"][:QUOTED]])
    return f"searched what is said and described{_query(acted)}" + (f", which led to {found}" if found else "")


def _look(acted: Record) -> str:
    times_s = acted["arguments"].get("times_s") or ()
    if not times_s:
        return "chose frames to look at"
    first, last = clock(min(times_s)), clock(max(times_s))
    return f"chose frames {f'at {first}' if first == last else f'from {first} to {last}'}"


def _label(acted: Record, otherwise: str) -> str:
    label = acted["arguments"].get("label")
    return f"“{_short(label)}”" if label else otherwise


_WORDS: dict[str, Callable[[Record], str]] = {
    "caption": _caption,
    "broaden": lambda acted: f"put {_frames(acted)} from all over the video into words",
    "deepen": lambda acted: f"put {_frames(acted, 'more ')} like the relevant ones into words",
    "retrieve": _retrieve,
    "overview": lambda acted: "looked over the whole video",
    "skim": lambda acted: f"skimmed {span(acted['arguments'])}{_query(acted)}",
    "focus": lambda acted: f"watched {span(acted['arguments'])} closely{_query(acted)}",
    "request_grounding": _ground,
    "visual_query": lambda acted: f"had the frames there searched{_query(acted)}",
    "detect": lambda acted: f"looked for {_label(acted, 'things')} in {span(acted['arguments'])}",
    "zoom_caption": lambda acted: f"zoomed in at {span(acted['arguments'])} and had it put into words",
    "zoom_detect": lambda acted: f"zoomed in at {span(acted['arguments'])} and looked for {_label(acted, 'things')}",
    "track": lambda acted: f"followed {_label(acted, 'a thing')} from {span(acted['arguments'])}",
    "look": _look,
    "captions": lambda acted: "put the video into words, with gaps",
    "none": lambda acted: "got no step from its model that could be taken",
    "malformed": lambda acted: "got no step from its model that could be taken",
}
