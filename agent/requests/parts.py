"""Replies in parts, one for each segment or frame: which are missing, and the parts of two replies as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from agent.core.protocol import Reply, ShownFrame, citation_numbers
from agent.errors import InvalidReply

P = TypeVar("P", bound=Reply)


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


def missing_positions(known: Iterable[int], numbers: Iterable[int]) -> list[int]:
    """Positions, from 0, of the known numbers that a reply has no part of."""
    there = set(numbers)
    return [at for at, number in enumerate(known) if number not in there]


def missing_frames(frames: Sequence[ShownFrame], numbers: Iterable[int]) -> tuple[ShownFrame, ...]:
    """Frames that a reply has no part of."""
    return tuple(frames[at] for at in missing_positions(citation_numbers(frames)[0], numbers))


def join_parts(
    name: str, first: Sequence[P], rest: Sequence[P], known: Sequence[int], rest_known: Sequence[int]
) -> list[P]:
    """The parts of two replies in the order of their numbers, field `name` of each; the second had its own numbers.

    `known` are the numbers of the first request, `rest_known` those of the request for what the first reply left out.
    """
    missing = [known[at] for at in missing_positions(known, (getattr(part, name) for part in first))]
    originals = dict(zip(rest_known, missing, strict=True))
    parts = [*first, *(part.model_copy(update={name: originals[getattr(part, name)]}) for part in rest)]
    order = {number: at for at, number in enumerate(known)}
    return sorted(parts, key=lambda part: order[getattr(part, name)])
