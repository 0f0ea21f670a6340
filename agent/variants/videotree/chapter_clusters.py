"""Clusters of the first level by the library's scenes or chapters, and of the next levels by halving them.

VideoTree clusters frames that look alike, wherever they stand. Where a library knows the parts of a film, each part
is a cluster, and more breadth divides parts in two in the place of clustering all frames again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.protocol.videos import EXACT_S
from kinodex.agent.search.chapters import first_level_cuts_s
from kinodex.agent.variants.videotree.k_means import Cluster, k_means
from kinodex.agent.videos.environment import Environment

Units = NDArray[np.float32]


def chapter_clusters(environment: Environment, units: Units, most: int, breadth: int, seed: int) -> list[Cluster]:
    """Cluster the frames of the videos, unit vectors [n, dim] video by video, by the parts of each video.

    At most about `most` parts in all, shared out equally. Videos without parts are clustered together as usual, into
    `breadth` clusters at most. Empty if no video has parts.
    """
    share = max(2, most // len(environment.videos))
    clusters: list[Cluster] = []
    without: list[NDArray[np.intp]] = []
    first = 0
    for video in environment.videos:
        times_s = environment.times(video.video_id)
        cuts_s = first_level_cuts_s(environment, video.video_id, share)
        inner = np.searchsorted(times_s, np.array(cuts_s[1:-1]) - EXACT_S)
        members = [np.arange(first + low, first + high) for low, high in pairwise([0, *inner, len(times_s)])]
        parts = [each for each in members if cuts_s and len(each)]
        clusters += [Cluster(each, _parts(units, each, 1, seed)[0].middle) for each in parts]
        without += [] if cuts_s else members
        first += len(times_s)
    if clusters and without:
        clusters += _parts(units, np.concatenate(without), breadth, seed)
    return clusters


def halve(clusters: Sequence[Cluster], units: Units, seed: int) -> list[Cluster]:
    """Divide each cluster in two by its frames' likeness; one whose frames are all alike stays."""
    return [half for cluster in clusters for half in _parts(units, cluster.members, 2, seed)]


def _parts(units: Units, members: NDArray[np.intp], count: int, seed: int) -> list[Cluster]:
    return [Cluster(members[part.members], int(members[part.middle])) for part in k_means(units[members], count, seed)]
