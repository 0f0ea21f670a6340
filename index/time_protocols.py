"""Protocols of what the pipeline and models return with times, in seconds: what is written of it is common to all."""

from __future__ import annotations

from typing import Protocol


class Timed(Protocol):
    """Something that is there in `[start_s, end_s)`."""

    @property
    def start_s(self) -> float: ...
    @property
    def end_s(self) -> float: ...


class TimedText(Timed, Protocol):
    """Words that are said, shown or true of that range."""

    @property
    def text(self) -> str: ...


class SpokenText(TimedText, Protocol):
    """A line that is said; `speaker` is a voice's number or a name."""

    @property
    def language(self) -> str | None: ...
    @property
    def speaker(self) -> str | None: ...
