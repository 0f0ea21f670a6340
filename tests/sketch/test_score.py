"""Scores of the drawn space, claims about scenes, and searches of drawn films."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.benchmarks import read_moment_benchmark
from tests.sketch.captions import (
    SEVERAL,
    Claim,
    GroupClaim,
    altered,
    claim_about,
    full_claim,
    is_true,
    plain_wording,
    random_scene,
)
from tests.sketch.score import load_towers, score
from tests.sketch.score_story import EVERY_S, _ranked, frames_with, score_story
from tests.sketch.searches import main, read_films, write_searches
from tests.world.drawn_space import CHECKPOINT
from tests.world.sketch.scenes import THING_NAMES, Group, Scene, TitleCard
from tests.world.sketch.script import write_script
from tests.world.story import write_story

pytestmark = pytest.mark.slow


TARGETS = {"thing_top1": 0.95, "colour_top1": 0.90, "place_top1": 0.95, "text_to_image_recall_at_10": 0.90}
SLACK = 0.03
"""A small sample's score scatters around the true one."""


def test_weights_are_small_and_their_report_meets_the_targets() -> None:
    size = sum(path.stat().st_size for path in CHECKPOINT.iterdir() if path.suffix == ".safetensors")
    assert 0 < size <= 12_000_000
    report = json.loads((CHECKPOINT / "report.json").read_text())
    assert {name: report[name] for name in TARGETS if report[name] < TARGETS[name]} == {}
    assert report["pictures"] >= 1000 and report["paraphrase_precision_at_5"] >= 0.9


def test_a_fresh_sample_of_unseen_combinations_agrees_with_the_report() -> None:
    scores = score(CHECKPOINT, pictures=50, seed=4321)
    assert {name: scores[name] for name, least in TARGETS.items() if scores[name] < least - SLACK} == {}
    assert scores["paraphrase_precision_at_5"] >= 0.85
    towers = load_towers(CHECKPOINT)
    plain, wordy = towers.embed_texts(["a red boat at sea", "a xylograph red boat quokka at sea"])
    others = towers.embed_texts([f"a red {thing} at sea" for thing in THING_NAMES if thing != "boat"])
    assert wordy @ plain > (others @ wordy).max(), "words that were never trained are neutral"


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


def test_actors_and_places_are_found() -> None:
    values = np.array([0.9, 0.1, 0.8, 0.2], np.float32)
    assert _ranked(values, {0, 2}) == (True, True, 1.0)
    assert _ranked(values, {1, 3}) == (False, True, 0.0)
    assert _ranked(values, {0, 1}) == (True, True, 0.5)
    assert _ranked(values, {0, 1, 2, 3}) is None
    scores = score_story(CHECKPOINT, films=1, duration_s=120.0, seed=3)
    assert scores["place"]["auc"] > 0.9 and scores["actor"]["auc"] > 0.75
    assert all(0 <= each["recall_at_1"] <= each["recall_at_5"] <= 1 for each in scores.values())


def test_searches_have_the_ranges_in_which_they_are_true_and_half_of_them_none(tmp_path: Path) -> None:
    scripts = {f"film-0{number}.mp4": write_script(f"film-0{number}", 240, 7) for number in (1, 2)}
    rows = write_searches(scripts, 40, 7)
    assert len({row["text"] for row in rows}) == len(rows) == 40
    assert sum(row.get("absent", False) for row in rows) == 20
    assert rows == write_searches(scripts, 40, 7) != write_searches(scripts, 40, 8)
    shots = [(video, shot) for video, script in scripts.items() for shot in script.shots]
    borders = {(video, at_s) for video, shot in shots for at_s in (shot.start_s, shot.end_s)}
    for row in rows:
        relevant = row.get("relevant", [])
        assert {(video, at_s) for video, *range_s in relevant for at_s in range_s} <= borders
        if row["text"].startswith("a title card that says ") and relevant:
            shown = [[video, each.start_s, each.end_s] for video, each in shots if each.description == row["text"]]
            assert relevant == shown
    file = tmp_path / "searches.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    read = read_moment_benchmark("own", file)
    assert (len(read.items), read.problems) == (40, ())
    name, script = next(iter(scripts.items()))
    assert {row["video"] for row in write_searches({name: script}, 10, 7)} == {name}


def test_searches_are_over_all_films_of_a_folder_or_over_each(
    films: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed(*options: str) -> list[dict[str, Any]]:
        main([str(films), *options])
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    names = ["film-01.mp4", "film-02.mp4", "film-03.mp4"]
    assert sorted(read_films(films)) == names
    rows = printed("--count", "6")
    assert [row.get("absent", False) for row in rows] == [False, True] * 3 and all("video" not in row for row in rows)
    rows = printed("--count", "2", "--each")
    assert len({row["id"] for row in rows}) == len(rows) == 6 and {row["video"] for row in rows} == set(names)
    with pytest.raises(UsageError, match="holds no films"):
        read_films(tmp_path)
    script = json.loads((films / "film-01.script.json").read_text())
    (tmp_path / "film-01.script.json").write_text(json.dumps(script | {"shots": []}))
    with pytest.raises(UsageError, match="no script of an independent film"):
        read_films(tmp_path)


def test_claims_about_a_scene_are_true_of_it_and_near_misses_mostly_not() -> None:
    chance, false = Random(0), []
    for unseen in (False, True) * 150:
        scene = random_scene(chance, unseen=unseen)
        claim = claim_about(scene, chance)
        assert is_true(claim, scene) and is_true(full_claim(scene), scene), (scene, claim)
        false.append(not is_true(altered(claim, chance), scene))
    assert np.mean(false) > 0.7
    scene = Scene("snow", True, (Group("house", "red"), Group("bus", "blue", 2)))
    assert plain_wording(full_claim(scene)) == "a red house and two blue buses in the snow at night"


BOATS = Scene("sea", True, (Group("boat", "red", 3, position="left"), Group("car", "blue", position="right")))


def test_truth_of_claims() -> None:
    boat, car = GroupClaim("boat", "red", 3), GroupClaim("car", position="right")
    for groups in ((GroupClaim("vehicle", "red"),), (GroupClaim(colour="blue"),), (GroupClaim("boat", count=SEVERAL),)):
        assert is_true(Claim(groups=groups), BOATS), groups
    assert is_true(Claim("sea", True, (boat, car)), BOATS) and is_true(Claim("sea", empty=True), Scene("sea"))
    for group in (GroupClaim("boat", "blue"), GroupClaim("boat", count=2), GroupClaim("animal")):
        assert not is_true(Claim(groups=(group,)), BOATS), group
    for claim in (Claim("snow"), Claim(night=False), Claim(empty=True), Claim(word="HARBOUR")):
        assert not is_true(claim, BOATS), claim
    card = TitleCard("HARBOUR")
    assert [is_true(Claim(word=word), card) for word in ("HARBOUR", "*", "ECHO")] == [True, True, False]
