"""Cases: searches matched with a library's videos; what is missing is counted and never left out in silence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.moments import make_cases
from kinodex.jobs.eval.samples import MomentSample


@pytest.fixture(scope="module")
def videos(library: Path) -> list[VideoRow]:
    return Library.open(str(library)).videos()


def sample(
    name: str,
    video: str | None,
    *relevant: tuple[str, float, float],
    text: str = "a boat",
    grades: tuple[float, ...] | None = None,
    image: Path | None = None,
    absent: bool = False,
    category: str | None = None,
) -> MomentSample:
    return MomentSample(name, "own", text, video, relevant, grades, image, absent, category)


def test_videos_are_named_by_id_and_a_missing_one_keeps_its_moments(videos: list[VideoRow]) -> None:
    made = make_cases(
        [
            sample("1", "film-01.mp4", ("film-01.mp4", 1.0, 2.0), grades=(4.0,), category="boats"),
            sample("2", None, ("film-02", 3.0, 4.0), ("lost", 0.0, 9.0)),
            sample("3", None, absent=True),
        ],
        videos,
    )
    ids = {row.title: row.video_id for row in videos}
    first, second, third = made.cases
    assert (first.video_id, first.relevant) == (ids["film-01"], ((ids["film-01"], 1.0, 2.0),))
    assert (first.grades, first.category, first.cluster) == ((4.0,), "boats", "film-01.mp4")
    assert (second.video_id, second.grades) == (None, (1.0, 1.0))
    assert second.relevant == ((ids["film-02"], 3.0, 4.0), ("lost", 0.0, 9.0))
    assert (third.absent, third.relevant, third.cluster) == (True, (), "none/3")
    assert [each.video for each in made.missing] == ["lost"]


def test_searches_that_cannot_be_scored_are_counted_by_reason(videos: list[VideoRow], tmp_path: Path) -> None:
    left_out = [
        sample("1", "lost", ("lost", 0.0, 1.0)),
        sample("2", None, ("lost", 0.0, 1.0)),
        sample("3", None),
        sample("4", None, ("film-01", 0.0, 1.0), text="", image=tmp_path),
    ]
    made = make_cases([*left_out, sample("5", None, absent=True)], videos)
    assert [case.case_id for case in made.cases] == ["5"]
    assert sorted(made.left_out) == [
        "a picture without text",
        "its video is not in the library",
        "moments not published",
        "no video of its moments is in the library",
    ]
    with pytest.raises(UsageError, match="none of 4 searches can be scored"):
        make_cases(left_out, videos)


def test_a_name_that_several_videos_have_is_left_out_with_that_reason(videos: list[VideoRow]) -> None:
    one, *_ = videos
    twin = replace(one, video_id="twin", uri="/elsewhere/film-01.mp4")
    samples = [sample("1", "film-01.mp4", ("film-01.mp4", 0.0, 1.0)), sample("2", None, absent=True)]
    made = make_cases(samples, [*videos, twin])
    assert made.left_out == {"several videos of the library have its video's name": 1}
    assert [each.video for each in made.missing] == list(made.ambiguous) == ["film-01.mp4"]
