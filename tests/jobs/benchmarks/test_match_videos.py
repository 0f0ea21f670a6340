"""A benchmark's videos found in a library, a part of its questions, and `kinodex eval check`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.core.question import Question
from index.rows import VideoRow
from jobs.benchmarks.match_videos import match_videos, read_id_map
from jobs.benchmarks.sample import Missing, Sample, Target
from jobs.benchmarks.subset import draw_samples
from jobs.errors import UsageError
from tests.support import benchmark_files as kit
from tests.support.command import Kinodex, bad
from tests.support.text_library import text_library, text_video_id


def item(item_id: str, video: str, *kinds: str) -> Sample:
    return Sample(item_id, video, Question("What?", ("a", "b")), Target(0), {"type": kinds} if kinds else {})


def row(video_id: str, uri: str, title: str | None = None) -> VideoRow:
    return VideoRow(
        video_id=video_id,
        uri=uri,
        title=title if title is not None else Path(uri).stem,
        start_s=0.0,
        duration_s=10.0,
        fps=1.0,
        width_px=4,
        height_px=4,
        codec="none",
        frames=10,
        segments=0,
        transcript_lines=0,
        decode_errors=0,
        sample_fps=1.0,
        space="words",
        state="complete",
        ingested_at=datetime.now(UTC),
    )


def found(video: str, rows: Sequence[VideoRow], id_map: dict[str, str] | None = None, episodes: bool = False) -> object:
    """The ids that one video of a benchmark is, or why it is none."""
    matching = match_videos([item("1", video)], rows, id_map, episodes)
    return matching.videos.get(video) or matching.missing[0].why


@pytest.mark.parametrize(
    "called",
    ["id1", "My film", "clip.one", "clip.one.mp4", "b/clip.one", "a/b/clip.one.mp4"],
)
def test_a_video_goes_by_id_title_and_the_last_parts_of_its_uri(called: str) -> None:
    rows = [row("id1", "s3://bucket/a/b/clip.one.mp4", "My film"), row("id2", "/x/clip.two.mp4")]
    assert found(called, rows) == ("id1",)


def test_a_part_of_a_name_is_not_the_name_and_case_counts() -> None:
    rows = [row("id1", "/x/aBc.mp4")]
    assert found("abc", rows) == "no video of the library has the name abc"
    assert found("aB", rows) == "no video of the library has the name aB"


def test_nextqa_files_are_found_by_its_published_map(tmp_path: Path) -> None:
    kit.write_json(tmp_path / "map_vid_vidorID.json", {"3238737531": "1164/3238737531", "2": "1000/77"})
    rows = [row("id1", "/data/1164/3238737531.mp4"), row("id2", "/data/1165/3238737531.mp4", "77")]
    id_map = read_id_map(tmp_path / "map_vid_vidorID.json")
    assert found("3238737531", rows, id_map) == ("id1",)
    assert found("2", rows, id_map) == "no video of the library has the name 1000/77"
    assert found("77", rows, id_map) == ("id2",)


def test_two_videos_of_a_name_are_neither() -> None:
    rows = [row("id1", "/data/1164/323.mp4"), row("id2", "/data/1165/323.mp4")]
    why = "2 videos of the library have the name 323: /data/1164/323.mp4, /data/1165/323.mp4"
    assert found("323", rows) == why
    assert found("323", rows, {"323": "id2"}) == ("id2",)


def test_every_question_of_a_missing_video_is_counted() -> None:
    items = [item("1", "here"), item("2", "gone"), item("3", "gone"), item("4", "lost")]
    matching = match_videos(items, [row("id1", "here.webm")], None, False)
    assert matching.videos == {"here": ("id1",)}
    gone, lost = (f"no video of the library has the name {name}" for name in ("gone", "lost"))
    assert matching.missing == (Missing("gone", gone, 2), Missing("lost", lost, 1))


def test_an_episode_is_all_its_clips_in_order_and_no_clip_of_another() -> None:
    names = ["s05e06_seg02_clip_00", "s05e06_seg01_clip_01", "s05e07_seg01_clip_00", "s05e061_seg01_clip_00"]
    rows = [row(name, f"/tvqa/{name}.mp4") for name in names]
    assert found("s05e06", rows, episodes=True) == ("s05e06_seg01_clip_01", "s05e06_seg02_clip_00")
    assert found("s05e06", rows) == "no video of the library has the name s05e06"
    assert found("s05e06", [*rows, row("whole", "/x/s05e06.mkv")], episodes=True) == ("whole",)
    folders = [row("one", "/tvqa/s05e08/clip_00.mp4"), row("two", "/tvqa/s05e08/clip_01.mp4")]
    assert found("s05e08", folders, episodes=True) == ("one", "two")


@pytest.mark.parametrize("name", ["map.csv", "map.json"])
def test_maps_of_two_columns_or_an_object(name: str, tmp_path: Path) -> None:
    text = '{"a": "b/c", "d": 7}' if name.endswith("json") else "a,b/c\nd,7\n"
    (tmp_path / name).write_text(text)
    assert read_id_map(tmp_path / name) == {"a": "b/c", "d": "7"}


@pytest.mark.parametrize(
    ("name", "text"), [("m.csv", "a\n"), ("m.csv", ""), ("m.json", "[1]"), ("m.json", '{"a": []}'), ("m.json", "{")]
)
def test_a_map_of_something_else_is_refused(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=r"m\.(csv|json)"):
        read_id_map(tmp_path / name)


def many() -> list[Sample]:
    """700 questions of 70 videos in three categories of very different size."""
    kinds = ["often"] * 600 + ["seldom"] * 93 + ["rare"] * 7
    return [item(f"q{number}", f"v{number % 70}", kind) for number, kind in enumerate(kinds)]


def test_a_part_keeps_the_shares_of_categories_and_spreads_over_videos() -> None:
    part = draw_samples(many(), 100, seed=0)
    assert Counter(each.groups["type"] for each in part) == {("often",): 86, ("seldom",): 13, ("rare",): 1}
    assert set(Counter(each.video for each in part).values()) <= {1, 2}
    assert len({each.video for each in part}) == 70
    numbers = [int(each.item_id[1:]) for each in part]
    assert numbers == sorted(numbers)


def test_the_same_seed_draws_the_same_questions_whatever_their_order() -> None:
    def ids(items: Sequence[Sample], limit: int, seed: int) -> set[str]:
        return {each.item_id for each in draw_samples(items, limit, seed)}

    items = many()
    part = ids(items, 50, 1)
    assert ids(items[::-1], 50, 1) == part
    assert ids(items, 50, 2) != part
    assert part <= ids(items, 699, 1)


def test_no_limit_and_a_limit_beyond_take_all() -> None:
    items = many()
    assert draw_samples(items, None, 0) == draw_samples(items, 700, 0) == draw_samples(items, 9999, 0) == tuple(items)
    assert len(draw_samples(items, 699, 0)) == 699
    assert len(draw_samples([item("1", "v"), item("2", "v")], 1, 0)) == 1


def test_check_counts_and_lists(kinodex: Kinodex, tmp_path: Path) -> None:
    rows = [kit.nextqa_row("111", "0"), kit.nextqa_row("111", "1", type="TP"), kit.nextqa_row("222", "0", answer=9)]
    path = kit.published(tmp_path, "nextqa", *rows, kit.nextqa_row("333", "0"))
    library = tmp_path / "library"
    text_library(library, {"111": [(0.0, 5.0, "a girl holds a kite")]})
    ran = kinodex("eval", "check", "nextqa", path, library)
    assert ran.code == 0, ran.err
    assert "3 questions about 2 videos, 5 options; 3 with a known answer, 0 with the seconds that show it" in ran.out
    assert "line 4: answer: Input should be less than or equal to 4, got '9'" in ran.out
    assert f"{library} has 1 of 2 videos, for 2 of 3 questions" in ran.out
    assert "333 (1): no video of the library has the name 333" in ran.out
    told = json.loads(kinodex("eval", "check", "nextqa", tmp_path, library, "--json").out)
    assert told["groups"]["C/T/D"] == {"C": 2, "T": 1}
    assert told["files"] == [str(path)]
    assert told["library"]["missing"][0]["video"] == "333"


def test_check_uses_a_map(kinodex: Kinodex, tmp_path: Path) -> None:
    kit.published(tmp_path, "sketch")
    (tmp_path / "map.csv").write_text("film-01.mp4,mine\n")
    text_library(tmp_path / "library", {"mine": [(0.0, 5.0, "a cat")], "yours": [(0.0, 5.0, "a cat")]})
    arguments = ("eval", "check", "sketch", tmp_path, tmp_path / "library", "--json")
    assert json.loads(kinodex(*arguments).out)["library"]["found"] == 0
    assert json.loads(kinodex(*arguments, "--map", tmp_path / "map.csv").out)["library"]["found"] == 1


def test_check_refuses_what_it_cannot_read(kinodex: Kinodex, tmp_path: Path) -> None:
    bad(kinodex, "eval", "check", "egosschema", tmp_path, code=2, says="did you mean egoschema")
    bad(kinodex, "eval", "check", "lvbench", tmp_path, code=2, says="https://huggingface.co/datasets/zai-org/LVBench")


def test_captions_imported_under_a_benchmark_s_names_are_its_videos(tmp_path: Path) -> None:
    library = text_library(tmp_path / "library", {"uid-1": [(0.0, 1.0, "C mends a lamp")]})
    assert found("uid-1", library.videos()) == (text_video_id("uid-1"),)
