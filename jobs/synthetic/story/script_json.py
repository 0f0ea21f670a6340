"""A story film as plain data: what is on screen and what is said, with exact times, and its subtitles."""

from __future__ import annotations

from typing import Any

from jobs.synthetic.story.draw_story import text_box
from jobs.synthetic.story.film import Event, Range, Setting, StoryFilm, StoryScene
from jobs.synthetic.world.script import FPS, HEIGHT_PX, WIDTH_PX, SpokenLine, subrip


def as_json(film: StoryFilm) -> dict[str, Any]:
    """Convert a film to plain data; times are those of the screen, in seconds, in the film's own order of shots."""
    return {
        "film": film.film,
        "seed": film.seed,
        "form": film.form,
        "width_px": WIDTH_PX,
        "height_px": HEIGHT_PX,
        "fps": FPS,
        "duration_s": film.duration_s,
        "scenes": [_scene_json(film, number, scene) for number, scene in enumerate(film.scenes)],
        "shots": _shots_json(film),
        "events": [_event_json(film, event, scene) for event, scene in film.events()],
        "texts": texts_on_screen(film),
        "spoken": [_line_json(film, index) for index in _spoken_order(film)],
        "names": {name: actor.name for actor, name in film.names.items()},
    }


def subtitles(film: StoryFilm) -> str:
    """Convert what is spoken to SubRip text, without the names of the speakers."""
    lines = [(*film.on_screen(film.lines[index].time)[0], film.lines[index].text) for index in _spoken_order(film)]
    return subrip([SpokenLine(*line) for line in lines])


def texts_on_screen(film: StoryFilm) -> list[dict[str, Any]]:
    """List the texts on screen in the order of time: title cards, and signs while wholly in view.

    `box` is left, top, right and bottom of the sign's board as fractions of the frame, None for a card, whose word is
    in the middle. Shots that follow each other and show a text in the same box are one row.
    """
    rows: list[dict[str, Any]] = []
    for shot, start_s in film.starts():
        end_s = start_s + shot.frames / FPS
        if shot.card is not None:
            rows.append({"text": shot.card.word, "kind": "title", **_times(start_s, end_s), "box": None})
        elif shot.scene is not None:
            setting = film.scenes[shot.scene].setting
            box = text_box(setting, shot.view)
            if box is None:
                continue
            row = {"text": setting.sign, "kind": "sign", **_times(start_s, end_s), "box": [round(x, 4) for x in box]}
            last = rows[-1] if rows else None
            if last and all(last[key] == row[key] for key in ("text", "box")) and last["end_s"] == row["start_s"]:
                last["end_s"] = row["end_s"]
            else:
                rows.append(row)
    return rows


def _times(start_s: float, end_s: float) -> dict[str, float]:
    return {"start_s": round(start_s, 4), "end_s": round(end_s, 4)}


def _ranges(ranges: list[Range]) -> list[list[float]]:
    return [[round(low, 4), round(high, 4)] for low, high in ranges]


def _setting_json(setting: Setting) -> dict[str, Any]:
    return {
        "place": setting.place,
        "night": setting.night,
        "landmark": setting.landmark.name,
        "sign": setting.sign,
    }


def _scene_json(film: StoryFilm, number: int, scene: StoryScene) -> dict[str, Any]:
    return {"scene": number, "ranges": _ranges(film.on_screen(scene.time)), **_setting_json(scene.setting)}


def _shots_json(film: StoryFilm) -> list[dict[str, Any]]:
    rows = []
    for shot, start_s in film.starts():
        row: dict[str, Any] = {**_times(start_s, start_s + shot.frames / FPS), "story_start_s": round(shot.time[0], 4)}
        if shot.card is not None:
            rows.append({**row, "title_card": shot.card.word})
        elif shot.scene is not None:
            view = [shot.view.left, shot.view.top, shot.view.width]
            rows.append({**row, "scene": shot.scene, "view": view, **_setting_json(film.scenes[shot.scene].setting)})
    return rows


def _event_json(film: StoryFilm, event: Event, scene: StoryScene) -> dict[str, Any]:
    ranges = film.on_screen(event.time)
    return {
        "kind": event.kind,
        "who": event.who.name,
        "what": event.what.name if event.what else None,
        "other": event.other.name if event.other else None,
        "scene": film.scenes.index(scene),
        "start_s": round(ranges[0][0], 4),
        "end_s": round(ranges[-1][1], 4),
        "ranges": _ranges(ranges),
        "moment": _ranges(film.on_screen(event.moment)),
        "back_at_s": None if event.back_at_s is None else round(_instant(film, event.back_at_s), 4),
    }


def _instant(film: StoryFilm, time_s: float) -> float:
    return film.on_screen((time_s, time_s + 1 / FPS))[0][0]


def _spoken_order(film: StoryFilm) -> list[int]:
    """Order the lines as they are heard."""
    return sorted(range(len(film.lines)), key=lambda index: film.on_screen(film.lines[index].time)[0])


def _line_json(film: StoryFilm, index: int) -> dict[str, Any]:
    line = film.lines[index]
    (start_s, end_s), *_ = film.on_screen(line.time)
    return {**_times(start_s, end_s), "text": line.text, "speaker": line.speaker}
