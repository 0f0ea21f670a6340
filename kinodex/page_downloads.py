"""Videos of pages of the web, fetched by yt-dlp (the extra `watch`)."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kinodex.jobs.errors import UsageError
from kinodex.pipeline.errors import SourceForbidden, SourceUnreachable
from kinodex.redaction import redact_uri

MOST_HEIGHT_PX = 720
"""Of what is fetched: a frame is stored smaller than that, and embedded smaller still."""
REFUSALS = {
    "drm": "is protected by DRM, which no program may open; give a video that may be downloaded",
    "private": "is private; sign in in a browser, download the file yourself, and give that to `kinodex ingest`",
    "sign in": "is shown to those who sign in; download the file yourself, and give that to `kinodex ingest`",
    "log in": "is shown to those who log in; download the file yourself, and give that to `kinodex ingest`",
    "members": "is for members; download the file yourself, and give that to `kinodex ingest`",
    "unsupported url": "is a page in which yt-dlp finds no video; give the address of the video's own page or file",
}
"""What to say for words of yt-dlp's error."""


def download(address: str, folder: Path) -> Path:
    """Fetch the video of a page with its subtitles and what the page says of it; returns the video's file."""
    import yt_dlp

    joins = shutil.which("ffmpeg") is not None
    best = f"[height<=?{MOST_HEIGHT_PX}]"
    settings: dict[str, Any] = {
        "format": f"bv*{best}+ba/b{best}/bv*/b" if joins else f"b{best}/b/bv*",
        "outtmpl": str(folder / "%(title).80B [%(id).40B].%(ext)s"),
        "noplaylist": True,
        "writeinfojson": True,
        "writesubtitles": True,
        "subtitleslangs": ["all", "-live_chat"],
        "quiet": True,
        "noprogress": True,
        "no_warnings": True,
        "logger": _Silent(),
    }
    try:
        with yt_dlp.YoutubeDL(settings) as client:
            found = client.extract_info(address, download=False)
            _check_fetchable(found, address)
            done = client.process_ie_result(found, download=True)
    except yt_dlp.utils.DownloadError as error:
        raise refusal(address, str(error.msg)) from error
    return Path(done["requested_downloads"][0]["filepath"])


class _Silent:
    """A logger that says nothing: what matters is raised."""

    def debug(self, message: str) -> None: ...

    def warning(self, message: str) -> None: ...

    def error(self, message: str) -> None: ...


def _check_fetchable(found: Mapping[str, Any], address: str) -> None:
    shown = redact_uri(address)
    if "entries" in found:
        raise UsageError(f"{shown} lists several videos; give the address of one of them")
    if found.get("is_live") or found.get("live_status") in ("is_live", "is_upcoming"):
        raise UsageError(f"{shown} is a live broadcast; give it once it has ended and can be fetched as a whole")


def refusal(address: str, said: str) -> Exception:
    shown, plain = redact_uri(address), said.lower()
    for words, why in REFUSALS.items():
        if words in plain:
            return SourceForbidden(f"{shown} {why}")
    reason = redact_uri(said.removeprefix("ERROR: ").splitlines()[0][:200])
    return SourceUnreachable(f"cannot fetch {shown}: {reason}")
