"""Training and scoring the built-in space, and searches of drawn films."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.benchmarks import read_moment_benchmark
from kinodex.sketch.scenes import THING_NAMES, Group, Scene
from kinodex.sketch.script import Script, write_script
from kinodex.sketch.story import write_story
from tests.sketch import train as train_builtin
from tests.sketch.score_story import EVERY_S, _ranked, frames_with, score_story
from tests.sketch.searches import main, read_films
from tests.sketch.train import load_towers, photograph, score, write_searches

pytestmark = pytest.mark.slow


def train(out: Path, scored: int, towers: bool) -> str:
    """Train a little on pictures that are drawn beside `out` once; returns what the script prints."""
    sizes = {"steps": 3, "pictures": 120, "batch": 24, "threads": 1}
    with redirect_stdout(io.StringIO()) as printed:
        train_builtin.main(out=out, **sizes, scored=scored, towers=towers, keep=out.parent)
    return printed.getvalue()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trained")


@pytest.fixture(scope="module")
def printed(home: Path) -> str:
    """Text that a training prints, which leaves the folder `first`."""
    return train(home / "first", scored=20, towers=True)


def test_the_script_trains_saves_reloads_and_scores(home: Path, printed: str) -> None:
    report = json.loads((home / "first" / "report.json").read_text())
    assert report["steps"] == 3 and report["bytes"] < 12_000_000
    assert json.loads(printed.partition("{")[2].join(("{", ""))) == report
    towers = load_towers(home / "first")
    assert np.allclose(np.linalg.norm(towers.embed_texts(["a boat"]), axis=1), 1, atol=1e-4)


def test_the_same_steps_give_the_same_weights(home: Path, printed: str) -> None:
    train(home / "second", scored=10, towers=False)
    first, second = ((home / name / train_builtin.WEIGHTS_NAME).read_bytes() for name in ("first", "second"))
    assert first == second


SCENE = Scene("sea", groups=(Group("boat", "red", size="large"),))


def test_an_image_is_square_and_follows_from_its_seed() -> None:
    image = photograph(SCENE, 3, 64)
    assert image.shape == (64, 64, 3)
    assert image.dtype == np.uint8
    assert np.array_equal(image, photograph(SCENE, 3, 64))


def test_only_worn_images_vary_in_brightness() -> None:
    worn = [photograph(SCENE, seed, 32).mean() for seed in range(30)]
    plain = [photograph(SCENE, seed, 32, worn=False).mean() for seed in range(30)]
    assert max(worn) - min(worn) > 40
    assert max(plain) - min(plain) < 25


TARGETS = {"thing_top1": 0.95, "colour_top1": 0.90, "place_top1": 0.95, "text_to_image_recall_at_10": 0.90}
SLACK = 0.03
"""A small sample's score scatters around the true one."""


@pytest.fixture(scope="module")
def builtin(root: Path) -> Path:
    """The folder with the weights of the package."""
    return root / "index" / "spaces" / "builtin"


def test_weights_are_small_and_their_report_meets_the_targets(builtin: Path) -> None:
    size = sum(path.stat().st_size for path in builtin.iterdir() if path.suffix == ".safetensors")
    assert 0 < size <= 12_000_000
    report = json.loads((builtin / "report.json").read_text())
    assert {name: report[name] for name in TARGETS if report[name] < TARGETS[name]} == {}
    assert report["pictures"] >= 1000 and report["paraphrase_precision_at_5"] >= 0.9


@pytest.mark.slow
def test_a_fresh_sample_of_unseen_combinations_agrees_with_the_report(builtin: Path) -> None:
    scores = score(builtin, pictures=250, seed=4321)
    assert {name: scores[name] for name, least in TARGETS.items() if scores[name] < least - SLACK} == {}
    assert scores["paraphrase_precision_at_5"] >= 0.85


def test_words_that_were_never_trained_are_neutral(builtin: Path) -> None:
    towers = load_towers(builtin)
    plain, wordy = towers.embed_texts(["a red boat at sea", "a xylograph red boat quokka at sea"])
    others = towers.embed_texts([f"a red {thing} at sea" for thing in THING_NAMES if thing != "boat"])
    assert wordy @ plain > (others @ wordy).max()


def test_every_name_has_the_frames_in_which_it_is_seen() -> None:
    film = write_story("film", 300, 1)
    truth = frames_with(film)
    cards = {name: frames for (role, name), frames in truth.items() if role == "title card"}
    assert cards == {
        shot.card.word: {n for n in range(100) if shot.time[0] <= n * EVERY_S < shot.time[1]}
        for shot in film.shots
        if shot.card
    }
    places = [frames for (role, _), frames in truth.items() if role == "place"]
    assert sorted(set[int]().union(*places, *cards.values())) == list(range(100))
    assert {role for role, _ in truth} >= {"actor", "passer", "place", "title card"}
    for event, _ in film.events():
        if event.kind == "enter" and ("actor", event.who.name) in truth:
            assert min(truth["actor", event.who.name]) * EVERY_S >= min(
                other.time[0] for other, _ in film.events() if other.who == event.who and other.kind == "enter"
            )


def test_ranks_become_recall_and_area() -> None:
    scores = np.array([0.9, 0.1, 0.8, 0.2], np.float32)
    assert _ranked(scores, {0, 2}) == (True, True, 1.0)
    assert _ranked(scores, {1, 3}) == (False, True, 0.0)
    assert _ranked(scores, {0, 1}) == (True, True, 0.5)
    assert _ranked(scores, {0, 1, 2, 3}) is None


def test_actors_and_places_are_found(root: Path) -> None:
    scores = score_story(root / "index" / "spaces" / "builtin", films=1, duration_s=120.0, seed=3)
    assert scores["place"]["auc"] > 0.9 and scores["actor"]["auc"] > 0.75
    assert all(0 <= each["recall_at_1"] <= each["recall_at_5"] <= 1 for each in scores.values())


def films() -> dict[str, Script]:
    return {f"film-0{number}.mp4": write_script(f"film-0{number}", 240, 7) for number in (1, 2)}


def test_half_of_the_searches_are_of_what_no_film_shows() -> None:
    rows = write_searches(films(), 40, 7)
    assert len(rows) == 40
    assert sum(row.get("absent", False) for row in rows) == 20
    assert len({row["text"] for row in rows}) == 40
    assert rows == write_searches(films(), 40, 7)
    assert rows != write_searches(films(), 40, 8)


def test_ranges_hold_the_shots_that_say_so_and_no_other(tmp_path: Path) -> None:
    """Every shot of a title card's word lies in a range of its search, and no range ends within a shot."""
    scripts = films()
    borders = {
        video: {shot.start_s for shot in script.shots} | {script.duration_s} for video, script in scripts.items()
    }
    for row in write_searches(scripts, 40, 7):
        for video, start_s, end_s in row.get("relevant", []):
            assert {start_s, end_s} <= borders[video]
        if row["text"].startswith("a title card that says ") and "relevant" in row:
            shown = [
                [video, shot.start_s, shot.end_s]
                for video, script in scripts.items()
                for shot in script.shots
                if shot.description == row["text"]
            ]
            assert row["relevant"] == shown
    file = tmp_path / "searches.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in write_searches(scripts, 10, 7)))
    read = read_moment_benchmark("own", file)
    assert (len(read.items), read.problems) == (10, ())


def test_searches_of_one_film_name_it() -> None:
    name, script = next(iter(films().items()))
    assert {row["video"] for row in write_searches({name: script}, 10, 7)} == {name}


def test_searches_over_all_films_or_over_each(films: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sorted(read_films(films)) == ["film-01.mp4", "film-02.mp4", "film-03.mp4"]
    main([str(films), "--count", "6"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row.get("absent", False) for row in rows] == [False, True] * 3
    assert all("video" not in row for row in rows)
    main([str(films), "--count", "2", "--each"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len({row["id"] for row in rows}) == len(rows) == 6
    assert {row["video"] for row in rows} == {"film-01.mp4", "film-02.mp4", "film-03.mp4"}


def test_a_folder_without_such_films_is_refused(films: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no films"):
        read_films(tmp_path)
    script = json.loads((films / "film-01.script.json").read_text())
    (tmp_path / "film-01.script.json").write_text(json.dumps(script | {"shots": []}))
    with pytest.raises(UsageError, match="no script of an independent film"):
        read_films(tmp_path)
