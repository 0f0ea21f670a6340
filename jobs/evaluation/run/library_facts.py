"""Samples completed with what a library knows of their videos: durations and ids of clips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from index.rows import VideoRow
from jobs.benchmarks.samples import Problem, Sample, Target
from jobs.benchmarks.select_samples import match_videos


def complete_samples(
    samples: Sequence[Sample],
    video_ids: Mapping[str, Sequence[str]],
    rows: Mapping[str, VideoRow],
    id_map: Mapping[str, str] | None,
) -> tuple[tuple[Sample, ...], tuple[Problem, ...]]:
    """Complete samples, and note the evidence that lies outside of its video.

    `video_ids` are the library's videos of each sample, `rows` all of its videos by id. A sample gets the library's
    `duration_s` in seconds where the benchmark publishes none, and its clip goes by the id of the library's video.
    """
    clips = [replace(each, video=each.truth.clip) for each in samples if each.truth.clip is not None]
    found = match_videos(clips, list(rows.values()), id_map, episodes=False).videos
    ids = {name: matched[0] for name, matched in found.items()}
    completed: list[Sample] = []
    problems: list[Problem] = []
    for sample in samples:
        videos = [rows[each] for each in video_ids[sample.item_id]]
        truth = replace(sample.truth, clip=ids.get(sample.truth.clip or "", sample.truth.clip))
        shown = _evidence_video(truth, videos)
        if shown is not None:
            problems += _outside(sample, shown)
        duration_s = sample.duration_s or sum(each.duration_s for each in videos)
        completed.append(replace(sample, duration_s=duration_s, truth=truth))
    return tuple(completed), tuple(problems)


def _evidence_video(truth: Target, videos: Sequence[VideoRow]) -> VideoRow | None:
    """Find the one video that the evidence is of; None where the benchmark does not tell, or the library lacks it."""
    if truth.clip is not None:
        return next((each for each in videos if each.video_id == truth.clip), None)
    return videos[0] if len(videos) == 1 else None


def _outside(sample: Sample, video: VideoRow) -> list[Problem]:
    first_s, last_s = video.start_s, video.end_s
    return [
        Problem(
            f"question {sample.item_id}",
            f"evidence: got {start_s:g} s to {end_s:g} s, and {video.title} in the library lasts from {first_s:g} s to "
            f"{last_s:g} s as a player shows it; the question is kept",
        )
        for start_s, end_s in sample.truth.evidence
        if not (start_s < last_s and first_s < end_s)
    ]
