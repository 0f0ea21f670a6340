"""The text of a request, rendered from its template in agent/prompts/templates. Pictures are added by the wire."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from agent.core.protocol import R, Request

if TYPE_CHECKING:
    from jinja2 import Environment, Template

FOLDER = Path(__file__).parent / "templates"
VIDEO_ID_LENGTH = 12
"""How much of a video's id names it to a model."""


def render(request: Request[R]) -> str:
    """The prompt of a request. It speaks of frames by number and time; their pictures follow it in that order."""
    return _template(request.template).render(request=request).strip()


@cache
def _template(named: str) -> Template:
    """A template of the folder, or one that is given itself, which may include those of the folder."""
    return _templates().from_string(named) if "\n" in named else _templates().get_template(f"{named}.jinja")


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
    templates.filters["video"] = lambda video_id: video_id[:VIDEO_ID_LENGTH]
    return templates
