"""Stored frames as files in a folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from kinodex.jobs.errors import UsageError
from kinodex.output import print_json, say

if TYPE_CHECKING:
    from kinodex.index.rows import StoredFrame, VideoRow


def show_frames(row: VideoRow, frames: Iterable[StoredFrame], out: Path, as_json: bool) -> None:
    written = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for frame in frames:
            path = out / f"{row.video_id[:12]}_{frame.time_s:010.3f}.jpg"
            path.write_bytes(frame.jpeg)
            written.append({"path": str(path), "video_id": row.video_id, "time_s": frame.time_s})
    except OSError as error:
        raise UsageError(
            f"cannot write frames to {out}: {error.strerror}; give --out a folder you may write"
        ) from error
    if as_json:
        print_json(written)
        return
    for each in written:
        say(f"{each['path']}  {each['time_s']:.3f} s")
