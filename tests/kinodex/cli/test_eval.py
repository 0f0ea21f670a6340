"""`kinodex eval check`, and `eval BENCHMARK` for `eval run BENCHMARK`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from kinodex.cli.eval.app import with_run
from tests.support.command import Kinodex, bad
from tests.support.libraries import benchmark_files as kit
from tests.support.libraries.text_library import text_library, text_video_id
from tests.support.runs.eval_runs import FILMS, caption_library
from tests.world.benchmark import SKETCHES


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
    kit.published(tmp_path, SKETCHES)
    (tmp_path / "map.csv").write_text("film-01.mp4,mine\n")
    text_library(tmp_path / "library", {"mine": [(0.0, 5.0, "a cat")], "yours": [(0.0, 5.0, "a cat")]})
    arguments = ("eval", "check", SKETCHES, tmp_path, tmp_path / "library", "--json")
    assert json.loads(kinodex(*arguments).out)["library"]["found"] == 0
    assert json.loads(kinodex(*arguments, "--map", tmp_path / "map.csv").out)["library"]["found"] == 1


def test_check_refuses_what_it_cannot_read(kinodex: Kinodex, tmp_path: Path) -> None:
    bad(kinodex, "eval", "check", "egosschema", tmp_path, code=2, says="did you mean egoschema")
    bad(kinodex, "eval", "check", "lvbench", tmp_path, code=2, says="https://huggingface.co/datasets/zai-org/LVBench")


KINDS = ("kite", "lamp")


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
    return kit.published(folder, SKETCHES, *rows)


@pytest.mark.slow
def test_check_counts_the_part(kinodex: Kinodex, library: Path, tmp_path: Path):
    command = ("eval", "check", SKETCHES, questions(tmp_path, (*FILMS, "lost")), library, "--only", "kind=kite")
    ran = kinodex(*command)
    assert "part: kind = kite" in ran.out
    assert "8 questions about 4 videos" in ran.out
    assert "has 3 of 4 videos, for 6 of 8 questions" in ran.out
    told = json.loads(kinodex(*command, "--json").out)
    assert (told["part"], told["groups"]) == ("kind = kite", {"kind": {"kite": 8}})
    assert "part:" not in kinodex(*command[:-2]).out


OWN_SEARCH = {"text": "a red kite", "video": "harbour", "relevant": [[0, 2]]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("harbour", None),
        ("harbour.mp4", None),
        (text_video_id("harbour"), None),
        (text_video_id("harbour")[:12], None),
        ("harbor", "the nearest are harbour"),
        ("films/hrabour.mkv", "the nearest are harbour"),
        ("xyz", "no video of the library has the name xyz; write a video's title, file name or id"),
    ],
)
def test_a_file_of_ones_own_names_videos_by_title_file_or_id_and_none_that_is_not_there(
    kinodex: Kinodex, library: Path, tmp_path: Path, name: str, nearest: str | None
) -> None:
    asked = kit.published(tmp_path, "own", kit.own_row("1", video="orchard"), kit.own_row("2", video=name))
    searched = tmp_path / "searches.jsonl"
    searched.write_text(json.dumps(OWN_SEARCH | {"id": "1", "video": name}))
    for command in (
        ("eval", "own", library, "--annotations", asked, "--out", tmp_path / "run", "--agent", "random", "--no-page"),
        ("eval", "search", "own", searched, "--library", library, "--contender", "captions", "--no-cache"),
    ):
        if nearest is None:
            assert kinodex(*command).code == 0
        else:
            bad(kinodex, *command, code=2, says=nearest)
    checked = kinodex("eval", "check", "own", asked, library)
    assert (checked.code, nearest is None or nearest.partition(";")[0] in checked.out) == (0, True)
    nothing = kit.published(tmp_path, "own", kit.own_row("1", video="xyz"))
    assert kinodex("eval", "check", "own", nothing, library).code == 1


def test_a_benchmark_after_eval_is_run_and_other_command_lines_stay_as_they_are() -> None:
    assert with_run(["eval", "lvbench", "library", "--limit", "3"]) == [
        "eval",
        "run",
        "lvbench",
        "library",
        "--limit",
        "3",
    ]
    for line in ("eval", "eval run lvbench", "eval check lvbench", "eval --help", "ingest films library"):
        assert with_run(line.split()) == line.split()
