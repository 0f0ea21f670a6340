"""Benchmarks of moments: made-up files of every published form, what is read of them and what is noted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import pytest

from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.benchmarks import (
    MOMENT_BENCHMARKS,
    UnknownBenchmark,
    find_moment_benchmark,
    read_moment_benchmark,
)
from kinodex.jobs.eval.items import BadRow, MomentQuery, SearchItem
from kinodex.jobs.eval.rows import check_range
from tests.jobs.eval.test_readers import HOSTILE
from tests.support.libraries.benchmark_files import cg_bench_row, problems

Row = Mapping[str, object]


def own_search(id_: str = "1", **changes: object) -> dict[str, object]:
    row = {"id": id_, "text": "a dog eats", "video": "film-01.mp4", "relevant": [[3.5, 8.0]], **changes}
    return {name: value for name, value in row.items() if value is not None}


def seeker_row(**changes: object) -> Row:
    asked = {"qry_text": "A player scores a goal.", "qry_img_path": "", "qry_video_path": ""}
    film = {"src_video_path": "./videos/sport_12.mp4", "task": "Action Recognition"}
    return {**asked, **film, "answering_time_interval": [[10.0, 25.0], [80, 95]], **changes}


def piece_row(*answers: int) -> Row:
    """A row of MomentSeeker's first release, which names the pieces of the film."""
    pieces = [{"output_path": f"/share/clips/movie101_16/{10 * n}.00_{10 * n + 10}.00.mp4"} for n in range(3)]
    asked = {"qry_text": "A man waves.", "qry_img_path": "", "qry_video_path": ""}
    return {**asked, "candidate_video_list": pieces, "gt_indices": list(answers)}


def highlights_row(qid: int = 1, **changes: object) -> Row:
    film = {"qid": qid, "query": "A family plays.", "duration": 126, "vid": "bP5K_660.0_810.0"}
    moments = {"relevant_windows": [[0, 4], [10, 12]], "relevant_clip_ids": [0, 1, 5]}
    return {**film, **moments, "saliency_scores": [[4, 1, 1], [4, 3, 2], [0, 0, 0]], **changes}


CHARADES = """3MSZA 24.3 30.4##person turn a light on.
3MSZA 24.3 30.4##person flipped the light switch near the door

AO8RW 6.9 6.9##a person is putting a book on a shelf.
AO8RW 0.0 6.9 a person is putting a book on a shelf.
AO8RW 0.0##a person is putting a book on a shelf.
AO8RW 0.0 x##a person is putting a book on a shelf.
AO8RW 0.0 6.9##
"""
ACTIVITYNET = {
    "v_a": {"duration": 30, "timestamps": [[10, 20], [25, 30.5]], "sentences": [" He jumps.", "A man runs."]},
    "v_b": {"duration": 9, "timestamps": [[0, 9]], "sentences": []},
    "v_c": {"duration": 9, "timestamps": [[9, 9.5], [0, 1]], "sentences": ["A dog barks.", " "]},
    "v_d": 3,
}

# A benchmark, its file as text, as an object or as rows, the searches that are read, and what is noted of its rows.
CASES: tuple[tuple[str, object, list[str], list[tuple[str, str]]], ...] = (
    (
        "activitynet-captions",
        ACTIVITYNET,
        ["v_a-0: He jumps. in v_a = v_a 10-20, 30 s", "v_a-1: A man runs. in v_a = v_a 25-30, 30 s"],
        [
            ("video v_a, sentence 1", "the moment is cut there"),
            ("video v_b", "as long as that of sentences"),
            ("video v_c, sentence 0", "the moment is cut there"),
            ("video v_c, sentence 0", "got 9 to 9"),
            ("video v_c, sentence 1", "sentence: got no words"),
            ("video v_d", "timestamps: "),
        ],
    ),
    (
        "cg-bench",
        [
            cg_bench_row(1, choices=["PLANTED", "b"], right_answer="A", answer="PLANTED"),
            cg_bench_row(2, clue_intervals=[]),
            cg_bench_row(3, clue_intervals=[[8, 3]]),
        ],
        [
            "1: What is held? in 9kGB4ITqFjI = 9kGB4ITqFjI 8-18, 9kGB4ITqFjI 120.5-131, 1853 s, Object Perception",
            "2: What is held? in 9kGB4ITqFjI = not known, 1853 s, Object Perception",
        ],
        [("row 3", "clue_intervals: got 8 to 3; it is a start from 0 on and a later end in seconds")],
    ),
    (
        "charades-sta",
        CHARADES,
        [
            "1: person turn a light on. in 3MSZA = 3MSZA 24.3-30.4",
            "2: person flipped the light switch near the door in 3MSZA = 3MSZA 24.3-30.4",
        ],
        [
            ("line 4", "got 6.9 to 6.9"),
            ("line 5", "a line is VIDEO START END##SENTENCE"),
            ("line 6", "a line is VIDEO START END##SENTENCE"),
            ("line 7", "end: "),
            ("line 8", "sentence: "),
        ],
    ),
    *(
        ("charades-sta", f"v 0 9##a man\n{line}\n", ["1: a man in v = v 0-9"], [("line 2", "")])
        for line in ("v 0 9##", "v 0##x", "v a b##x", f"v 0 {'9' * 5000}##x", "v nan 3##x", "##", "x")
    ),
    (
        "momentseeker",
        [
            seeker_row(),
            piece_row(0, 2),
            piece_row(7),
            piece_row(),
            piece_row(-1),  # Python would count from the end
            seeker_row(src_video_path="/"),
            seeker_row(qry_img_path="there.png"),
            seeker_row(qry_img_path="gone.png"),
            seeker_row(qry_video_path="goal.mp4"),
            seeker_row(qry_text=" "),
            seeker_row(answering_time_interval=[[3, 3]]),
        ],
        [
            "t2v-1: A player scores a goal. in sport_12.mp4 = sport_12.mp4 10-25, sport_12.mp4 80-95, "
            "Action Recognition",
            "t2v-2: A man waves. in movie101_16 = movie101_16 0-10, movie101_16 20-30",
            "t2v-7: A player scores a goal. with there.png in sport_12.mp4 = sport_12.mp4 10-25, sport_12.mp4 80-95, "
            "Action Recognition",
        ],
        [
            ("row 3", "gt_indices: "),
            ("row 4", "gt_indices: "),
            ("row 5", "gt_indices: "),
            ("row 6", "src_video_path: got '/', which names no file"),
            ("row 8", "there is no file"),
            ("row 9", "a search by a clip is left out"),
            ("row 10", "neither words nor a picture"),
            ("row 11", "got 3 to 3"),
        ],
    ),
    (
        "qvhighlights",
        [
            highlights_row(),
            highlights_row(2, relevant_clip_ids=[0]),
            highlights_row(3, relevant_windows=[[4, 4]]),
            highlights_row(4, saliency_scores=[[5], [1], [1]]),
            highlights_row(5, relevant_windows=[[100, 150]]),
            highlights_row(6, query="  "),
            highlights_row(7, relevant_windows=[[0, 4], [30, 40]]),
            {name: highlights_row(8)[name] for name in ("qid", "query", "duration", "vid")},
        ],
        [
            "1: A family plays. in bP5K_660.0_810.0 = bP5K_660.0_810.0 0-4 worth 3.5, bP5K_660.0_810.0 10-12 worth 1, "
            "126 s",
            "5: A family plays. in bP5K_660.0_810.0 = bP5K_660.0_810.0 100-150, 126 s",
            "7: A family plays. in bP5K_660.0_810.0 = bP5K_660.0_810.0 0-4, bP5K_660.0_810.0 30-40, 126 s",
            "8: A family plays. in bP5K_660.0_810.0 = not known, 126 s",
        ],
        [
            ("line 2", "saliency_scores: "),
            ("line 3", "relevant_windows: got 4 to 4"),
            ("line 4", "saliency_scores"),
            ("line 5", "relevant_windows: got an end at 150 s of 126; the search is kept"),
            ("line 6", "got neither words nor a picture to search for"),
        ],
    ),
    (
        "own",
        [
            own_search("1", relevant=[[3.5, 8.0], [20, 21]], grades=[1, 3], category="animals"),
            own_search("2", video=None, relevant=[["film-01.mp4", 0, 2], ["film-02.mp4", 4, 5.5]]),
            own_search("3", text=None, image="there.png"),
            own_search("4", relevant=None, absent=True),
            own_search("5", relevant=None),
        ],
        [
            "1: a dog eats in film-01.mp4 = film-01.mp4 3.5-8 worth 1, film-01.mp4 20-21 worth 3, animals",
            "2: a dog eats in None = film-01.mp4 0-2, film-02.mp4 4-5.5",
            "3:  with there.png in film-01.mp4 = film-01.mp4 3.5-8",
            "4: a dog eats in film-01.mp4 = nowhere",
            "5: a dog eats in film-01.mp4 = not known",
        ],
        [("line 5", "kept and not scored")],
    ),
    (
        "own",
        [
            own_search("1"),
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
        ],
        ["1: a dog eats in film-01.mp4 = film-01.mp4 3.5-8"],
        [
            ("line 2", "neither text nor image"),
            ("line 3", "there is no file"),
            ("line 4", "give video, or moments as [video, start, end]"),
            ("line 5", "film-01.mp4 is the video that is searched"),
            ("line 6", "got 8 to 8"),
            ("line 7", "got true and 1 relevant"),
            ("line 8", "grades: got 2; there are 1"),
            ("line 9", "each is more than 0"),
            ("line 10", "txet: "),
            ("line 11", "is there already"),
            ("line 12", "got -1 to 8"),
        ],
    ),
)


def shown(search: SearchItem) -> str:
    grades = search.grades or (None,) * len(search.relevant)
    moments = [
        f"{video} {start_s:g}-{end_s:g}" + ("" if grade is None else f" worth {grade:g}")
        for (video, start_s, end_s), grade in zip(search.relevant, grades, strict=True)
    ]
    true = ", ".join(moments) or ("nowhere" if search.known else "not known")
    picture = f" with {search.image.name}" if search.image else ""
    more = [f"{search.duration_s:g} s"] if search.duration_s else []
    more += [search.category] if search.category else []
    return ", ".join([f"{search.item_id}: {search.text}{picture} in {search.video} = {true}", *more])


def write(folder: Path, name: str, content: object) -> Path:
    file = folder / MOMENT_BENCHMARKS[name].files[0]
    if isinstance(content, str):
        file.write_text(content)
    elif isinstance(content, list) and file.suffix == ".jsonl":
        file.write_text("".join(json.dumps(each) + "\n" for each in content))
    else:
        file.write_text(json.dumps(content))
    return file


def test_rows_become_searches_and_what_is_wrong_with_others_is_noted(tmp_path: Path) -> None:
    for number, (name, content, searches, noted) in enumerate(CASES):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "there.png").write_bytes(b"a picture")
        benchmark = read_moment_benchmark(name, write(folder, name, content))
        assert benchmark == read_moment_benchmark(name, folder)
        assert list(map(shown, benchmark.items)) == searches, name
        assert {each.benchmark for each in benchmark.items} == {name}
        found = problems(benchmark)
        assert [where for where, _ in found] == [where for where, _ in noted], f"{name}: {found}"
        assert all(part in what for (_, what), (_, part) in zip(found, noted, strict=True)), f"{name}: {found}"
        assert "PLANTED" not in repr(benchmark)
        sizes = [each.what for each in benchmark.problems if each.where == "file"]
        published = ", ".join(f"{part} {size:,}" for part, (size, _) in MOMENT_BENCHMARKS[name].sizes.items())
        assert sizes == ([f"got {len(searches)} searches; published: {published}"] if published else []), name


def test_a_query_has_nothing_of_what_is_true_and_videos_are_named_once() -> None:
    moments = (("a.mp4", 1.0, 2.0), ("b.mp4", 3.0, 4.0))
    sample = SearchItem("7", "own", "a dog eats", "a.mp4", moments, (1.0, 2.0), Path("dog.png"))
    assert sample.query == MomentQuery("a dog eats", "a.mp4", Path("dog.png"))
    assert {field.name for field in fields(MomentQuery)} == {"text", "video", "image"}
    assert sample.videos == ("a.mp4", "b.mp4")
    assert check_range("span", 0.0, 0.5) == (0.0, 0.5)
    for ends in ((2.0, 2.0), (-0.5, 3.0), (4.0, 3.0)):
        with pytest.raises(BadRow, match=r"span: got"):
            check_range("span", *ends)


def test_a_name_or_file_that_is_not_there_or_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownBenchmark, match=r"did you mean own\?"):
        find_moment_benchmark("OWN")
    for name, info in MOMENT_BENCHMARKS.items():
        with pytest.raises(UsageError, match="neither is nor holds") as missing:
            read_moment_benchmark(name, tmp_path)
        assert info.had_from in str(missing.value)
        file = tmp_path / f"{name}.file"
        file.write_text('{"unlike": "anything"}\n')
        with pytest.raises(UsageError, match="give the file") as other:
            read_moment_benchmark(name, file)
        assert str(file) in str(other.value)
    (tmp_path / "val_1.json").write_text("[]")
    with pytest.raises(UsageError, match="no object of videos"):
        read_moment_benchmark("activitynet-captions", tmp_path)


def test_whatever_stands_in_a_field_is_a_defect_of_its_row_and_no_traceback(tmp_path: Path) -> None:
    rows = {
        "own": own_search(grades=[1], image="x.png", category="one"),
        "cg-bench": cg_bench_row(),
        "qvhighlights": highlights_row(),
        "momentseeker": seeker_row(),
        "momentseeker, first release": piece_row(0),
        "activitynet-captions": {"duration": 20, "timestamps": [[0, 5]], "sentences": ["a game"]},
    }
    for form, row in rows.items():
        name = form.partition(",")[0]
        for field in row:
            for value in HOSTILE:
                pair = [row, {**row, field: value}]
                file = write(tmp_path, name, dict(zip("vw", pair, strict=True)) if name.startswith("act") else pair)
                with suppress(UsageError):
                    read_moment_benchmark(name, file)
