"""Parts of a film as VideoTree's first clusters: each by itself, halved for more breadth, usual ones without parts."""

from __future__ import annotations

import numpy as np
import pytest

from kinodex.agent.variants.videotree import chapter_clusters, halve
from kinodex.index.rows import SceneRow
from tests.support.libraries.agent_library import environment_of, film, make_library

PLACES = ["red boat sea"] * 50 + ["white dog snow"] * 20 + ["green tree forest"] * 30


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    made = make_library(tmp_path_factory.mktemp("clusters"), {"places": PLACES, "bare": film(2, 60)})
    video_id = made.video("places").video_id
    spans = [(0.0, 49.5), (49.5, 70.0), (70.0, 100.0)]
    rows = [SceneRow(video_id, "scene", at, *span, at, 1, f"scene {at}", "", "m") for at, span in enumerate(spans)]
    made.additions.discard_leftovers("summaries", "m")
    made.scenes.add({video_id: rows})
    made.additions.complete("summaries", "m", {video_id: 3}, {})
    return made


def clusters_of(library, *titles, most=32, breadth=8):
    environment = environment_of(library, *titles)
    units = np.concatenate([environment.source.in_memory(video.video_id).units for video in environment.videos])
    return chapter_clusters(environment, units, most, breadth, 0), units


def ranges(clusters):
    return [(int(each.members[0]), int(each.members[-1]) + 1) for each in clusters]


def test_each_part_is_a_cluster_with_a_frame_of_its_own_in_the_middle(library):
    clusters, _ = clusters_of(library, "places")
    assert ranges(clusters) == [(0, 50), (50, 70), (70, 100)]
    assert all(each.middle in each.members for each in clusters)


def test_parts_are_joined_to_the_greatest_breadth(library):
    clusters, _ = clusters_of(library, "places", most=2)
    assert ranges(clusters) == [(0, 50), (50, 100)]


def test_more_breadth_halves_each_part(library):
    clusters, units = clusters_of(library, "places")
    halves = halve(clusters, units, 0)
    assert 3 < len(halves) <= 6
    assert sorted(at for each in halves for at in each.members) == list(range(100))
    assert all(any(set(half.members) <= set(each.members) for each in clusters) for half in halves)
    assert all(half.middle in half.members for half in halves)


def test_a_video_without_parts_is_clustered_as_usual_beside_others(library):
    clusters, _ = clusters_of(library, "places", "bare", breadth=4)
    assert sorted(at for each in clusters for at in each.members) == list(range(160))
    assert len(clusters) == 3 + 4
    assert clusters_of(library, "bare")[0] == []
