"""Worths of ranked moments against the true ones, at the level of moments and of whole videos."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.evaluation.moments.intervals import Found


def moment_gains(found: Sequence[Found], relevant: Sequence[Found], grades: Sequence[float]) -> list[float]:
    """Worth of each result in order: that of the true range in which its middle lies, once for each range.

    A further result in a range that was found before is passed over: it is no new find, and no mistake either. Where
    true ranges overlap, the first that was not found before counts.
    """
    left = dict(enumerate(relevant))
    gains = []
    for each in found:
        inside = [number for number, target in enumerate(relevant) if _holds(target, each)]
        new = next((number for number in inside if number in left), None)
        if new is not None:
            del left[new]
            gains.append(grades[new])
        elif not inside:
            gains.append(0.0)
    return gains


def video_gains(found: Sequence[Found], relevant: Sequence[Found], grades: Sequence[float]) -> list[float]:
    """Worth of each video in the order of its first result: the greatest worth of its true ranges, 0 without one."""
    worth = video_worths(relevant, grades)
    return [worth.get(video, 0.0) for video in dict.fromkeys(video for video, _, _ in found)]


def video_worths(relevant: Sequence[Found], grades: Sequence[float]) -> dict[str, float]:
    """The greatest worth of a true range of each video that has any."""
    worth: dict[str, float] = {}
    for (video, _, _), grade in zip(relevant, grades, strict=True):
        worth[video] = max(grade, worth.get(video, 0.0))
    return worth


def _holds(target: Found, found: Found) -> bool:
    middle_s = (found[1] + found[2]) / 2
    return target[0] == found[0] and target[1] <= middle_s < target[2]
