"""Searches of one's own: what a line becomes, and what is said of lines that are wrong."""

from __future__ import annotations

from pathlib import Path

from tests.support.runs.moment_files import own_search, problems, read_lines


def test_searches_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "dog.png").write_bytes(b"a picture")
    within, anywhere, pictured, absent, open_ = read_lines(
        tmp_path,
        "own",
        own_search("1", relevant=[[3.5, 8.0], [20, 21]], grades=[1, 3], category="animals"),
        own_search("2", video=None, relevant=[["film-01.mp4", 0, 2], ["film-02.mp4", 4, 5.5]]),
        own_search("3", text=None, image="dog.png"),
        own_search("4", relevant=None, absent=True),
        own_search("5", relevant=None),
    ).samples
    assert within.relevant == (("film-01.mp4", 3.5, 8.0), ("film-01.mp4", 20.0, 21.0))
    assert (within.grades, within.category, within.image) == ((1.0, 3.0), "animals", None)
    assert (anywhere.video, anywhere.videos) == (None, ("film-01.mp4", "film-02.mp4"))
    assert (pictured.text, pictured.image) == ("", tmp_path / "dog.png")
    assert (absent.absent, absent.known, absent.relevant) == (True, True, ())
    assert (open_.absent, open_.known) == (False, False)


def test_what_is_wrong_with_searches_is_said(tmp_path: Path) -> None:
    wrong = [
        own_search("2", text=None),
        own_search("3", image="gone.png"),
        own_search("4", video=None),
        own_search("5", relevant=[["film-02.mp4", 1, 2]]),
        own_search("6", relevant=[[8, 8]]),
        own_search("7", absent=True),
        own_search("8", grades=[1, 2]),
        own_search("9", grades=[0]),
        own_search("10", txet="a dog"),
        own_search("1"),
        own_search("12", relevant=[[-1, 8]]),
    ]
    benchmark = read_lines(tmp_path, "own", own_search("1"), *wrong)
    assert [sample.sample_id for sample in benchmark.samples] == ["1"]
    found = problems(benchmark)
    assert [where for where, _ in found] == [f"line {number}" for number in range(2, 13)]
    said = [
        "neither text nor image",
        "there is no file",
        "give video, or moments as [video, start, end]",
        "film-01.mp4 is the video that is searched",
        "got 8 to 8",
        "got true and 1 relevant",
        "grades: got 2; there are 1",
        "each is more than 0",
        "txet: ",
        "is there already",
        "got -1 to 8",
    ]
    for (_, what), part in zip(found, said, strict=True):
        assert part in what


def test_a_search_without_moments_is_kept_and_named(tmp_path: Path) -> None:
    benchmark = read_lines(tmp_path, "own", own_search("1", relevant=None))
    ((where, what),) = problems(benchmark)
    assert where == "line 1"
    assert "kept and not scored" in what
