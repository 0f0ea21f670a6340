"""`kinodex info`, `report`, `search` and `frames`: looking into a library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from index.library import Library
    from index.rows import Hit, Scope

LibraryArgument = Annotated[str, typer.Argument(help="The library: a folder or any URI that LanceDB takes.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
VideoOption = Annotated[
    list[str] | None,
    typer.Option("--video", help="Only this video: its id (or the first digits), title or file. May be repeated."),
]
FromOption = Annotated[float | None, typer.Option("--from", help="Only from this time on, in seconds.")]
ToOption = Annotated[float | None, typer.Option("--to", help="Only before this time, in seconds.")]


def info(
    library: LibraryArgument,
    limit: Annotated[int, typer.Option(min=0, help="Videos and failures shown of each at most; 0: all.")] = 100,
    json: JsonOption = False,
) -> None:
    """What a library holds: videos, counts, spaces, settings, failures."""
    from index.library import Library
    from jobs.show import show_library

    show_library(Library.open(library), limit or None, as_json=json)


def report(
    library: LibraryArgument,
    run: Annotated[str | None, typer.Option(help="Only this run: its id, or the first digits of it.")] = None,
    json: JsonOption = False,
) -> None:
    """What the runs that wrote a library did, how long it took, and where the time went."""
    from index.library import Library
    from jobs.report import show_runs

    show_runs(Library.open(library), run, as_json=json)


def search(
    library: LibraryArgument,
    query: Annotated[str, typer.Argument(help="What to look for, in words.")] = "",
    image: Annotated[Path | None, typer.Option(help="Search by this picture instead of words.")] = None,
    video: VideoOption = None,
    from_s: FromOption = None,
    to_s: ToOption = None,
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Number of hits.")] = 10,
    min_gap: Annotated[float, typer.Option(min=0.0, help="Least seconds between hits of one video.")] = 2.0,
    only: Annotated[str, typer.Option(help="both, frames (by embedding) or transcript (by words).")] = "both",
    json: JsonOption = False,
) -> None:
    """Find moments by words or by a picture, over frames and transcript."""
    from index.library import Library
    from index.rows import Scope
    from jobs.show import show_hits

    opened = Library.open(library)
    ids = tuple(opened.video(name).video_id for name in video) if video else None
    hits = _search(opened, query, image, Scope(ids, from_s, to_s), k, min_gap, only)
    show_hits(hits, opened, as_json=json)


def _search(
    library: Library, query: str, image: Path | None, scope: Scope, k: int, min_gap_s: float, only: str
) -> list[Hit]:
    from index.spaces import load_space
    from jobs.errors import UsageError

    if only not in ("both", "frames", "transcript"):
        raise UsageError(f"got --only {only}; it is both, frames or transcript")
    if image is None and not query.strip():
        raise UsageError("got an empty query; give some words to look for, or --image FILE")
    if image is not None:
        tower = load_space(library.space_name, towers="image")
        library.check_space(tower.fingerprint)
        vector = tower.embed(tower.prepare(_read_image(image))[None])[0]
        return library.search_frames(vector, scope, k=k, min_gap_s=min_gap_s)
    if only == "transcript":
        return library.search_transcript(query, scope, k=k)
    tower = load_space(library.space_name, towers="text")
    library.check_space(tower.fingerprint)
    vector = tower.embed_text([query])[0]
    if only == "frames":
        return library.search_frames(vector, scope, k=k, min_gap_s=min_gap_s)
    return library.search(query, vector, scope, k=k, min_gap_s=min_gap_s)


def _read_image(path: Path) -> NDArray[np.uint8]:
    import numpy as np
    from PIL import Image, UnidentifiedImageError

    from jobs.errors import UsageError

    try:
        with Image.open(path) as picture:
            return np.asarray(picture.convert("RGB"))
    except (OSError, UnidentifiedImageError) as error:
        raise UsageError(f"cannot read the picture {path}: {error}; give a JPEG, PNG or WebP file") from error


def frames(
    library: LibraryArgument,
    video: Annotated[str, typer.Option(help="The video: its id (or the first digits), title or file.")],
    at: Annotated[list[float], typer.Option(help="A time in seconds; may be repeated.")],
    out: Annotated[Path, typer.Option(help="Folder for the JPEGs.")] = Path("frames"),
    mode: Annotated[str, typer.Option(help="nearest, exact, or shown (the frame on screen at that time).")] = "nearest",
    json: JsonOption = False,
) -> None:
    """Write stored frames as JPEG files."""
    from index.library import Library
    from jobs.errors import UsageError
    from jobs.show import show_frames

    if mode not in ("nearest", "exact", "shown"):
        raise UsageError(f"got --mode {mode}; it is nearest, exact or shown")
    opened = Library.open(library)
    row = opened.video(video)
    stored = opened.frames_at(row.video_id, at, mode=mode)
    show_frames(row, stored, out, as_json=json)
