"""Replies in parts, one for each segment, frame or note; parts that are left out are requested alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, cast

from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol.frames import citation_numbers
from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.request import Request
from kinodex.agent.replies.schema import REASONING, Bounds, exactly


class InParts(Request[R]):
    """A request whose reply has a part for each of some things, by its number; those left out are asked for alone."""

    parts: ClassVar[tuple[str, str, str]]
    """The request's field of the things, the reply's of its parts, and a part's of the number."""

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of the things: of frames those they are shown with, of segments their own, else their places."""
        if self.parts[0] == "frames":
            return citation_numbers(self.frames)[0]
        return [getattr(each, "number", at) for at, each in enumerate(getattr(self, self.parts[0]), start=1)]

    def told(self, reply: R) -> dict[int, list[Any]]:
        """Return the parts of a reply by their number.

        Those that say the same of one, whatever their reasons, are one.
        """
        said: dict[int, list[Any]] = {}
        for part in getattr(reply, self.parts[1]):
            same = said.setdefault(getattr(part, self.parts[2]), [])
            if all(part.model_dump(exclude={REASONING}) != each.model_dump(exclude={REASONING}) for each in same):
                same.append(part)
        return said

    def bounds(self) -> Bounds:
        return {self.parts[1]: exactly(len(self.numbers))}

    def interpret(self, reply: R) -> R:
        """Keep one part for each known number, none of which several differ; all if none is left: `check` says why."""
        known = self.numbers
        kept = [each[0] for number, each in self.told(reply).items() if number in known and len(each) == 1]
        return reply.model_copy(update={self.parts[1]: kept}) if kept else reply

    def check(self, reply: R) -> None:
        """Let a reply leave things out, but refuse parts of unknown ones, of one twice, or none at all."""
        numbers = [getattr(part, self.parts[2]) for part in getattr(reply, self.parts[1])]
        check_numbers(self.parts[2], numbers, self.numbers)

    def missing(self, reply: R) -> Self | None:
        there, things = self.told(reply), getattr(self, self.parts[0])
        rest = tuple(each for number, each in zip(self.numbers, things, strict=True) if number not in there)
        return cast(Self, replace(cast(Any, self), **{self.parts[0]: rest})) if rest else None

    def join(self, reply: R, rest: R) -> R:
        """Return the parts of two replies in the order of their numbers; the second request had numbers of its own."""
        _, listed, name = self.parts
        there, asked, order = self.told(reply), self.missing(reply), list(self.numbers)
        left = [number for number in order if number not in there]
        own = dict(zip(asked.numbers if asked else (), left, strict=True))
        more = [part.model_copy(update={name: own[getattr(part, name)]}) for part in getattr(rest, listed)]
        parts = sorted([*getattr(reply, listed), *more], key=lambda part: order.index(getattr(part, name)))
        return reply.model_copy(update={listed: parts})


def check_numbers(thing: str, numbers: Sequence[int], known: Sequence[int]) -> None:
    """Raise `InvalidReply` for parts of a reply that are of no known number, of one twice, or for none at all."""
    unknown = [number for number in numbers if number not in known]
    if unknown:
        raise InvalidReply(f"there is no {thing} {unknown[0]}; the numbers are {_listed(known)}")
    if len(set(numbers)) < len(numbers):
        raise InvalidReply(f"a {thing} is there twice; give each once")
    if not numbers and known:
        raise InvalidReply(f"no {thing} is there; give one for each of {_listed(known)}")


def _listed(known: Sequence[int]) -> str:
    if len(known) > 2 and list(known) == list(range(known[0], known[0] + len(known))):
        return f"{known[0]} to {known[-1]}"
    return ", ".join(map(str, known))
