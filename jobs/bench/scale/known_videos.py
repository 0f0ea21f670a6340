"""Videos that a made-up library has already, as a run over a million of them finds it: rows, and no frames."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from index.library import Library
from pipeline.sources.fetch import Source, Stamp

AT_ONCE = 100_000


def add_known(library: Library, count: int) -> None:
    """Write rows of so many complete videos and of their sources, 100,000 a commit."""
    for first in range(0, count, AT_ONCE):
        _add(library, [known_source(number) for number in range(first, min(first + AT_ONCE, count))], first)


def known_source(number: int) -> Source:
    """The source of the known video of this number, with the stamp that a listing gives."""
    uri = f"s3://bucket/films/of/some/folder/{number:08d}.mp4"
    return Source(uri, f"film {number}", stamp=Stamp(100_000_000 + number, f"{number:032x}"))


def _add(library: Library, sources: list[Source], first: int) -> None:
    now = datetime.now(UTC)
    ids = [f"{number * 2654435761 % 2**64:032x}" for number in range(first, first + len(sources))]
    stamps = [source.stamp for source in sources if source.stamp is not None]
    uris = [source.uri for source in sources]
    video = {
        "start_s": 0.0, "duration_s": 0.0, "fps": 25.0, "width_px": 16, "height_px": 9, "codec": "none", "frames": 0,
        "segments": 0, "transcript_lines": 0, "decode_errors": 0, "sample_fps": 1.0, "space": library.space_name,
        "state": "complete", "ingested_at": now, "digests": None,
    }  # fmt: skip
    columns = {"video_id": ids, "uri": uris, "title": uris} | {name: [each] * len(ids) for name, each in video.items()}
    library.tables.append("videos", pa.table(columns, schema=library.tables.schema("videos")))
    known = {
        "uri": uris, "video_id": ids, "size_bytes": [each.size_bytes for each in stamps],
        "stamp": [each.mark for each in stamps], "seen_at": [now] * len(ids),
    }  # fmt: skip
    library.tables.append("sources", pa.table(known, schema=library.tables.schema("sources")))
