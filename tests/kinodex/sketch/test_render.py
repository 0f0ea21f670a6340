"""A rendered film has the exact times of its script, its dissolves and its motion."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np

from kinodex.sketch.scenes import Group, Scene, TitleCard
from kinodex.sketch.script import (
    FPS,
    HEIGHT_PX,
    WIDTH_PX,
    Script,
    Shot,
    draw_frames,
    render_film,
    subtitles,
    write_script,
)


def test_encoded_times_are_the_scripts(films: Path) -> None:
    """Every shot's first frame is at start_s in the file, shows the shot, and the next shot begins at end_s."""
    script = write_script("film-02", 30, 3)
    with av.open(str(films / "film-02.mp4")) as container:
        frames = list(container.decode(video=0))
    times = [frame.time for frame in frames]
    assert times == [number / FPS for number in range(len(times))]
    assert len(times) == round(script.duration_s * FPS)
    for shot, following in zip(script.shots, [*script.shots[1:], None], strict=True):
        assert shot.start_s in times
        assert following is None or following.start_s == shot.end_s
    for frame, drawn in zip(frames, draw_frames(script), strict=True):
        assert np.abs(frame.to_ndarray(format="rgb24").astype(int) - drawn).mean() < 8


def test_dissolves_fades_and_motion_are_drawn() -> None:
    red, blue = (Scene(place, groups=(Group("ball", "red"),)) for place in ("desert", "city"))
    script = Script(
        "film",
        0,
        (
            Shot(0, 24, red, "right"),
            Shot(24, 24, blue, entry="dissolve"),
            Shot(48, 24, TitleCard("ECHO"), entry="black"),
        ),
    )
    frames = [frame.astype(float) for frame in draw_frames(script)]
    assert len(frames) == 72 and frames[0].shape == (HEIGHT_PX, WIDTH_PX, 3)
    moved = [np.abs(frame - frames[0]).mean() for frame in frames[:24]]
    assert moved[23] > moved[6] > 0
    assert np.abs(frames[24] - frames[23]).mean() < np.abs(frames[30] - frames[23]).mean()
    assert frames[48].mean() < frames[60].mean()


def test_a_film_of_one_shot_is_encoded(tmp_path: Path) -> None:
    script = Script("film", 0, (Shot(0, 30, TitleCard("ECHO")),))
    render_film(script, tmp_path / "film.mp4")
    with av.open(str(tmp_path / "film.mp4")) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.width, stream.height) == ("h264", WIDTH_PX, HEIGHT_PX)
        assert sum(1 for _ in container.decode(stream)) == 30
    assert subtitles(script) == ""
