"""Files that are no video say so in one line; of a video, the right stream and its metadata as displayed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline.decoding.open import probe
from pipeline.errors import (
    EmptyFile,
    NotAVideo,
    NoVideoStream,
    PipelineError,
    SourceForbidden,
    SourceMissing,
)
from tests.support.ffmpeg import ffmpeg, needs_ffmpeg

BROKEN = {
    "mediabunny__multiple-aac-tracks.mp4": NoVideoStream,
    "mediabunny__segment.mp4": NotAVideo,
    "mediabunny__vorbis-eos.ogg": NoVideoStream,
    "moviepy__doc_medias_result.webm": EmptyFile,
    "moviepy__with-attached-pic.mp3": NoVideoStream,
    "pixeltable__bad_video.mp4": NotAVideo,
}


def test_no_broken_file_is_forgotten(media: Path) -> None:
    broken = set()
    for path in (media / "awkward").iterdir():
        try:
            probe(path)
        except PipelineError:
            broken.add(path.name)
    assert broken == set(BROKEN)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_say_what_they_are_in_one_line(media: Path, name: str) -> None:
    with pytest.raises(BROKEN[name]) as caught:
        probe(media / "awkward" / name)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.stage == "open"


def test_the_larger_stream_is_chosen_and_never_cover_art(media: Path) -> None:
    metadata = probe(media / "clips" / "torchcodec__nasa_13013.mp4")
    assert (metadata.stream_index, metadata.width_px, metadata.height_px) == (3, 480, 270)
    metadata = probe(media / "awkward" / "subtitleedit__sample_MP4_SRT.mp4")
    assert (metadata.stream_index, metadata.codec, metadata.has_audio) == (1, "mpeg4", True)


@needs_ffmpeg
def test_a_video_with_cover_art_gives_the_video(media: Path, tmp_path: Path) -> None:
    video, cover, both = media / "clips" / "moviepy__chaplin.mp4", tmp_path / "cover.png", tmp_path / "both.mp4"
    ffmpeg("-f", "lavfi", "-i", "color=red:size=2000x1000", "-frames:v", "1", cover)
    ffmpeg("-i", cover, "-i", video, "-map", "0", "-map", "1:v", "-c:v:0", "png", "-c:v:1", "copy",
           "-disposition:v:0", "attached_pic", both)  # fmt: skip
    metadata = probe(both)
    assert (metadata.codec, metadata.width_px) == ("h264", 640)


@pytest.mark.parametrize(
    ("name", "size"),
    [("decord__video_90.mov", (320, 568)), ("mediabunny__rotate-buck-bunny.mp4", (1080, 1920)),
     ("decord__video_180.mov", (568, 320)), ("mediabunny__sar_2x1.mp4", (1280, 360))],
)  # fmt: skip
def test_facts_are_as_displayed(media: Path, name: str, size: tuple[int, int]) -> None:
    metadata = probe(media / "awkward" / name)
    assert (metadata.width_px, metadata.height_px) == size


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("text.mp4", b"these are only words\n" * 500, NotAVideo),
        ("subtitles.mp4", b"1\n00:00:01,000 --> 00:00:02,000\nHello\n\n" * 50, NoVideoStream),
        ("playlist.mp4", b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n/etc/hostname\n#EXT-X-ENDLIST\n", NotAVideo),
        ("page.mp4", b"<!DOCTYPE html><html><body>404 not found</body></html>" * 20, NotAVideo),
        ("odd:name.mp4", b"\x00" * 5000, NotAVideo),
        ("zero.mp4", b"", EmptyFile),
    ],
)
def test_files_that_are_no_video(tmp_path: Path, name: str, content: bytes, error: type[PipelineError]) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(error):
        probe(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing, match="no such file"):
        probe(tmp_path / "nothing.mp4")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(media: Path, tmp_path: Path) -> None:
    path = tmp_path / "locked.mp4"
    path.write_bytes((media / "awkward" / "pyscenedetect__counter.mp4").read_bytes())
    path.chmod(0)
    with pytest.raises(SourceForbidden):
        probe(path)
