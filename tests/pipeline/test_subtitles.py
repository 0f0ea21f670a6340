"""Sidecar files in any common encoding and embedded text tracks give the same plain lines."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kinodex.pipeline.decoding.open import probe
from kinodex.pipeline.errors import SubtitleError
from kinodex.pipeline.fetch import Source
from kinodex.pipeline.subtitles import Line, embedded_lines, read_subtitles, sidecar_lines
from tests.support.ffmpeg import ffmpeg, needs_ffmpeg

HELLO = [(1.0, 3.5, "Hello world!"), (5.0, 7.0, "This is a test."), (8.5, 10.0, "Goodbye!")]


def plain(lines: list[Line]) -> list[tuple[float, float, str]]:
    return [(round(line.start_s, 3), round(line.end_s, 3), line.text) for line in lines]


@pytest.mark.parametrize("name", ["mediabunny__test.srt", "mediabunny__test.vtt"])
def test_sidecars(media: Path, name: str) -> None:
    lines = sidecar_lines(str(media / "subs" / name))
    assert plain(lines) == HELLO
    assert {(line.source, line.language, line.speaker) for line in lines} == {("sidecar", None, None)}


def test_the_same_track_twice_gives_each_line_once(media: Path) -> None:
    path = media / "clips" / "torchcodec__nasa_13013.mp4"
    lines, errors = read_subtitles(path, Source(str(path), "nasa"), probe(path))
    assert errors == []
    assert len(lines) == len({line.text for line in lines}) == 4
    assert lines[0].text == "NAR: This is the optical and science segment of the Webb"


def test_webvtt_notes_are_not_spoken_and_voices_are_speakers(media: Path) -> None:
    lines = sidecar_lines(str(media / "subs" / "iandevlin__sintel-en.vtt"))
    assert len(lines) == 14
    assert (lines[0].text, lines[0].speaker) == ("[Test]", "Test")
    assert not any("NOTE" in line.text or "comment" in line.text for line in lines)
    assert lines[3].text == "You're a fool for traveling alone,\nso completely unprepared."


def test_webvtt_with_everything(tmp_path: Path) -> None:
    path = tmp_path / "film.en.vtt"
    path.write_text(
        "WEBVTT - title\n\nSTYLE\n::cue { color: red }\n\nintro\n00:01.000 --> 00:02.000 align:start\n"
        "<v.loud Mary Ann>Fish &amp; <i>chips</i></v>\n<v Bob>No</v>\n\nsecond cue\n00:03.000 --> 00:04.000\n"
        "<00:03.200><c.x>ka</c>raoke\n\n00:05.000 --> 00:06.000\n<i> </i>\n\nNOTE\nnot this --> nor that\n"
    )
    assert [(line.start_s, line.speaker, line.text, line.language) for line in sidecar_lines(str(path))] == [
        (1.0, "Mary Ann", "Fish & chips", "en"),
        (1.0, "Bob", "No", "en"),
        (3.0, None, "karaoke", "en"),
    ]


def test_ass_drops_overrides_drawings_and_comments(tmp_path: Path) -> None:
    path = tmp_path / "film.ass"
    path.write_text(
        "[Script Info]\nScriptType: v4.00+\n\n[V4+ Styles]\nFormat: Name, Fontname\nStyle: Default,Arial\n\n[Events]\n"
        "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
        "Dialogue: 0,0:00:01.00,0:00:02.50,Default,Hero,0,0,0,,{\\i1}Run{\\i0},\\Nnow!\n"
        "Comment: 0,0:00:03.00,0:00:04.00,Default,,0,0,0,,not spoken\n"
        "Dialogue: 0,0:00:05.00,0:00:06.00,Default,,0,0,0,,{\\p1}m 0 0 l 10 10{\\p0}\n"
    )
    assert sidecar_lines(str(path)) == [Line(1.0, 2.5, "Run,\nnow!", "sidecar", None, "Hero")]


def test_a_real_file_that_is_not_unicode(media: Path) -> None:
    lines = sidecar_lines(str(media / "subs" / "subtitleedit__auto_detect_windows-1250.srt"))
    assert len(lines) > 900
    assert lines[1].text == "Đino!"
    assert lines[2].text == "Đino, dođavola.\nDolazi ovamo!"


@pytest.mark.parametrize("content", [b"", b"just words", bytes(range(256)) * 20, b"PK\x03\x04" + b"\0" * 500])
def test_a_broken_sidecar_is_reported_and_the_rest_is_read(media: Path, tmp_path: Path, content: bytes) -> None:
    broken, good = tmp_path / "broken.srt", media / "subs" / "mediabunny__test.srt"
    broken.write_bytes(content)
    with pytest.raises(SubtitleError):
        sidecar_lines(str(broken))
    path = media / "clips" / "moviepy__chaplin.mp4"
    source = Source(str(path), "chaplin", (str(broken), str(tmp_path / "gone.srt"), str(good)))
    lines, errors = read_subtitles(path, source, probe(path))
    assert plain(lines) == HELLO
    assert len(errors) == 2
    assert all("\n" not in error for error in errors)


def test_random_damage_to_sidecars_is_a_subtitle_error_or_lines(media: Path, tmp_path: Path) -> None:
    dice, path = random.Random(3), tmp_path / "fuzzed.srt"
    ass = "[Script Info]\n[Events]\nFormat: Layer, Start, End, Text\nDialogue: 0,0:00:01.00,0:00:02.00,hi\n" * 3
    whole = [(media / "subs" / "iandevlin__sintel-en.vtt").read_bytes(), ass.encode()]
    whole.append((media / "subs" / "mediabunny__test.srt").read_bytes())
    readable = 0
    for round_ in range(300):
        data = bytearray(whole[round_ % 3])
        for _ in range(dice.randrange(1, 12)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        path.write_bytes(data)
        try:
            readable += bool(sidecar_lines(str(path)))
        except SubtitleError:
            continue
    assert readable > 100


@pytest.mark.parametrize(
    ("name", "shift_s", "language"),
    [("mkv-srt.mkv", 0.021, "eng"), ("mkv-ass.mkv", 0.021, "eng"), ("mov-tx3g.mov", 0, "eng"),
     ("mp4-webvtt.mp4", 0, "eng")],
)  # fmt: skip
def test_embedded_tracks(media: Path, name: str, shift_s: float, language: str) -> None:
    lines = embedded_lines(media / "awkward" / f"mediabunny__test-{name}", name)
    assert plain(lines) == [(round(a + shift_s, 3), round(b + shift_s, 3), text) for a, b, text in HELLO]
    assert {(line.source, line.language) for line in lines} == {("embedded", language)}


def test_a_file_without_text_has_no_lines(media: Path) -> None:
    assert embedded_lines(media / "clips" / "moviepy__chaplin.mp4", "chaplin") == []


WAVES = "{waves} at C:\\new, I <heart> it"


@needs_ffmpeg
@pytest.mark.parametrize(
    ("suffix", "codec", "text"),
    # ffmpeg reads ASS into what it writes as mov_text.
    [("mkv", "copy", WAVES), ("webm", "copy", WAVES), ("mp4", "mov_text", "{waves} at sea")],
)
def test_a_track_holds_the_text_that_a_sidecar_holds(tmp_path: Path, suffix: str, codec: str, text: str) -> None:
    """FFmpeg's own decoders make ASS of it, where text in braces would be markup."""
    sidecar, video = tmp_path / ("film.vtt" if suffix == "webm" else "film.srt"), tmp_path / f"film.{suffix}"
    header, point = ("WEBVTT\n\n", ".") if suffix == "webm" else ("1\n", ",")
    sidecar.write_text(f"{header}00:00:01{point}000 --> 00:00:02{point}000\n<b>{text}</b>\n")
    ffmpeg("-i", sidecar, "-c:s", codec, video)
    (line,) = embedded_lines(video, "film")
    assert (line.start_s, line.end_s, line.text) == (1.0, 2.0, text)


def test_a_file_that_is_too_long_is_an_error_before_it_is_read(tmp_path: Path, media: Path) -> None:
    path = tmp_path / "long.srt"
    with path.open("wb") as file:
        file.truncate(2**40)  # sparse
    with pytest.raises(SubtitleError, match=r"holds 1099512 MB of subtitles, more than the 16 MB"):
        sidecar_lines(str(path))
    clip = media / "clips" / "moviepy__chaplin.mp4"
    lines, errors = read_subtitles(clip, Source(str(clip), "chaplin", (str(path),)), probe(clip))
    assert (lines, len(errors)) == ([], 1)
