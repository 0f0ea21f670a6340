"""Play in a browser: the choice of how it plays a file, with the reason in words.

A file is played as it is, repacked, or converted as it streams. The table of the choice is that of docs/viewer.md,
"Playing". It holds what Chromium, Firefox and Safari agree on, from their own lists of formats (developer.mozilla.org,
"Media container formats" and "Web video codec guide"), and was tried with real files in Chromium.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kinodex.pipeline.media.facts import MediaFacts

Way = Literal["file", "remuxed", "transcoded"]

MP4_CONTAINER, WEBM_CONTAINER = "mp4", "webm"
NAMES = {
    "h264": "H.264",
    "hevc": "HEVC (H.265)",
    "vp8": "VP8",
    "vp9": "VP9",
    "av1": "AV1",
    "mpeg4": "MPEG-4 part 2",
    "mpeg2video": "MPEG-2",
    "mpeg1video": "MPEG-1",
    "prores": "ProRes",
    "vc1": "VC-1",
    "wmv2": "Windows Media Video",
    "wmv3": "Windows Media Video",
    "ac3": "AC-3",
    "eac3": "E-AC-3",
    "dts": "DTS",
    "vorbis": "Vorbis",
    "opus": "Opus",
    "aac": "AAC",
    "mp3": "MP3",
    "flac": "FLAC",
}
IN_MP4 = frozenset({"h264", "av1", "vp9"})
IN_WEBM = frozenset({"vp8", "vp9", "av1"})
SOUND_IN_MP4 = frozenset({"aac", "mp3", "opus", "flac"})
SOUND_IN_WEBM = frozenset({"opus", "vorbis"})
PLAIN = frozenset({"yuv420p", "yuvj420p"})
"""Eight bits, every second pixel with colour: the only H.264 pictures that all browsers show."""


@dataclass(frozen=True, slots=True)
class Playable:
    way: Way
    why: str
    mime: str


def playable(facts: MediaFacts, can_hevc: bool = False, failed: frozenset[str] = frozenset()) -> Playable:
    """Choose the least work that makes a file play; `can_hevc` is what this browser says of itself.

    `failed` are ways that this browser has tried in vain: then the next one is chosen, the last of all "transcoded".
    """
    codec_why = _codec_problem(facts, can_hevc)
    if codec_why is not None:
        return Playable("transcoded", codec_why, "video/mp4")
    container_why = _container_problem(facts)
    is_copied = facts.codec in IN_MP4 or facts.codec == "hevc"
    if container_why is None and "file" not in failed:
        return Playable("file", _plain(facts), f"video/{container_of(facts.container)}")
    why = container_why or "this browser did not play the file itself"
    if not is_copied or "remuxed" in failed:
        return Playable("transcoded", why, "video/mp4")
    return Playable("remuxed", why, "video/mp4")


def container_of(format_name: str) -> str | None:
    """Return "mp4" or "webm" for a container of those families by FFmpeg's name; None for any other."""
    names = format_name.split(",")
    return MP4_CONTAINER if "mp4" in names else WEBM_CONTAINER if "webm" in names else None


def plays_by_name(codec: str, suffix: str) -> bool:
    """Guess by the codec and the suffix of a name that browsers play a file: all there is to go by without PyAV."""
    if suffix.lower() in (".mp4", ".m4v", ".mov"):
        return codec in IN_MP4
    return suffix.lower() in (".webm", ".mkv") and codec in IN_WEBM


def _codec_problem(facts: MediaFacts, can_hevc: bool) -> str | None:
    name = NAMES.get(facts.codec, facts.codec)
    if facts.codec == "hevc" and not can_hevc:
        return "HEVC (H.265) plays only in browsers with a licensed or built-in decoder, and this one has none"
    if facts.codec not in IN_MP4 | IN_WEBM | {"hevc"}:
        return f"browsers have no decoder for {name}"
    if facts.interlaced:
        return "it is interlaced (every picture is two halves of lines), which browsers show with combs at moving edges"
    if facts.codec == "h264" and facts.pix_fmt not in PLAIN:
        kind = "ten bits a colour" if "10" in facts.pix_fmt else "more colour than usual"
        return f"it is H.264 with {kind} ({facts.pix_fmt}), which some browsers do not decode"
    return None if facts.has_times else "its packets do not say when they are shown"


def _container_problem(facts: MediaFacts) -> str | None:
    kind = container_of(facts.container)
    if not facts.is_first_video:
        return "it has several video tracks, and browsers play the first one, which is not the one that was indexed"
    if kind is None:
        return f"browsers do not open this kind of file ({facts.container.split(',')[0].upper()})"
    codecs, sounds = (IN_MP4 | {"hevc"}, SOUND_IN_MP4) if kind == MP4_CONTAINER else (IN_WEBM, SOUND_IN_WEBM)
    if facts.codec not in codecs:
        return f"browsers do not expect {NAMES.get(facts.codec, facts.codec)} in this kind of file (Matroska)"
    if facts.sound is not None and facts.sound not in sounds:
        return f"browsers have no decoder for its sound there ({NAMES.get(facts.sound, facts.sound)})"
    return None


def _plain(facts: MediaFacts) -> str:
    names = [NAMES.get(each, each) for each in (facts.codec, facts.sound) if each is not None]
    hdr = ", in high dynamic range, which looks as this screen shows it" if facts.hdr else ""
    return f"browsers play {' with '.join(names)} in this kind of file{hdr}"
