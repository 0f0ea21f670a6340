"""A list of sources: what comes out is what went in, in a fraction of the memory."""

from __future__ import annotations

import tracemalloc
from dataclasses import astuple

import pytest

from kinodex.pipeline.fetch import Source, Stamp
from kinodex.pipeline.sources import ChosenSources, SourceList

SOURCES = [
    Source("/films/a.mp4", "a"),
    Source("s3://shelf/b.mp4", "b\0\n", ("s3://shelf/b.srt", "s3://shelf/b.en.vtt"), "B 1", Stamp(2**40, "etag"), 5.0),
    Source("/films/\\xff Ü 日本.mp4", "", id=""),
]


def test_sources_come_out_as_they_went_in() -> None:
    made = SourceList(iter(SOURCES))
    assert [astuple(each) for each in made] == [astuple(each) for each in SOURCES]
    assert len(made) == 3 and made[-1] == SOURCES[2] and list(made[1:]) == SOURCES[1:]
    assert list(SourceList([])) == []
    with pytest.raises(IndexError):
        made[3]


def test_chosen_ones_are_in_the_order_of_their_places_with_their_newer_stamps() -> None:
    new = Stamp(7, "new")
    chosen = ChosenSources(SourceList(SOURCES), [2, 1], {1: new})
    assert [each.uri for each in chosen] == [SOURCES[2].uri, SOURCES[1].uri]
    assert [each.stamp for each in chosen] == [None, new]
    assert [each.stamp for each in chosen[1:]] == [new] and chosen[-1].timeout_s == 5.0


def test_a_source_takes_a_fraction_of_the_memory_of_its_object() -> None:
    def sources() -> list[Source]:
        stamps = (Stamp(10**9 + number, f"mark {number}") for number in range(5_000))
        return [Source(f"s3://shelf/film-{at:08d}.mp4", f"film-{at:08d}", stamp=each) for at, each in enumerate(stamps)]

    tracemalloc.start()
    try:
        kept = sources()
        objects_bytes, _ = tracemalloc.get_traced_memory()
        made = SourceList(kept)
        both_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(made) == len(kept)
    assert both_bytes - objects_bytes < objects_bytes / 2
