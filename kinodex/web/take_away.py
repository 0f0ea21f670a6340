"""Routes that hand moments of one video to other programs: a clip, subtitles, an edit list, a table.

A clip is cut by `kinodex export clips` in a process of its own: whatever a broken file does to a decoder, the server
lives on. One is cut at a time, and no longer than its client waits for it.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from kinodex.extras import missing_package
from kinodex.index.errors import QueryError
from kinodex.index.library import Library
from kinodex.index.times import parse_time
from kinodex.jobs.child_processes import child_environment
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.edits import edl_text, otio_text
from kinodex.jobs.export.file_names import file_stem, time_stem
from kinodex.jobs.export.frame_rate import frame_rate
from kinodex.jobs.export.moments import Moment
from kinodex.jobs.export.subtitles import srt_text, vtt_text
from kinodex.jobs.export.tables import csv_text, jsonl_text
from kinodex.server.responses import (
    FORBIDDEN_ELSEWHERE,
    SAFE,
    NotGiven,
    Refused,
    answering,
    numbered,
    numbered_route,
    unless_left,
)

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MOST_RANGES = 100
MOST_CLIP_S = 600.0
"""Seconds of all ranges of a clip together: a page should not keep a server busy for hours."""
CUT_S = 900.0
"""Seconds after which a cut is given up."""
LONGEST_LABEL = 2000
PROGRAM = """from kinodex.pipeline.child_limits import end_with_parent
from kinodex.cli.main import main
end_with_parent()
main()
"""

Text = Callable[[Sequence[Moment]], str]


def _edl(moments: Sequence[Moment]) -> str:
    return edl_text(moments, frame_rate([moments[0].video], None, None, standard=True), moments[0].video.title)


def _otio(moments: Sequence[Moment]) -> str:
    return otio_text(moments, frame_rate([moments[0].video], None, None), moments[0].video.title)


TEXTS: dict[str, tuple[str, Text]] = {
    "vtt": ("text/vtt", vtt_text),
    "srt": ("application/x-subrip", srt_text),
    "edl": ("text/plain", _edl),
    "otio": ("application/json", _otio),
    "csv": ("text/csv", csv_text),
    "jsonl": ("application/jsonl", jsonl_text),
}
"""Kinds that are one text: media type, and the text of moments."""


class CutFailed(Refused):
    """A clip that could not be cut."""


def take_away_routes(libraries: Sequence[Library]) -> list[Any]:
    from starlette.responses import Response

    turn = asyncio.Semaphore(1)

    async def export(request: Request) -> Response:
        library, kind = numbered(libraries, request.path_params["library"], "library"), request.path_params["kind"]
        if kind != "clip" and kind not in TEXTS:
            raise NotGiven(f"got kind {kind!r}; it is one of clip, {', '.join(TEXTS)}")
        moments = _moments(library, kind, request)  # here: the caches of a library belong to this thread
        name = f"{file_stem(moments[0].video.title)}_{time_stem(moments[0].start_s)}"
        if kind == "clip":
            return await unless_left(request, _clip(library, moments, f"{name}.mp4", turn))
        media_type, text = TEXTS[kind]
        try:
            content = text(moments)
        except ModuleNotFoundError as error:
            raise missing_package(error) from error
        return Response(content, headers=_headers(f"{name}.{kind}"), media_type=media_type)

    return [numbered_route("/data/libraries/{library:number}/export/{kind}", answering(export))]


def _moments(library: Library, kind: str, request: Request) -> list[Moment]:
    """Read the moments of a request; without ranges it is the whole video, and subtitles are the transcript."""
    query = request.query_params
    video_id, label = query.get("video", ""), query.get("label", "")[:LONGEST_LABEL]
    if not library.has_video(video_id):
        raise NotGiven(f"got video {video_id[:80]!r}, which the library does not hold; give its id")
    video = library.video(video_id)
    parts = [part for part in query.get("ranges", "").split(",") if part]
    if len(parts) > MOST_RANGES:
        raise UsageError(f"got {len(parts)} ranges; at most {MOST_RANGES} are taken")
    given = [Moment(video, *_range(part), label) for part in parts] or [
        Moment(video, video.start_s, video.end_s, label)
    ]
    moments = [cut for each in given if (cut := each.within(None, None))]
    if kind in ("vtt", "srt") and not label:
        lines = (line for each in moments for line in library.speech(video_id, each.start_s, each.end_s))
        moments = [
            Moment(video, line.start_s, line.end_s, line.text, None, "speech", line.speaker)
            for line in dict.fromkeys(lines)
        ]
    if not moments:
        raise NotGiven("there is nothing to take away: the ranges lie outside the video, or nothing is said there")
    return moments


def _range(part: str) -> tuple[float, float]:
    start, _, end = part.partition("-")
    try:
        start_s, end_s = parse_time(start), parse_time(end)
    except QueryError:
        raise UsageError(f"got range {part[:40]!r}; write it as 12.5-20 or 0:12.5-0:20") from None
    if not start_s < end_s:
        raise UsageError(f"got range {part[:40]!r}; its end has to come after its beginning")
    return start_s, end_s


async def _clip(library: Library, moments: Sequence[Moment], name: str, turn: asyncio.Semaphore) -> Response:
    from starlette.background import BackgroundTask
    from starlette.responses import FileResponse

    seconds = sum(each.end_s - each.start_s for each in moments)
    if seconds > MOST_CLIP_S:
        raise UsageError(
            f"got ranges of {seconds / 60:.0f} minutes; a page gets clips of {MOST_CLIP_S / 60:.0f}: "
            "use `kinodex export clips` for longer ones"
        )
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="kinodex-clip-"))
    try:
        async with turn:
            path = await _cut(library.uri, moments, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    clean = BackgroundTask(shutil.rmtree, folder, ignore_errors=True)
    return FileResponse(path, headers=_headers(name), media_type="video/mp4", background=clean)


async def _cut(library: str, moments: Sequence[Moment], folder: Path) -> Path:
    """Cut the moments in a process of its own, which ends with this call; raises CutFailed."""
    rows = [{"video": each.video.video_id, "start_s": each.start_s, "end_s": each.end_s} for each in moments]
    ranges, out = folder / "ranges.jsonl", folder / "out"
    ranges.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    exported = ["export", "clips", library, str(out), "--ranges", str(ranges), "--reel"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-c", PROGRAM, *exported),
        stdin=PIPE,  # which ends it when it is closed, so not by `communicate`
        stdout=DEVNULL,
        stderr=PIPE,
        env=child_environment(),
    )
    assert process.stderr is not None
    try:
        errors = await asyncio.wait_for(process.stderr.read(), CUT_S)
        await process.wait()
    except TimeoutError:
        raise CutFailed(f"the clip was not cut within {CUT_S / 60:.0f} minutes; choose a shorter range") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    films = sorted(out.glob("*.mp4"))
    if not films:
        lines = errors.decode(errors="replace").strip().splitlines() or ["the program that cuts ended early"]
        raise CutFailed(f"the clip cannot be cut: {lines[-1].removeprefix('error: ')[:500]}")
    return films[0]


def _headers(name: str) -> dict[str, str]:
    """Headers of a file to keep, by RFC 6266: a plain name, and the whole one for clients that know its form."""
    plain = name.encode("ascii", "replace").decode().replace("?", "_")
    disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
    return SAFE | {"content-security-policy": FORBIDDEN_ELSEWHERE, "content-disposition": disposition}
