"""`kinodex ingest`, `info`, `search` and `frames`: making a library and looking into it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from index.library import Library
    from index.rows import Hit, Scope
    from pipeline.sources import Source

LibraryArgument = Annotated[str, typer.Argument(help="The library: a folder or any URI that LanceDB takes.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
VideoOption = Annotated[
    list[str] | None,
    typer.Option("--video", help="Only this video: its id (or the first digits), title or file. May be repeated."),
]
FromOption = Annotated[float | None, typer.Option("--from", help="Only from this time on, in seconds.")]
ToOption = Annotated[float | None, typer.Option("--to", help="Only before this time, in seconds.")]


def ingest(
    sources: Annotated[list[str], typer.Argument(help="Video files, folders, globs, or fsspec URIs.")],
    library: Annotated[str, typer.Option(help="The library to make or to add to.")],
    space: Annotated[
        str | None,
        typer.Option(
            help="Embedding space: MODEL/PRETRAINED of open_clip, hf-hub:ID, local-dir:PATH, ARCH/CHECKPOINT, "
            "or builtin (knows only the sketch world). Default: the library's own, else ViT-B-32-SigLIP2-256/webli."
        ),
    ] = None,
    fps: Annotated[
        float | None, typer.Option(help="Frames sampled a second. Default: the library's own, else 1.")
    ] = None,
    jpeg_side: Annotated[
        int | None,
        typer.Option(help="Longest side of stored frames in px. Default: the library's own, else 512."),
    ] = None,
    device: Annotated[str, typer.Option(help="Where the model runs: auto, cpu, cuda.")] = "auto",
    local: Annotated[bool, typer.Option("--local", help="In this process (so far the only way).")] = True,
    json: JsonOption = False,
) -> None:
    """Index videos: sampled frames, their embeddings, shots and subtitles. Run again, it does only what is new."""
    from rich.console import Console

    from index.library import Library
    from index.spaces import load_space
    from jobs.errors import OK, SOME_FAILED
    from jobs.ingest import ingest as run
    from jobs.progress import progress_bar
    from jobs.settings import ingest_plan, library_settings
    from jobs.show import show_report
    from pipeline.sources import list_sources

    found = list_sources(sources)
    settings, space_name = ingest_plan(library, fps, jpeg_side, space)
    video_s = total_video_s(found)
    tower = load_space(space_name, device=device, towers="image")
    opened = Library.open_or_create(library, library_settings(settings), tower.fingerprint)
    with progress_bar(Console(stderr=True), video_s) as watch:
        report = run(found, opened, tower, settings, watch)
    show_report(report, opened, as_json=json)
    raise typer.Exit(SOME_FAILED if report.count("failed") else OK)


def total_video_s(sources: list[Source]) -> float | None:
    """Seconds of video in local sources as their headers claim, or None if some source does not say."""
    from pipeline.decode import probe
    from pipeline.errors import PipelineError

    total = 0.0
    for source in sources:
        try:
            claimed_s = probe(Path(source.uri)).claimed_duration_s if "://" not in source.uri else None
        except PipelineError:
            continue  # it will be a failure row with its reason; here only the time left is at stake
        if claimed_s is None:
            return None
        total += claimed_s
    return total


def info(library: LibraryArgument, json: JsonOption = False) -> None:
    """What a library holds: videos, counts, spaces, settings, failures."""
    from index.library import Library
    from jobs.show import show_library

    show_library(Library.open(library), as_json=json)


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
