"""Every bench that is a script, on something tiny: what it counts is right, times are not judged."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kinodex.index.library import Library
from kinodex.index.rows import ScreenTextRow
from kinodex.index.sweep import audit
from kinodex.jobs.errors import UsageError
from kinodex.web.inputs import video_view
from tests.bench import evaluation, page, screen_text, settle, start, towers
from tests.support.libraries.sketch_library import SketchLibrary


def test_settled_videos_are_complete_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load = settle.SettleLoad(videos=40, frames=12, at_once=3, frames_a_commit=30, known=30, look_every_s=600.0)
    figures = settle.bench_settle(tmp_path / "library", load, lambda line: None)
    library = Library.open(str(tmp_path / "library"))
    assert (len(library.videos()), len(library.ingest_log.sources()), audit(library).problems) == (70, 70, ())
    assert [step.videos for step in figures.steps] == list(range(4, 41, 4))
    assert sum(step.settled for step in figures.steps) == 40
    # two commits of three and one videos, each of segments, lines, videos and sources
    assert (figures.steps[0].commits, figures.steps[0].rows) == (8, 48)
    assert "; 30 videos known before;" in settle.table(figures)
    with pytest.raises(UsageError, match="there is a library already"):
        settle.bench_settle(tmp_path / "library", load, print)
    settle.main(tmp_path / "other", videos=10, frames=2, limit=1.0)
    assert "goal 300 videos a second" in capsys.readouterr().out


@pytest.mark.needs_chromium
def test_the_page_of_a_made_up_library(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page.main(tmp_path / "library", 20, 1)
    said = capsys.readouterr()
    assert "20 of 20 videos written" in said.err and "a library of 20 videos" in said.out
    assert all(path in said.out for path in page.PATHS)


def test_a_made_up_film_of_hours_has_what_the_page_of_a_video_draws(tmp_path: Path) -> None:
    library = page.make_long_film(str(tmp_path / "film"), 900, is_annotated=True)
    view = video_view(library, library.videos()[0].video_id)
    assert view["times_s"] == list(range(900)) and len(view["transcript"]) == 360 and len(view["detected"]) > 1
    assert {"Ada", "speaker 4"} <= {each["speaker"] for each in view["transcript"]}
    assert len(view["screen_text"]) == 180 and len(view["captions"]) == len(view["segments"])
    chapters, scenes = ([each for each in view["contents"] if each["level"] == level] for level in ("chapter", "scene"))
    assert 1 < len(chapters) < len(scenes) and (chapters[0]["start_s"], chapters[-1]["end_s"]) == (0.0, 900.0)


def test_each_arithmetic_of_the_built_in_tower() -> None:
    pytest.importorskip("torch")
    rows = {each.arithmetic: each for each in towers.bench_towers(["builtin"], rounds=1, batch=4)}
    assert list(rows) == [
        towers.FLOAT32, towers.CHANNELS_LAST, towers.BF16, towers.BF16_LAST, towers.ONNX_RUNTIME,
    ]  # fmt: skip
    assert all(each.least_cosine > (0.999999 if "float32" in name else 0.99) for name, each in rows.items())
    assert rows[towers.BF16].least_cosine < 0.99999  # its tower is another
    assert "| builtin | 1.4 | torch float32 |" in towers.table(list(rows.values()))


def test_cards_are_scored_by_letters_and_times_and_other_lines_counted(tmp_path: Path) -> None:
    def row(start_s: float, end_s: float, text: str) -> ScreenTextRow:
        return ScreenTextRow("v", start_s, end_s, text, 0.9, (0.1, 0.1, 0.5, 0.2), 1, None, "m")

    shots = [{"start_s": 0.0, "end_s": 3.5, "title_card": "MORNING"}, {"start_s": 3.5, "end_s": 9.0}]
    script = tmp_path / "film.script.json"
    script.write_text(json.dumps({"shots": shots}))  # of an independent film, which has no signs
    assert screen_text.cards_of(script) == [screen_text.Card("MORNING", 0.0, 3.5)]
    signs = [("MORNING", 0.0, 3.5), ("VOYAGE", 10.0, 11.0), ("VOYAGE", 11.0, 12.0), ("END", 20.0, 21.0)]
    texts = [{"text": text, "kind": "sign", "start_s": start_s, "end_s": end_s} for text, start_s, end_s in signs]
    script.write_text(json.dumps({"shots": [], "texts": texts}))
    cards = screen_text.cards_of(script)
    assert cards == [screen_text.Card(*each) for each in (signs[0], ("VOYAGE", 10.0, 12.0), signs[3])]
    rows = [row(0.0, 4.0, "M0RNING"), row(10.5, 12.0, "VOYAGE"), row(15.0, 16.0, "leaves")]
    assert list(screen_text.score([(cards, rows), ([], [])]).lines()) == [
        "2 of 3 cards and signs read; other lines: 1",
        "character error rate 0.250 (4 of 16; of a card not read all)",
        "start off by 0.25 s in the middle, 0.50 s at most",
        "end off by 0.25 s in the middle, 0.50 s at most",
    ]


def test_the_ideal_is_what_calls_take_of_which_some_wait_for_others() -> None:
    for questions, at_once, steps in (
        ([(1, 1)] * 64, 32, 2), ([(3, 3)], 32, 3), ([(4, 2)], 2, 2), ([(4, 2)], 1, 4),
        ([(5, 5), (1, 1), (1, 1)], 2, 5),
    ):  # fmt: skip
        load = evaluation.Load(at_once=at_once, latency_s=0.5)
        assert evaluation.ideal(questions, load) == pytest.approx(0.5 * steps), (questions, at_once)


@pytest.mark.slow
def test_the_harness_of_an_evaluation(copy_sketches: Callable[[Path], SketchLibrary], tmp_path: Path) -> None:
    copy_sketches(tmp_path)
    shutil.copy(tmp_path / "questions.jsonl", tmp_path / "films" / "questions.jsonl")
    load = evaluation.Load(questions=6, at_once=2, latency_s=0.05)
    uniform, eea = evaluation.bench_eval(tmp_path, ["uniform", "eea"], load, lambda line: None)
    assert (uniform.questions, uniform.calls, uniform.calls_in_sequence) == (6, 6, 1.0)
    assert uniform.ideal_s == pytest.approx(3 * 0.05) and uniform.wall_s > uniform.ideal_s
    # A round of EEA is a call for scores and search texts, then one for the decision; queries come before the first.
    assert 3.0 <= eea.calls_in_sequence == pytest.approx(eea.calls / eea.questions)
    assert "| eea |" in evaluation.table([uniform, eea], load)


@pytest.mark.slow
def test_what_starting_a_command_costs_here_and_in_another_checkout(
    films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = start.commands
    other = tmp_path / "other"
    (other / "kinodex" / "cli").mkdir(parents=True)
    for folder in (other / "kinodex", other / "kinodex" / "cli"):
        (folder / "__init__.py").touch()
    (other / "kinodex" / "cli" / "main.py").write_text("def main(): pass\n")
    here = start.Checkout(Path(__file__).parents[2], Path(sys.executable))
    code = "import kinodex.cli.main as m; print(float('other' in m.__file__))"
    where = start.StartCommand("where", ("-c", code), prints_cpu=True)
    assert [cpu_s for cpu_s, _ in start.measure(where, [here, start.Checkout.at(other)], rounds=1)] == [0.0, 1.0]
    with pytest.raises(UsageError, match=r"broken of .* ended with 3: no way"):
        start.run_once(
            start.StartCommand("broken", ("-c", "import sys; sys.stderr.write('no way'); sys.exit(3)")), here
        )
    shutil.copytree(films, tmp_path / "films")  # the films are there already, and used
    listed = start.commands({"builtin": "a", "other": "b"}, tmp_path)
    assert [each.arguments[3] for each in listed if each.name.startswith("kinodex search")] == ["a", "b"]
    monkeypatch.setattr(start, "commands", lambda libraries, scratch: commands(libraries, scratch)[1:2])
    (figures,) = start.bench_start(tmp_path, ["builtin"], 1, lambda line: None)
    assert figures.peak_mb > 20 and "| `kinodex info` |" in start.table([figures])
