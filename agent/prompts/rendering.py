"""Render the prompt of a request from its template, as one text or as a chat message with the frames.

Frames stand as JPEG data URLs, each after its label, where the template includes `_frames.jinja`; else after the
text. Conversations are laid out for the prefix caches of servers: a template begins with what no request of a run
changes, then come the frames in the order of their arrival, then what varies.
"""

from __future__ import annotations

import secrets
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kinodex.agent.prompts.messages import Message
from kinodex.agent.prompts.parts import frame_labels, frame_parts, text_part
from kinodex.agent.prompts.reply_form import reply_line
from kinodex.agent.prompts.segments import candidate_lines, history_lines, newness, scores_line, segment_line, time_line
from kinodex.agent.prompts.times import beside_range
from kinodex.agent.protocol.frames import Detail, citation_numbers
from kinodex.agent.protocol.notes import by_kind
from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import VIDEO_ID_LENGTH

if TYPE_CHECKING:
    from jinja2 import Environment, Template

FOLDER = Path(__file__).parents[1] / "templates"
_PICTURES = f"\0{secrets.token_hex(8)}\0"
"""The place of the frames in a rendered template; no text of a question can hold it, since it is of this process."""


def render(request: Request[R], *, reasoning: bool = True) -> str:
    """Render the prompt of a request as one text, with the labels of the frames in the place of their pictures.

    Without `reasoning` the model is not asked to write down its reasons.
    """
    before, after = _texts_around_frames(request, reasoning)
    *noted, last = log_lines(request)
    texts = [text for lines, label in zip(noted, _labels(request), strict=True) for text in (*lines, f"[{label}]")]
    labels = "\n".join([*texts, *last])
    return "\n\n".join(part for part in (before, labels, after) if part)


def request_message(
    request: Request[R], side_px: int | None, detail: Detail = "auto", *, reasoning: bool = True
) -> Message:
    """Return the first message of a request.

    It has the text before the frames, each frame after its label, and the text after.

    Plain text if there are no frames. Frames are scaled down to `side_px`, unless None.
    """
    detail = detail if request.detail == "auto" else request.detail
    before, after = _texts_around_frames(request, reasoning)
    if not request.frames:
        return {"role": "user", "content": "\n\n".join(part for part in (before, after) if part)}
    *noted, last = log_lines(request)
    parts = [text_part(before), *frame_parts(_labels(request), request.frames, side_px, detail, noted)]
    parts += map(text_part, last)
    return {"role": "user", "content": [*parts, text_part(after)] if after else parts}


def _texts_around_frames(request: Request[R], reasoning: bool) -> tuple[str, str]:
    """Return the text before the frames and the one after them, which is empty if the template does not say their
    place.
    """
    text = _template(request.template).render(request=request, pictures=_PICTURES, reasoning=reasoning)
    before, _, after = text.partition(_PICTURES)
    return before.strip(), after.strip()


def log_lines(request: Request[R]) -> list[list[str]]:
    """Entries of a request's log before each of its frames, in the order of their labels, and after the last one.

    An entry stands where it was written, so that what comes before it never changes.
    """
    placed: list[list[str]] = [[] for _ in range(len(request.frames) + 1)]
    in_turn = not getattr(request, "must_answer", False)  # at the end frames stand in the order of time
    for entry in getattr(request, "log", None) or ():
        later = (at for at, frame in enumerate(request.frames) if in_turn and frame.label > entry.after)
        placed[next(later, -1)].append(entry.line)
    return placed


def _labels(request: Request[R]) -> list[str]:
    return frame_labels(request.frames, getattr(request, "videos", ()))


@cache
def _template(name_or_text: str) -> Template:
    """Load a template of the folder by its name, or one given as text, which may include those of the folder."""
    if "\n" in name_or_text:
        return _templates().from_string(name_or_text)
    return _templates().get_template(f"{name_or_text}.jinja")


@cache
def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    templates = Environment(
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["one_line"] = lambda text: " ".join(text.split())
    templates.filters["seconds"] = lambda time_s: f"{time_s:.1f} s"
    templates.filters["by_kind"] = by_kind
    templates.globals["reply_line"] = reply_line
    templates.globals["clock_range"] = beside_range
    for function in (candidate_lines, history_lines, newness, scores_line, segment_line, time_line):
        templates.globals[function.__name__] = function
    templates.globals["note_numbers"] = lambda request: citation_numbers(request.frames, request.notes)[1]
    templates.filters["video"] = lambda video_id: video_id[:VIDEO_ID_LENGTH]
    return templates
