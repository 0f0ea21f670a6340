"""`kinodex search`: find moments by words, by a picture, or by detections."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobs.cli.options.library import FromOption, JsonOption, LibraryArgument, ToOption, VideoOption

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from index.annotations.sentences import Meaning
    from index.library import Library

KINDS = ("both", "frames", "words", "transcript", "text", "captions", "chapters", "detections")


def search(
    library: LibraryArgument,
    query: Annotated[str, typer.Argument(help="What to look for, in words.")] = "",
    image: Annotated[Path | None, typer.Option(help="Search by this picture instead of words.")] = None,
    video: VideoOption = None,
    from_s: FromOption = None,
    to_s: ToOption = None,
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Number of hits.")] = 10,
    min_gap: Annotated[float, typer.Option(min=0.0, help="Least seconds between hits of one video.")] = 2.0,
    only: Annotated[
        str,
        typer.Option(
            help="frames (by embedding), words (said, on screen and captions, by words, and by meaning after `kinodex "
            "add sentences`), transcript (by words), text (on screen, by words, typos forgiven), captions (by words "
            "and meaning), chapters (by titles and summaries), detections (by label), or both: all but these two."
        ),
    ] = "both",
    label: Annotated[str | None, typer.Option(help="Only detections of this label.")] = None,
    min_score: Annotated[float, typer.Option(min=0.0, max=1.0, help="Least score of a detection.")] = 0.0,
    space: Annotated[
        str | None, typer.Option(help="Search frames in this space of the library, by its name or digest.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Find moments by words, by a picture, or by detections."""
    from index.library import Library
    from index.rows import Scope
    from jobs.console.output import show_hits

    opened = Library.open(library)
    only = _checked("detections" if label is not None and only == "both" else only, query, image, label, space)
    if only in ("captions", "chapters", "detections", "text"):
        _check_added(opened, only)
    ids = tuple(row.video_id for row in opened.videos_named(video)) if video else None
    scope = Scope(ids, from_s, to_s)
    if only == "detections":
        hits = opened.search.detections(label or query, min_score, scope, k=k, min_gap_s=min_gap)
    elif only == "words":
        hits = opened.search.words(query, scope, k=k, min_gap_s=min_gap, meaning=_meaning(opened, query))
    elif only == "transcript":
        hits = opened.search.transcript(query, scope, k=k, min_gap_s=min_gap)
    elif only == "text":
        hits = opened.search.screen_text(query, scope, k=k, min_gap_s=min_gap)
    elif only == "chapters":
        hits = opened.search.chapters(query, scope, k)
    elif only == "frames":
        vector = _vector(opened, query, image, space)
        hits = opened.search.frames(vector, scope, k=k, min_gap_s=min_gap, space=space)
    elif only == "captions":
        vector = _vector(opened, query, None, None)
        hits = opened.search.captions(query, vector, scope, k=k, min_gap_s=min_gap)
    else:
        vector, meaning = _vector(opened, query, None, space), _meaning(opened, query)
        hits = opened.search.hybrid(query, vector, scope, k=k, min_gap_s=min_gap, space=space, meaning=meaning)
    show_hits(hits, opened, as_json=json)


def _checked(only: str, query: str, image: Path | None, label: str | None, space: str | None) -> str:
    """Check that the options fit together, and return the kind to search; a picture searches frames."""
    from jobs.errors import UsageError

    if only not in KINDS:
        raise UsageError(f"got --only {only}; it is one of {', '.join(KINDS)}")
    if (image is not None or space is not None) and only not in ("both", "frames"):
        raise UsageError(f"got --only {only} with --image or --space, which search frames; leave one of them out")
    only = only if image is None else "frames"
    if label is not None and only != "detections":
        raise UsageError(f"got --label with a search of {only}; only detections have labels")
    if image is None and not query.strip() and not (label or "").strip():
        raise UsageError("got an empty query; give some words to look for, --label WORD, or --image FILE")
    return only


def _check_added(library: Library, stage: str) -> None:
    """Raise `UsageError` if a library has no rows of a stage, instead of finding nothing."""
    from jobs.errors import UsageError

    what, stage = ("text on screen" if stage == "text" else stage), ("summaries" if stage == "chapters" else stage)
    if all(added.stage != stage for added in library.info().added):
        raise UsageError(f"{library.uri} has no {what}; `kinodex add {stage}` makes it from what the library holds")


def _vector(library: Library, query: str, image: Path | None, space: str | None) -> NDArray[np.floating[Any]]:
    """Embed the query or the picture as a unit vector `[dim]` of a space of the library; None is its own."""
    from jobs.open_library import load_image_tower, load_text_tower

    vectors: NDArray[np.floating[Any]]
    if image is None:
        vectors = load_text_tower(library, space).embed_text([query])
    else:
        tower = load_image_tower(library, space)
        vectors = tower.embed(tower.prepare(_read_image(image))[None])
    vector: NDArray[np.floating[Any]] = vectors[0]
    return vector


def _meaning(library: Library, query: str) -> Meaning | None:
    """Embed the query by the library's sentence model, if it has one; say it where this machine cannot load it."""
    import sys

    meaning = library.sentences.meaning(query)
    if library.sentences.missing:
        print(f"note: lines are found by words alone: {library.sentences.missing}", file=sys.stderr)
    return meaning


def _read_image(path: Path) -> NDArray[np.uint8]:
    import numpy as np
    from PIL import Image, ImageOps

    from jobs.errors import UsageError

    try:
        with Image.open(path) as picture:
            return np.asarray(ImageOps.exif_transpose(picture).convert("RGB"))
    except (OSError, SyntaxError, ValueError) as error:
        raise UsageError(f"cannot read the picture {path}: {error}; give a JPEG, PNG or WebP file") from error
