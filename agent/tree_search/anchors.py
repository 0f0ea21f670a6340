"""Semantic anchors (EEA, section 3.1): where in the videos the queries match.

For each query the best frames are retrieved and widened to clips; clips of all queries that overlap in time
form a cluster, and the best frame of each cluster is an anchor. Left open by the paper and decided here:
clip length and number of frames are parameters; clips of one query keep a gap so that one long shot does
not take all the places; a similarity is calibrated to 0..1 against the distribution of that query over that
video (`Environment.search`).
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.core.question import Anchor


def anchors(matches: Iterable[Anchor], clip_s: float) -> list[Anchor]:
    """The best match of each cluster of overlapping clips, `clip_s` long and centred on the matches.

    Several queries may bring the same frame; the better match stands for it. Sorted by video and time.
    """
    ordered = sorted(matches, key=lambda match: (match.video_id, match.time_s, -match.similarity))
    clusters: list[list[Anchor]] = []
    for match in ordered:
        last = clusters[-1][-1] if clusters else None
        if last and last.video_id == match.video_id and match.time_s - last.time_s < clip_s:
            clusters[-1].append(match)
        else:
            clusters.append([match])
    return [max(cluster, key=lambda match: match.similarity) for cluster in clusters]
