"""Anchors: the frames that queries match best, one for each stretch of a video (EEA, section 3.1).

For each query the best frames are retrieved and widened to clips; clips that overlap form a cluster, and the best frame
of each cluster is an anchor. Left open by the paper and decided here: clip length and number of frames are parameters;
clips of one query keep a gap, so that one long shot does not take all the places; a similarity is calibrated to 0..1
against the distribution of that query over that video (`Environment.search`); a frame that matches no better than the
median is no match. A query keeps the scale that it was asked on, which is that of the question's own queries and it:
with a scale for each batch, or each query, a weak match of one would beat a strong match of another.

Two clusterings. By the paper's words (`chains`) clips that overlap hang together, however long the chain: on a video of
three minutes all matches soon are one cluster, and each new query removes guidance. By default the best match takes in
those whose clips overlap its own, the best of the others does the same, and so on: a cluster lasts two clips at most.
It is then represented by its best *unseen* match, and not at all once all were seen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from agent.core.question import Anchor, Video
from agent.environment import Environment

Cluster = list[Anchor]
"""Matches of one stretch of a video, the best first."""


def clip_length_s(video: Video, clip_s: float, clips: int) -> float:
    """The length of a clip: `clip_s`, less in videos too short for so many clips."""
    return min(clip_s, video.duration_s / clips)


def find_matches(
    environment: Environment,
    queries: Sequence[str],
    count: int,
    gap_s: Mapping[str, float],
    beside: Sequence[str] = (),
) -> list[Anchor]:
    """Find for each query the `count` best frames of each video, no two of a video closer than its `gap_s`.

    The queries have one scale (`Environment.deviations`), with those `beside`, which are not searched for.
    """
    texts = list(dict.fromkeys([*queries, *beside]))
    among = [video.video_id for video in environment.videos]
    return [
        match
        for video_id in among
        for match in (environment.search(texts, video_id, count, gap_s[video_id], among) if queries else ())
        if match.similarity > 0 and match.query in queries
    ]


def clusters(matches: Iterable[Anchor], length_s: Mapping[str, float]) -> list[Cluster]:
    """Clusters around their best matches: the best takes in all whose clips, `length_s` long, overlap its own."""
    found: dict[str, list[Cluster]] = {}
    for match in sorted(matches, key=lambda each: (-each.similarity, each.video_id, each.time_s)):
        here = found.setdefault(match.video_id, [])
        reach_s = length_s[match.video_id]
        near = next((each for each in here if abs(each[0].time_s - match.time_s) < reach_s), None)
        if near is None:
            here.append([match])
        else:
            near.append(match)
    return [cluster for here in found.values() for cluster in here]


def chains(matches: Iterable[Anchor], length_s: Mapping[str, float]) -> list[Cluster]:
    """Clusters of clips that overlap, `length_s` long and centred on the matches, as the paper has them."""
    chained: list[Cluster] = []
    for match in sorted(matches, key=lambda each: (each.video_id, each.time_s, -each.similarity)):
        last = chained[-1][-1] if chained else None
        if last and last.video_id == match.video_id and match.time_s - last.time_s < length_s[match.video_id]:
            chained[-1].append(match)
        else:
            chained.append([match])
    return [sorted(cluster, key=lambda match: -match.similarity) for cluster in chained]


def anchors(found: Iterable[Cluster], seen: Collection[tuple[str, int]] = ()) -> list[Anchor]:
    """The best match of each cluster whose video and frame number are not among those `seen`, by video and time."""
    unseen = ([each for each in cluster if (each.video_id, each.frame_no) not in seen] for cluster in found)
    return sorted((each[0] for each in unseen if each), key=lambda match: (match.video_id, match.time_s))


def per_video(environment: Environment, value: Callable[[Video], float]) -> dict[str, float]:
    """A value of each of the environment's videos, by id."""
    return {video.video_id: value(video) for video in environment.videos}
