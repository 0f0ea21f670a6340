"""Requests about a question and its videos: the fields that they have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import Video


@dataclass(frozen=True, kw_only=True)
class RunRequest(Request[R]):
    """A request about a question and its videos."""

    role: ClassVar[str] = "policy"
    question: Question
    videos: tuple[Video, ...]
