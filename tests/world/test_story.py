"""Story films: what is on stage, who acts, where cuts fall, what is said and drawn."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random

import av
import numpy as np
import pytest

from tests.world.sketch.scenes import TitleCard
from tests.world.sketch.script import FPS, HEIGHT_PX, WIDTH_PX
from tests.world.story import (
    ACTORS,
    ASPECT,
    CLOSEST,
    CUES,
    FEET,
    PURPOSES,
    Event,
    Line,
    Pool,
    Prop,
    Setting,
    Stage,
    StoryFilm,
    StoryScene,
    StoryShot,
    Track,
    View,
    World,
    Writing,
    actor_key,
    as_json,
    cue_line,
    draw_frames,
    draw_setting,
    enter,
    free_lines,
    gift_line,
    give,
    in_view,
    landmark_box,
    leave,
    name_line,
    pass_by,
    passer_key,
    play_scene,
    position,
    put,
    render_story,
    shuffle_shots,
    sign_box,
    subtitles,
    take,
    text_box,
    texts_on_screen,
    write_story,
)

CAT, DOG, KEY, BUS = Prop("cat", "red"), Prop("dog", "blue"), Prop("key", "white"), Prop("bus", "green")


def test_shots_fill_the_film() -> None:
    for duration_s, seed in ((30, 0), (30, 1), (120, 0), (120, 1), (1800, 4)):
        film = write_story("film", duration_s, seed)
        assert film == write_story("film", duration_s, seed) != write_story("film", duration_s, seed + 1)
        assert film.duration_s == duration_s and film.shots[0].first_frame == 0
        for shot, following in pairwise(film.shots):
            assert shot.first_frame + shot.frames == following.first_frame
        assert {shot.scene for shot in film.shots if shot.card is None} == set(range(len(film.scenes)))
        assert sum(shot.card is not None for shot in film.shots) == min(len(film.scenes), 24)
        lines = [line.time for line in film.lines]
        assert all(first[1] <= second[0] for first, second in pairwise(lines))
        assert film.lines and lines[-1][1] <= duration_s
    lengths = [shot.frames / 12 for shot in film.shots if shot.card is None]
    assert min(lengths) >= 3 and max(lengths) < 30 and 6 < sum(lengths) / len(lengths) < 12


def test_a_film_of_two_hours_has_things_enough() -> None:
    assert write_story("film-02", 7200.0, 375497).duration_s == 7200.0, (
        "all that may pass in one place passed elsewhere"
    )


def test_places_last_for_minutes_and_come_again() -> None:
    film = write_story("film", 3600, 2)
    lengths = [scene.time[1] - scene.time[0] for scene in film.scenes]
    assert min(lengths) > 60 and sum(lengths) / len(lengths) > 120
    visits = Counter(scene.setting for scene in film.scenes)
    assert max(visits.values()) > 1 and len(visits) > len(film.scenes) / 2
    assert all(scene.setting != after.setting for scene, after in pairwise(film.scenes))
    in_scenes = Counter(event.who for scene in film.scenes for event in scene.events if event.kind == "enter")
    assert max(in_scenes.values()) > 3, "somebody is met again and again"


def test_events_go_on_over_cuts() -> None:
    """The frames at a shot's border tell of what happens beside it: many movements begin in one shot and end later."""
    film = write_story("film", 1800, 2)
    cuts = [shot.first_frame / FPS for shot in film.shots]
    events = [event for event, _ in film.events()]
    over = [event for event in events if any(event.time[0] < cut < event.time[1] for cut in cuts)]
    assert len(over) > len(events) / 4
    for event in events:
        assert not any(event.moment[0] < cut - 0.5 / FPS and cut + 0.5 / FPS < event.moment[1] for cut in cuts), event


WORDS = Line((0.0, 0.0), "It is for the choir.", "Mara", ("purpose", "", "the choir"))
CUE = Line((0.0, 0.0), "Any moment now.", "Mara", ("cue", "Any moment now", ""))


@pytest.fixture
def writing() -> Writing:
    setting = Setting("city", False, Prop("house", "red"), 0.3, None, 0.5, 1)
    return Writing(setting, Stage(), Random(3))


def test_a_thing_is_given_left_taken_carried_off_and_brought_back(writing: Writing) -> None:
    now = enter(writing, DOG, 3, None, enter(writing, CAT, 0, KEY, 1.0))
    now = give(writing, CAT, DOG, now + 1, WORDS)
    assert writing.stage.held == {DOG: KEY}
    now = put(writing, DOG, now + 1)
    assert writing.stage.held == {} and DOG not in writing.stage.at
    now = take(writing, CAT, KEY, now + 1)
    assert writing.stage.held == {CAT: KEY}
    told = [(event.kind, event.who, event.what, event.other) for event in writing.events]
    assert told == [
        ("enter", CAT, KEY, None),
        ("enter", DOG, None, None),
        ("give", CAT, KEY, DOG),
        ("put", DOG, KEY, None),
        ("leave", DOG, None, None),
        ("take", CAT, KEY, DOG),
    ]
    gift = writing.events[2]
    (line,) = writing.lines
    assert gift.moment[0] < line.time[0] < gift.moment[1] and line.text == WORDS.text
    assert all(event.time[0] <= event.moment[0] < event.moment[1] for event in writing.events)
    gone = leave(writing, CAT, now)
    assert writing.carried_off[CAT] == KEY
    enter(writing, CAT, 1, KEY, gone + 5, again=True)
    left, back = writing.events[-2:]
    assert (left.kind, back.kind) == ("leave", "return")
    assert left.back_at_s == back.time[0] >= gone + 4.9, "away from the end of the one to the start of the other"


def test_a_cue_is_spoken_right_before_something_passes(writing: Writing) -> None:
    end = pass_by(writing, BUS, 2.0, CUE)
    (line,), (event,), (guard,) = writing.lines, writing.events, writing.guards
    assert line.time[1] == event.time[0] < event.moment[0] < event.moment[1] <= end
    assert guard[0] < line.time[0] and guard[1] >= event.moment[1], "words and picture are in one shot"
    assert event.cue == "Any moment now"


SETTING = Setting("city", False, Prop("house", "red"), 0.3, None, 0.5, 1)


def world(seed: int) -> tuple[World, list[Prop]]:
    chance = Random(seed)
    pool = Pool(chance)
    cast = [actor for _ in range(4) if (actor := pool.prop(ACTORS))]
    return World(pool, chance, {actor: f"Name {number}" for number, actor in enumerate(cast)}), cast


@pytest.mark.parametrize("seed", range(3))
def test_a_scene_keeps_the_rules_of_its_stage(seed: int) -> None:
    state, cast = world(seed)
    scene, writing = play_scene(SETTING, cast, 10.0, 190.0, state)
    assert len(scene.events) > 8
    assert all(10.0 <= event.time[0] < event.time[1] <= 190.0 for event in scene.events)
    assert all(10.0 <= key.time_s <= 190.0 for track in scene.tracks for key in track.keys)
    there: set[Prop] = set()
    held: dict[Prop, Prop | None] = {}
    for event in scene.events:
        _play(event, there, held)
        assert len(there) <= 3
    assert state.carries == {actor: item for actor, item in held.items() if item is not None}
    assert writing.lines[0].fact is not None and writing.lines[0].fact[:2] == ("name", state.names[cast[0]])
    state, cast = world(seed)
    state.carries[cast[0]] = KEY
    scene, _ = play_scene(SETTING, cast, 0.0, 40.0, state)
    assert scene.events[0].what == KEY, "what is carried off is carried when its holder comes again"


def _play(event: Event, there: set[Prop], held: dict[Prop, Prop | None]) -> None:
    """Act an event out on a list of who is there and what each holds, and check that it could happen."""
    if event.kind in ("enter", "return"):
        assert event.who not in there
        there.add(event.who)
        held[event.who] = event.what
    elif event.kind == "pass":
        assert event.who not in there
    else:
        assert event.who in there
    if event.kind == "give":
        assert event.other is not None and held[event.who] == event.what and held[event.other] is None
        held[event.who], held[event.other] = None, event.what
    elif event.kind == "put":
        assert held.pop(event.who) == event.what
        held[event.who] = None
    elif event.kind == "take":
        assert held[event.who] is None
        held[event.who] = event.what
    elif event.kind == "leave":
        there.remove(event.who)


def test_a_view_holds_all_who_do_something_in_it() -> None:
    film = write_story("film", 600, 4)
    views = set()
    for shot in film.shots:
        if shot.scene is None:
            continue
        scene, view = film.scenes[shot.scene], shot.view
        views.add(view.width)
        assert CLOSEST <= view.width <= 1 and view.left + view.width <= 1.001 and view.top + view.width <= 1.001
        if not any(event.time[0] < shot.time[1] and shot.time[0] < event.time[1] for event in scene.events):
            continue
        for track in scene.tracks:
            key = position(track, sum(shot.time) / 2)
            if key is not None and 0.05 < key.x < 0.95:
                half = key.side / ASPECT / 2
                box = (
                    max(0.0, key.x - half),
                    key.y - key.side / 2,
                    min(1.0, key.x + half),
                    min(1.0, key.y + key.side / 2),
                )
                assert in_view(box, view), (shot, track.prop)
    assert len(views) > 4


def test_signs_stand_beside_landmarks_and_on_the_stage() -> None:
    settings = {scene.setting for scene in write_story("film", 3600, 5).scenes}
    for setting in settings:
        board, landmark = sign_box(setting), landmark_box(setting)
        assert (board is None) == (setting.sign is None)
        if board is not None:
            assert board[0] > 0 and board[2] < 1
            assert board[2] <= landmark[0] + 0.02 or landmark[2] <= board[0] + 0.02
    assert in_view((0.2, 0.2, 0.4, 0.4), View(0.0, 0.0, 0.5)) == (0.4, 0.4, 0.8, 0.8)
    assert in_view((0.2, 0.2, 0.6, 0.4), View(0.0, 0.0, 0.5)) is None


NAMES = {CAT: "Mara", Prop("dog", "blue"): "Otto"}
HOUSE = Prop("house", "green")
SCENE = StoryScene(Setting("city", False, HOUSE, 0.3, None, 0.5, 1), (0.0, 600.0), (), ())


def test_lines_bound_to_acts_name_no_thing() -> None:
    pool, chance = Pool(Random(1)), Random(1)
    lines = [gift_line(pool, "Mara", chance) for _ in PURPOSES] + [cue_line(pool, NAMES, chance) for _ in CUES]
    texts = [line.text for line in lines if line is not None]
    assert len(texts) == len(set(texts)) == len(PURPOSES) + len(CUES)
    assert gift_line(pool, "Mara", chance) is None and cue_line(pool, NAMES, chance) is None
    named = name_line("Mara", CAT, chance)
    assert "Mara" in named.text and "cat" not in named.text


def test_free_lines_do_not_interrupt_and_say_each_fact_once() -> None:
    shots = [StoryShot(number * 120, 120, 0) for number in range(60)]
    spoken = [Line((3.0, 5.75), "Stay where you are.", "Otto")]
    lines = free_lines(shots, [SCENE], spoken, NAMES, Pool(Random(2)), Random(2))
    times = sorted(line.time for line in [*lines, *spoken])
    assert all(first[1] <= second[0] for first, second in pairwise(times))
    assert all(any(shot.time[0] <= line.time[0] and line.time[1] <= shot.time[1] for shot in shots) for line in lines)
    facts = [line.fact for line in lines if line.fact is not None]
    assert len({fact[:2] for fact in facts}) == len({fact[2] for fact in facts}) == len(facts) > 5
    assert any(HOUSE.name in line.text for line in lines), "some name what is shown"


def test_shuffled_shots_are_all_kept_and_lines_and_times_move_with_them() -> None:
    film = write_story("film", 300, 1)
    shuffled = shuffle_shots(film)
    assert shuffled == shuffle_shots(film) and shuffled.shots != film.shots
    assert sorted(shuffled.shots, key=lambda shot: shot.first_frame) == list(film.shots)
    assert (shuffled.form, shuffled.duration_s, shuffled.lines) == ("shuffled", film.duration_s, film.lines)
    before, after = json.loads(json.dumps(as_json(film))), as_json(shuffled)
    assert sorted(line["text"] for line in after["spoken"]) == sorted(line["text"] for line in before["spoken"])
    starts = [line["start_s"] for line in after["spoken"]]
    assert starts == sorted(starts) != [line["start_s"] for line in before["spoken"]]
    blocks = subtitles(shuffled).strip().split("\n\n")
    assert [block.splitlines()[2] for block in blocks] == [line["text"] for line in after["spoken"]]
    assert before["duration_s"] == before["shots"][-1]["end_s"] == 300
    assert {event["kind"] for event in before["events"]} >= {"enter", "leave", "pass"}
    assert all(event["ranges"] == [[event["start_s"], event["end_s"]]] for event in before["events"]), "in one piece"
    assert all(line["speaker"] in before["names"] for line in before["spoken"])

    shots = (StoryShot(0, 24), StoryShot(24, 36), StoryShot(60, 12))
    for order, range_s, shown_s in (
        ((0, 1, 2), (1.0, 5.5), [(1.0, 5.5)]),
        ((1, 2, 0), (1.0, 3.0), [(0.0, 1.0), (5.0, 6.0)]),
        ((1, 2, 0), (5.0, 6.0), [(3.0, 4.0)]),
        ((2, 1, 0), (9.0, 10.0), []),
    ):
        cut = StoryFilm("film", 0, "story", tuple(shots[number] for number in order), (), (), {})
        assert (cut.on_screen(range_s), cut.duration_s) == (shown_s, 6.0), order


def test_texts_are_listed_while_they_are_in_view() -> None:
    film = write_story("film", 600, 1)
    rows = texts_on_screen(film)
    cards = [row for row in rows if row["kind"] == "title"]
    assert [row["text"] for row in cards] == [shot.card.word for shot in film.shots if shot.card]
    signs = [row for row in rows if row["kind"] == "sign"]
    assert signs and all(min(row["box"]) >= 0 and max(row["box"]) <= 1 for row in signs)
    for first, second in pairwise(rows):
        assert first["end_s"] <= second["start_s"]
        assert (first["end_s"], first["text"], first["box"]) != (second["start_s"], second["text"], second["box"])


MEADOW = Setting("meadow", False, Prop("house", "red"), 0.2, "HOTEL 7", 0.445, 3)
BLACK_CAT = Prop("cat", "black")
WALK = Track(BLACK_CAT, (actor_key(BLACK_CAT, 1.0, 0.2, 0.0), actor_key(BLACK_CAT, 3.0, 0.8, 0.0)))


def short_film() -> StoryFilm:
    shots = (StoryShot(0, 12, card=TitleCard("ECHO")), StoryShot(12, 36, 0))
    return StoryFilm("film", 0, "story", shots, (StoryScene(MEADOW, (1.0, 4.0), (WALK,), ()),), (), {})


def test_things_move_come_and_go(tmp_path: Path) -> None:
    near, far = actor_key(CAT, 0.0, 0.5, 0.0), actor_key(CAT, 0.0, 0.5, 1.0)
    assert far.side < near.side / 5 and far.y < near.y and abs(near.y + near.side / 2 - FEET) < 1e-9
    plane, car = passer_key(Prop("plane", "red"), 0.0, 0.5, 0.3), passer_key(Prop("car", "red"), 0.0, 0.5, 0.3)
    assert plane.y < 0.3 < car.y
    frames = [frame.astype(int) for frame in draw_frames(short_film())]
    assert len(frames) == 48 and frames[0].shape == (HEIGHT_PX, WIDTH_PX, 3)
    empty = np.asarray(draw_setting(MEADOW, View())).astype(int)
    columns = [np.abs(frames[number] - empty).sum(axis=(0, 2)) for number in (12, 35)]
    middles = [float((np.arange(WIDTH_PX) * column).sum() / column.sum() / WIDTH_PX) for column in columns]
    assert abs(middles[0] - 0.2) < 0.03 and abs(middles[1] - 0.775) < 0.03
    assert not np.abs(frames[36] - empty).any(), "the cat is gone at 3 s"
    sparse = list(draw_frames(short_film(), 10))
    assert [np.array_equal(frame, frames[10 * at]) for at, frame in enumerate(sparse)] == [True] * 5
    told: list[int] = []
    render_story(short_film(), tmp_path / "film.mp4", told.append)
    with av.open(str(tmp_path / "film.mp4")) as container:
        assert sum(1 for _ in container.decode(video=0)) == 48 == len(told)


def test_a_near_view_is_a_part_of_the_stage_drawn_larger() -> None:
    view = View(0.0, 0.2, 0.6)
    board, near = text_box(MEADOW, View()), text_box(MEADOW, view)
    assert board is not None and near is not None
    assert near[2] - near[0] > 1.6 * (board[2] - board[0])
    picture = np.asarray(draw_setting(MEADOW, view))
    left, top, right, bottom = (round(each * side) for each, side in zip(near, (WIDTH_PX, HEIGHT_PX) * 2, strict=True))
    inside = picture[top + 6 : bottom - 6, left + 6 : right - 6].reshape(-1, 3)
    assert (inside.min(axis=1) > 200).mean() > 0.5 and (inside.max(axis=1) < 80).mean() > 0.05, "ink on a pale board"
    assert text_box(MEADOW, View(0.4, 0.0, 0.6)) is None
