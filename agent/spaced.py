"""Equally spaced frames of one video or of several."""

from __future__ import annotations

from agent.coverage import spread
from agent.environment import Environment
from agent.model import ShownFrame


def spaced_frames(environment: Environment, count: int) -> tuple[ShownFrame, ...]:
    """`count` frames, shared out among the videos by duration."""
    total_s = sum(video.duration_s for video in environment.videos)
    frames: list[ShownFrame] = []
    passed_s = 0.0
    for video in environment.videos:
        upto = round(count * (passed_s + video.duration_s) / total_s)
        share = upto - round(count * passed_s / total_s)
        spaced_s = spread(video.start_s, video.end_s, environment.times(video.video_id), share)
        frames += environment.frames(video.video_id, spaced_s)
        passed_s += video.duration_s
    return tuple(frames)
