"""The picture of a story film in docs/pictures: frames of one scene, from its title card on.

`python -m tests.support.pictures.story_sheet` draws it again.
"""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from kinodex.sketch.script import FPS
from kinodex.sketch.story import draw_frames, write_story

TARGET = Path("docs/pictures/sketch-story.png")
FILM, SECONDS, SEED = "film-01", 900.0, 2
COLUMNS, SIDE, GAP = 4, (320, 180), 4
TIMES = (0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88)


def main() -> None:
    """Draw frames of the first minutes beside each other."""
    film = write_story(FILM, SECONDS, SEED)
    sheet = Image.new(
        "RGB", (COLUMNS * (SIDE[0] + GAP) - GAP, -(-len(TIMES) // COLUMNS) * (SIDE[1] + GAP) - GAP), "white"
    )
    frames = {round(time_s * FPS) for time_s in TIMES}
    shown = [
        frame for number, frame in zip(range(max(frames) + 1), draw_frames(film), strict=False) if number in frames
    ]
    for number, frame in enumerate(shown):
        at = (number % COLUMNS * (SIDE[0] + GAP), number // COLUMNS * (SIDE[1] + GAP))
        sheet.paste(Image.fromarray(frame).resize(SIDE, Image.Resampling.LANCZOS), at)
    sheet.save(TARGET, optimize=True)


if __name__ == "__main__":
    main()
