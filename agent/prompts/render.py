"""Prompts of requests, rendered from the templates in agent/prompts/templates; models add the pictures."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from agent.core.protocol import R, Request

if TYPE_CHECKING:
    from jinja2 import Environment, Template

FOLDER = Path(__file__).parent / "templates"
VIDEO_ID_LENGTH = 12
"""The number of characters of a video's id that name it to a model."""


def render(request: Request[R]) -> str:
    """Render the prompt of a request. It names frames by number and time; their pictures follow it in that order."""
    return _template(request.template).render(request=request).strip()


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
    templates.filters["video"] = lambda video_id: video_id[:VIDEO_ID_LENGTH]
    return templates
