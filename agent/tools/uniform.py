"""Equally spaced frames of one video or of several, or what stands in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.search.coverage import spread
from kinodex.agent.videos.environment import Environment


def uniform_times(environment: Environment, count: int) -> dict[str, list[float]]:
    """Return the times of `count` stored frames by video, shared out among the videos by duration."""
    total_s = sum(video.duration_s for video in environment.videos)
    times_s: dict[str, list[float]] = {}
    passed_s = 0.0
    for video in environment.videos:
        upto = round(count * (passed_s + video.duration_s) / total_s)
        share = upto - round(count * passed_s / total_s)
        spaced_s = spread(video.start_s, video.end_s, environment.times(video.video_id), share)
        times_s[video.video_id] = [float(time_s) for time_s in spaced_s]
        passed_s += video.duration_s
    return times_s


def uniform_frames(environment: Environment, times_s: Mapping[str, Sequence[float]]) -> tuple[ShownFrame, ...]:
    pictured = {video_id: times for video_id, times in times_s.items() if environment.pictured(video_id)}
    return tuple(frame for video_id, times in pictured.items() for frame in environment.frames(video_id, times))
