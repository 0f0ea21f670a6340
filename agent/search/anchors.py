"""Anchors: the frames that queries match best, one for each stretch of a video (EEA, section 3.1).

For each query the best frames are retrieved and widened to clips; clips that overlap form a cluster, and the best frame
of each cluster is an anchor. Left open by the paper and decided here: clip length and number of frames are parameters;
clips of one query keep a gap, so that one long shot does not take all the places; a similarity is calibrated to 0..1
against the distribution of that query over that video (`Environment.search`); a frame that matches no better than the
median is no match. What is said, written or captioned at a frame's time counts beside its picture, on the same scale
(`agent.videos.scale`): the paper searches pictures alone (`anchors_from`). A query keeps the scale that it was asked
on, which is that of the question's own queries and it: with a scale for each batch, or each query, a weak match of one
would beat a strong match of another.

Clips that overlap hang together in a chain, as the paper has it. Without an end to that all matches of a video of three
minutes soon are one cluster, and each new query removes guidance; so a chain has a greatest length (`longest_s`), by
default a share of the video's. What a cluster stands for depends on what was seen: it draws frames by its best *unseen*
match, and counts in query scores by its best match that was not seen and judged worthless.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from kinodex.agent.protocol.videos import Anchor, Video
from kinodex.agent.videos.environment import Environment
from kinodex.agent.videos.library_videos import AnchorsFrom

Cluster = list[Anchor]
"""Matches of one stretch of a video, the best first."""


def find_matches(
    environment: Environment,
    queries: Sequence[str],
    count: int,
    gap_s: Mapping[str, float],
    beside: Sequence[str] = (),
    anchors_from: AnchorsFrom = "all",
) -> list[Anchor]:
    """Find for each query the `count` best frames of each video, no two of a video closer than its `gap_s`.

    They match by their pictures, by words at their times, or by the better of both. The queries have one scale
    (`Environment.deviations`), with those `beside`, which are not searched for.
    """
    if not queries:
        return []
    texts = list(dict.fromkeys([*queries, *beside]))
    among = [video.video_id for video in environment.videos]
    return [
        match
        for video_id in among
        for match in environment.search(texts, video_id, count, gap_s[video_id], among, anchors_from)
        if match.similarity > 0 and match.query in queries
    ]


def chains(
    matches: Iterable[Anchor], length_s: Mapping[str, float], longest_s: Mapping[str, float] | None = None
) -> list[Cluster]:
    """Clusters of clips that overlap, `length_s` long and centred on the matches.

    A chain's matches lie within `longest_s` of its first one; without it a chain may be as long as the video.
    """
    chained: list[Cluster] = []
    for match in sorted(matches, key=lambda each: (each.video_id, each.time_s, -each.similarity)):
        last = chained[-1] if chained else None
        if last and _hangs_on(match, last, length_s, longest_s):
            last.append(match)
        else:
            chained.append([match])
    return [sorted(cluster, key=lambda match: -match.similarity) for cluster in chained]


def _hangs_on(
    match: Anchor, chain: Cluster, length_s: Mapping[str, float], longest_s: Mapping[str, float] | None
) -> bool:
    video_id = match.video_id
    if chain[-1].video_id != video_id or match.time_s - chain[-1].time_s >= length_s[video_id]:
        return False
    return longest_s is None or match.time_s - chain[0].time_s < longest_s[video_id]


def anchors(found: Iterable[Cluster], without: Collection[tuple[str, int]] = ()) -> list[Anchor]:
    """Return the best match of each cluster whose video and frame number are not in `without`, by video and time."""
    rest = ([each for each in cluster if (each.video_id, each.frame_no) not in without] for cluster in found)
    return sorted((each[0] for each in rest if each), key=lambda match: (match.video_id, match.time_s))


def drawing_order(clusters: Sequence[Cluster], seen: Collection[tuple[str, int]]) -> list[Anchor]:
    """Return the best unseen match of each cluster, places never looked at first, then by similarity.

    A second match of a place that was looked at would keep the search there while others have not been looked at once.
    """
    best = anchors(clusters)
    return sorted(anchors(clusters, seen), key=lambda match: (match not in best, -match.similarity))


def per_video(environment: Environment, value: Callable[[Video], float]) -> dict[str, float]:
    return {video.video_id: value(video) for video in environment.videos}
