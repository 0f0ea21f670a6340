"""A part of a benchmark: --only and --ids of `kinodex eval run` and `kinodex eval check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from agent.core.question import Question
from jobs.benchmarks.registry import read_benchmark
from jobs.benchmarks.sample import Sample, Target
from jobs.benchmarks.subset import draw_samples, parse_subset, select_samples
from jobs.evaluation.run.run_folder import read_items, read_plan
from tests.support import benchmark_files as kit
from tests.support.command import Kinodex, bad
from tests.support.eval_runs import FILMS, caption_library

KINDS = ("kite", "lamp")


RANDOM = ("--agent", "random", "--no-controls")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("part") / "library"
    caption_library(folder)
    return folder


def questions(folder: Path, films: Sequence[str] = FILMS) -> Path:
    """Four questions about each film, of two kinds by turns."""
    rows = [
        kit.sketch_row(f"{film}-{number}", video=f"{film}.mp4", kind=KINDS[number % 2])
        for film in films
        for number in range(4)
    ]
    return kit.published(folder, "sketch", *rows)


def ids_of(name: str, path: Path, only: Sequence[str], ids: Path | None = None) -> list[str]:
    return [item.item_id for item in select_samples(read_benchmark(name, path).samples, parse_subset(only, ids))]


@pytest.mark.parametrize(
    ("only", "found"),
    [
        (["duration=long"], ["1", "2"]),
        (["duration=long", "duration=short"], ["1", "2", "4"]),
        (["duration=long", "task_type=OCR Problems"], ["2"]),
        (["task_type=OCR Problems", "duration=medium", "duration=long"], ["2", "3"]),
        ([], ["1", "2", "3", "4"]),
    ],
)
def test_values_of_a_group_are_joined_by_or_and_groups_by_and(only: list[str], found: list[str], tmp_path: Path):
    lengths = {"1": "long", "2": "long", "3": "medium", "4": "short"}
    ocr: Mapping[str, str] = {"task_type": "OCR Problems"}
    rows = [
        kit.video_mme_row(number, duration=length, **(ocr if number in "23" else {}))
        for number, length in lengths.items()
    ]
    assert ids_of("video-mme", kit.published(tmp_path, "video-mme", *rows), only) == found


@pytest.mark.parametrize(
    ("name", "rows", "word"),
    [
        ("longvideobench", [kit.longvideobench_row("1"), kit.longvideobench_row("2", duration_group=3600)], None),
        ("nextqa", [kit.nextqa_row("9", "0"), kit.nextqa_row("9", "1", type="TP")], "C/T/D=T"),
        (
            "lvbench",
            [kit.lvbench_row("x", [kit.lvbench_question("8", question_type=["a", "b"]), kit.lvbench_question("9")])],
            "question_type=reasoning",
        ),
    ],
)
def test_the_groups_are_those_that_papers_report(name: str, rows: list[dict], word: str | None, tmp_path: Path):
    path = kit.published(tmp_path, name, *rows)
    *_, last = read_benchmark(name, path).samples
    assert ids_of(name, path, [word or "duration_group=3600"]) == [last.item_id]


def test_ids_are_a_line_each_in_any_order(tmp_path: Path):
    path, listed = questions(tmp_path), tmp_path / "ids.txt"
    listed.write_text("\ufefforchard-2\r\n\n  harbour-1  \norchard-2\n", encoding="utf-8")
    assert ids_of("sketch", path, [], listed) == ["harbour-1", "orchard-2"]
    assert ids_of("sketch", path, ["kind=lamp"], listed) == ["harbour-1"]


def test_the_same_part_has_the_same_words(tmp_path: Path):
    one, other, third = (tmp_path / name for name in ("one", "other", "third"))
    one.write_text("a\nb\n")
    other.write_text("\nb\na")
    third.write_text("a\nc\n")
    part = parse_subset(["x=1", "y=2", "x=3"], one)
    assert str(part) == str(parse_subset(["y=2", "x=3", "x=1"], other))
    assert str(part).startswith("x = 1 or 3; y = 2; 2 ids of sha256 ")
    assert str(part) != str(parse_subset(["x=1", "y=2", "x=3"], third))
    assert str(parse_subset([], None)) == "all"


def test_a_run_asks_the_part_and_its_report_names_it(kinodex: Kinodex, library: Path, tmp_path: Path):
    path, out = questions(tmp_path, (*FILMS, "lost")), tmp_path / "run"
    command = ("eval", "sketch", library, "--annotations", path, "--out", out, "--no-page", *RANDOM)
    ran = kinodex(*command, "--only", "kind=lamp")
    assert ran.code == 0, ran
    assert "6 of 16 questions about 3 videos; part: kind = lamp" in ran.out
    assert {item.item_id for item in read_items(out)} == {f"{film}-{number}" for film in FILMS for number in (1, 3)}
    assert [(each.video, each.questions) for each in read_plan(out).missing] == [("lost.mp4", 2)], "of the part alone"
    assert kinodex(*command, "--only", "kind=lamp").code == 0
    bad(kinodex, *command, "--only", "kind=kite", code=2, says="part was kind = lamp and is now kind = kite")
    bad(kinodex, *command, code=2, says="part was kind = lamp and is now all")


def test_the_limit_draws_from_the_part(kinodex: Kinodex, library: Path, tmp_path: Path):
    listed, out = tmp_path / "ids.txt", tmp_path / "run"
    listed.write_text("harbour-0\nharbour-1\nharbour-3\n")
    command = ("eval", "sketch", library, "--annotations", questions(tmp_path), "--out", out, "--no-page", *RANDOM)
    part = ("--only", "kind=lamp", "--ids", listed)
    assert kinodex(*command, *part, "--limit", "2").code == 0
    assert [item.item_id for item in read_items(out)] == ["harbour-1", "harbour-3"]


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("kind", "give GROUP=VALUE"),
        ("=kite", "give GROUP=VALUE"),
        ("kind=", "give GROUP=VALUE"),
        ("kinds=kite", "got --only kinds=...; it is one of kind"),
        ("kind=Kite", "got --only kind=Kite; kind is one of kite, lamp"),
    ],
)
def test_what_is_no_group_is_refused(kinodex: Kinodex, tmp_path: Path, word: str, says: str):
    bad(kinodex, "eval", "check", "sketch", questions(tmp_path), "--only", word, code=2, says=says)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"harbour-1\nharbor-1\n", "--ids has 1 that no question has: harbor-1; there are harbour-0, "),
        (b"\n \n", "names no question"),
        (b"\xff\xfe\x00", "cannot read"),
    ],
)
def test_a_file_of_other_ids_is_refused(kinodex: Kinodex, tmp_path: Path, content: bytes, says: str):
    (tmp_path / "ids.txt").write_bytes(content)
    films = ("harbour", *(f"film-{number}" for number in range(20)))
    options = (questions(tmp_path, films), "--ids", tmp_path / "ids.txt")
    bad(kinodex, "eval", "check", "sketch", *options, code=2, says=says)


def test_many_known_names_are_shortened(kinodex: Kinodex, tmp_path: Path):
    rows = [kit.sketch_row(str(number), kind=f"kind-{number:02}") for number in range(40)]
    path = kit.published(tmp_path, "sketch", *rows)
    ran = kinodex("eval", "check", "sketch", path, "--only", "kind=none")
    assert "kind-00, kind-01, " in ran.error_line
    assert ran.error_line.endswith("kind-11 and 28 more")


def test_a_part_without_a_question_is_refused(kinodex: Kinodex, tmp_path: Path):
    (tmp_path / "ids.txt").write_text("harbour-1\n")
    options = (questions(tmp_path), "--only", "kind=kite", "--ids", tmp_path / "ids.txt")
    bad(kinodex, "eval", "check", "sketch", *options, code=2, says="no question is in the part kind = kite; 1 ids")


def test_questions_without_groups_say_so(kinodex: Kinodex, tmp_path: Path):
    path = kit.published(tmp_path, "own")
    bad(kinodex, "eval", "check", "own", path, "--only", "category=x", code=2, says="these questions have no groups")


def item(item_id: str, video: str, *kinds: str) -> Sample:
    return Sample(item_id, video, Question("What?", ("a", "b")), Target(0), {"type": kinds} if kinds else {})


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
