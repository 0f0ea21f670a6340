"""Presentation time, and the time that a player shows."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from index.clock import player_s, presentation_s, zero_s


@dataclass(frozen=True)
class Film:
    uri: str
    start_s: float


@dataclass(frozen=True)
class Shown:
    """A video without its place, as agents have it."""

    zero_s: float


@pytest.mark.parametrize(
    ("uri", "start_s", "zero"),
    [
        ("/films/news.ts", 1000.0, 1000.0),
        ("/films/news.ts", 1.4, 1.4),
        ("s3://films/NEWS.M2TS?versionId=3", 1.4, 1.4),
        ("/films/late.mp4", 1.075, 0.0),
        ("/films/cut.mkv", 754.2, 754.2),
        ("/films/film.mp4", 0.0, 0.0),
        ("imported:film", 0.0, 0.0),
    ],
)
def test_a_player_shows_zero_where_a_stream_begins_and_where_a_file_counts_from(
    uri: str, start_s: float, zero: float
) -> None:
    film = Film(uri, start_s)
    assert zero_s(film) == zero
    assert presentation_s(film, 12.5) == zero + 12.5
    assert player_s(film, zero + 12.5) == 12.5


def test_a_video_may_carry_its_zero() -> None:
    video = Shown(754.2)
    assert zero_s(video) == 754.2
    assert presentation_s(video, 12.5) == 754.2 + 12.5
    assert player_s(video, 754.2) == 0.0
