"""Films of which some are the same: `python -m tests.support.duplicates.films FOLDER` makes them of ../shared/media.

Each base is a real clip; its copies are smaller and re-encoded, cut out of the middle, letterboxed, preceded by a title
card, played at 25/24 of its speed, mirrored, its two halves, and a part of a mix of three. Stills, black films and
title cards are there to mislead. FOLDER/parts.json tells of which seconds of which base each film is made.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

from tests.support import ffmpeg as tool

MEDIA = Path(__file__).parents[4] / "shared" / "media" / "clips"
BASES = {
    "sintel": ("moviepy__sintel_trailer_52s.mp4", 40.0),
    "bunny": ("moviepy__big_buck_bunny_0_30.webm", 30.0),
    "bottles": ("intel__bottle-detection.mp4", 36.0),
    "persons": ("intel__one-by-one-person-detection.mp4", 60.0),
    "cars": ("intel__car-detection.mp4", 30.0),
    "turtle": ("moviepy__clip1024.flv", 17.0),
    "bangkok": ("pixeltable__bangkok_half_res.mp4", 18.0),
    "deer": ("pyscenedetect__testvideo.mp4", 24.0),
    "bike": ("simpl__gbike_ride_31s.webm", 31.0),
    "tears": ("simpl__tears_of_steel_vp9.webm", 16.5),
    "dog": ("torchcodec__dog_eating_854132.mp4", 13.5),
    "nasa": ("torchcodec__nasa_13013.mp4", 16.5),
    "slides": ("video2dataset__test_video.mp4", 60.0),
}
TITLE_S, PIECE_S, STILL_S = 5.0, 8.0, 20.0
LEAST_S = 4.0
"""A pair of films is a true one if they share at least this many seconds."""
FRAME = "scale=320:180:force_original_aspect_ratio=decrease,pad=320:180:-1:-1,setsar=1,fps=24,format=yuv420p"
CONCAT = ("-filter_complex", "[0][1]concat=n=2:v=1:a=0", "-crf", 28)
X264 = ("-an", "-c:v", "libx264", "-preset", "ultrafast", "-threads", "1")


Argument = str | float | Path


def ffmpeg(*arguments: Argument) -> None:
    """Run ffmpeg with arguments that may be numbers."""
    tool.ffmpeg(*map(str, arguments))


@dataclass(frozen=True)
class Part:
    """Seconds of a base in a film: `length_s` of the base from `base_s` on, at `film_s` of the film, so much faster."""

    base: str
    base_s: float
    film_s: float
    length_s: float
    speed: float = 1.0
    mirrored: bool = False


@dataclass(frozen=True)
class TruePair:
    """Two films that share a part: a time t of the first is `speed * t + offset_s` of the second."""

    offset_s: float
    speed: float
    shared_s: float
    mirrored: bool


def true_pairs(parts: dict[str, list[Part]], least_s: float = LEAST_S) -> dict[tuple[str, str], TruePair]:
    """Each pair of films, in the order of their names, that share this many seconds of a base or more."""
    found = {}
    for one, other in combinations(sorted(parts), 2):
        for a in parts[one]:
            for b in (each for each in parts[other] if each.base == a.base):
                start, end = max(a.base_s, b.base_s), min(a.base_s + a.length_s, b.base_s + b.length_s)
                if end - start >= least_s:
                    speed = a.speed / b.speed
                    first, second = a.film_s + (start - a.base_s) / a.speed, b.film_s + (start - b.base_s) / b.speed
                    flipped = a.mirrored != b.mirrored
                    found[one, other] = TruePair(second - speed * first, speed, end - start, flipped)
    return found


def read_parts(folder: Path) -> dict[str, list[Part]]:
    films = json.loads((folder / "parts.json").read_text())
    return {name: [Part(**part) for part in parts] for name, parts in films.items()}


def make_films(folder: Path, bases: tuple[str, ...] = tuple(BASES)) -> dict[str, list[Part]]:
    """Make all films and `parts.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    films: dict[str, list[Part]] = {}
    for base in bases:
        films |= _copies(folder, base)
    for number in range(0, len(bases) - 2, 3):
        films |= _mix(folder, bases[number : number + 3])
    films |= _misleading(folder, bases)
    (folder / "parts.json").write_text(json.dumps({k: [asdict(part) for part in v] for k, v in films.items()}))
    return films


def _copies(folder: Path, base: str) -> dict[str, list[Part]]:
    name, length_s = BASES[base]
    source = folder / f"{base}_original.mp4"
    ffmpeg("-t", length_s, "-i", MEDIA / name, "-vf", FRAME, *X264, "-crf", 24, source)
    half, cut, middle = 0.48 * length_s, 0.3 * length_s + 0.37, 0.45 * length_s
    title = f"color=black:s=320x180:r=24:d={TITLE_S},drawtext=text='A film called {base}':fontcolor=white:x=60:y=80"
    copies: dict[str, tuple[list[Argument], Part]] = {
        "small": (["-i", source, "-vf", "scale=176:-2,fps=12", "-crf", 36], Part(base, 0, 0, length_s)),
        "cut": (["-ss", cut, "-t", middle, "-i", source, "-crf", 28], Part(base, cut, 0, middle)),
        "boxed": (["-i", source, "-vf", "pad=320:240:0:30,scale=240:180", "-crf", 30], Part(base, 0, 0, length_s)),
        "titled": (
            ["-f", "lavfi", "-i", f"{title},setsar=1,format=yuv420p", "-i", source, *CONCAT],
            Part(base, 0, TITLE_S, length_s),
        ),
        "faster": (["-i", source, "-vf", "setpts=PTS*24/25,fps=25", "-crf", 28], Part(base, 0, 0, length_s, 25 / 24)),
        "mirrored": (["-i", source, "-vf", "hflip", "-crf", 28], Part(base, 0, 0, length_s, mirrored=True)),
        "first": (["-t", half, "-i", source, "-crf", 28], Part(base, 0, 0, half)),
        "second": (["-ss", length_s - half, "-i", source, "-crf", 28], Part(base, length_s - half, 0, half)),
    }
    for kind, (arguments, _) in copies.items():
        ffmpeg(*arguments, *X264, folder / f"{base}_{kind}.mp4")
    return {f"{base}_original": [Part(base, 0, 0, length_s)]} | {
        f"{base}_{kind}": [part] for kind, (_, part) in copies.items()
    }


def _mix(folder: Path, bases: tuple[str, ...]) -> dict[str, list[Part]]:
    name = f"mix_{'_'.join(bases)}"
    inputs: list[Argument] = [
        each for base in bases for each in ("-ss", 3.4, "-t", PIECE_S, "-i", folder / f"{base}_original.mp4")
    ]
    joined: list[Argument] = ["-filter_complex", f"concat=n={len(bases)}:v=1:a=0", "-crf", 28]
    ffmpeg(*inputs, *joined, *X264, folder / f"{name}.mp4")
    return {name: [Part(base, 3.4, PIECE_S * place, PIECE_S) for place, base in enumerate(bases)]}


def _misleading(folder: Path, bases: tuple[str, ...]) -> dict[str, list[Part]]:
    """Stills of the bases, black films, and films of title cards, some of them with the same card."""
    for base in bases[:3]:
        still = folder / f"{base}.png"
        ffmpeg("-ss", 6, "-i", folder / f"{base}_original.mp4", "-frames:v", 1, still)
        ffmpeg("-loop", 1, "-t", STILL_S, "-i", still, "-vf", FRAME, *X264, folder / f"still_{base}.mp4")
        still.unlink()
    for name in ("black_one", "black_two"):
        ffmpeg("-f", "lavfi", "-i", f"color=black:s=320x180:r=24:d={STILL_S}", *X264, folder / f"{name}.mp4")
    for name, texts in {"cards_one": ("THE END", "PART ONE"), "cards_two": ("PART TWO", "THE END")}.items():
        cards = [
            f"color=black:s=320x180:r=24:d=8,drawtext=text='{text}':fontcolor=white:fontsize=36:x=60:y=70"
            for text in texts
        ]
        inputs = [each for card in cards for each in ("-f", "lavfi", "-i", card)]
        ffmpeg(*inputs, "-filter_complex", "concat=n=2:v=1:a=0", *X264, folder / f"{name}.mp4")
    names = [f"still_{base}" for base in bases[:3]]
    return {name: [] for name in (*names, "black_one", "black_two", "cards_one", "cards_two")}


if __name__ == "__main__":
    print(len(make_films(Path(sys.argv[1]))), "films")
