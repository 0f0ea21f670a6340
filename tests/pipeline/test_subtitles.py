"""Sidecar files in any format and encoding, and embedded text tracks, give the same plain lines."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from kinodex.index.library import Library
from kinodex.pipeline.decoding.open import probe
from kinodex.pipeline.errors import SubtitleError
from kinodex.pipeline.source import Source
from kinodex.pipeline.subtitles.cues import Cue, parse_cues
from kinodex.pipeline.subtitles.encodings import decode_text
from kinodex.pipeline.subtitles.lines import Line, embedded_lines, read_subtitles, sidecar_lines, subtitle_lines
from kinodex.pipeline.subtitles.markup import ass_text, split_voices, srt_voices
from kinodex.pipeline.subtitles.repeated_cues import unrolled
from tests.support.command import Kinodex
from tests.support.ffmpeg import ffmpeg, needs_ffmpeg
from tests.support.models.stage_models import tiny_film
from tests.world.drawn_space import DRAWN

MANY = 150_000


def test_only_known_tags_and_entities_are_markup() -> None:
    for cue, text in (
        ('{"speaker": 1}', '{"speaker": 1}'),
        ("{hello} world", "{hello} world"),
        (r"C:\new\Network", r"C:\new\Network"),
        ("I <heart> you, <3 and <b>bold</b>", "I <heart> you, <3 and bold"),
        ("a < b and c > d", "a < b and c > d"),
        ("<font color='red'>  red </font>\n\n", "red"),
        ("<c.yellow>ka</c><00:01.500><c>ra</c>", "kara"),
        ("one<br>two<BR/>three", "one\ntwo\nthree"),
        ("Fish &amp;&nbsp;chips &#233; &unknown;", "Fish & chips é &unknown;"),
        ("&#" + "1" * 5000, "&#" + "1" * 5000),  # Python reads no number of more than 4300 digits
    ):
        assert list(srt_voices(cue)) == list(split_voices(cue)) == [(None, text)], cue
    assert list(split_voices("<b></b>&nbsp;")) == []
    assert list(split_voices("<v.loud Mary &amp; Ann>Hi</v>\n<v Bob>No")) == [("Mary & Ann", "Hi"), ("Bob", "No")]
    for code in (r"{\an8}", r"{\i1}", r"{\pos(10,20)}", r"{\c&HFFFFFF&\b1}", r"{\k20}"):
        assert list(srt_voices(f"{code}top")) == [(None, "top")], "players follow codes of place and style in SRT"
        assert list(split_voices(f"{code}top")) == [(None, f"{code}top")]
    assert list(srt_voices(r"{\temp} and {\\server}")) == [(None, r"{\temp} and {\\server}")]


@pytest.mark.slow
def test_long_texts_are_read_in_linear_time() -> None:
    """A pattern that looks for its end from each opening, line or digit takes minutes."""
    for piece in ("<v ", "<v\t", "<b ", "<br ", "{", "{}", r"{\an8", r"{\pos(", "&#65", "<1", "<c."):
        text = piece * (MANY // len(piece))
        assert len(list(srt_voices(text))) == len(list(split_voices("<v" + " " * MANY + text))) == 1, piece
        assert ass_text(text) == ("" if "}" in piece else text.strip()), piece
    for filler in ("\n" * 200_000, "[" + "a" * 200_000, "1" * 200_000, "1:1:1,1 " * 25_000):
        srt = f"1\n00:00:01,000 --> 00:00:02,000\na{filler}\nb\n\n2\n00:00:03,000 --> 00:00:04,000\nlast\n"
        assert list(parse_cues(srt))[-1] == Cue(3.0, 4.0, "last")
        assert len(list(parse_cues(ASS.format(columns=COLUMNS, event="0,0:0:1.0,0:0:2.0,,,0,0,0,,a") + filler))) == 1


ASS = (
    "[Script Info]\nScriptType: v4.00+\n\n[V4+ Styles]\nFormat: Name, Fontname\nStyle: Default,Arial\n\n[Events]\n"
    "Format: {columns}\nDialogue: {event}\n"
)


COLUMNS = "Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text"


def test_srt_with_everything_that_players_take() -> None:
    text = (
        "\ufeff1\r\n00:00:01,000 --> 00:00:02,5\r\n{\\an8}Hello\r\n\r\n- there\r\n\r\n2\r\n"
        "0:0:3.000 -> 00:00:04,000  X1:1\r\n\r\n3\r\n100:00:05,000 --> 100:00:06,000\r\nThe answer is\r\n42\r\n"
    )
    assert list(parse_cues(text)) == [
        Cue(1.0, 2.5, "Hello\n- there"),
        Cue(360_005.0, 360_006.0, "The answer is\n42"),
    ]


def test_ass_by_its_columns_and_what_is_no_subtitles() -> None:
    event = "0,0:00:01.00, 0:00:02.50,Default,Hero,0,0,0,,{\\i1}Run,\\Nnow{"
    for columns, line in ((COLUMNS, event), ("Start, End, Name, Text", "0:00:01.00,0:00:02.50,Hero,Run,\\nnow{")):
        assert list(parse_cues(ASS.format(columns=columns, event=line))) == [Cue(1.0, 2.5, "Run,\nnow{", "Hero")]
    with pytest.raises(ValueError, match="line 10 has no two times"):
        list(parse_cues(ASS.format(columns=COLUMNS, event="0,soon,later,Default,Hero,0,0,0,,Run")))
    for text in ("", "just words", "{1}{2}MicroDVD"):
        with pytest.raises(ValueError, match="no line with two times"):
            list(parse_cues(text))


SAMPLES = {
    "utf-8": "Où est la bibliothèque ? Je ne sais pas, elle était là-bas.",
    "utf-8-sig": "Où est la bibliothèque ? Je ne sais pas, elle était là-bas.",
    "utf-16": "Где находится библиотека? Я не знаю.",
    "utf-32": "Где находится библиотека? Я не знаю.",
    "cp1252": "Où est la bibliothèque ? Je ne sais pas, elle était là-bas hier, c’est très étrange à présent.",
    "cp1251": "Где находится библиотека? Я не знаю, вчера она была здесь, а сегодня её уже нет.",
    "shift_jis": "図書館はどこですか。私は知りません。昨日はここにありましたが、今日はもうありません。",
    "gb18030": "图书馆在哪里？我不知道。昨天它还在这里，可是今天已经没有了。",
    "euc_kr": "도서관은 어디에 있습니까? 저는 모릅니다. 어제는 여기 있었는데 오늘은 없습니다.",
}


def srt(text: str) -> str:
    return "".join(f"{i}\n00:00:0{i},000 --> 00:00:0{i},900\n{text}\n\n" for i in range(1, 6))


def test_text_is_decoded_whatever_its_encoding() -> None:
    for encoding, text in SAMPLES.items():
        assert decode_text(srt(text).encode(encoding)) == srt(text), encoding
    for encoding in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):  # without a mark
        for text in ("plain words", "Où est-il ?", "日本語の字幕はここにあります。"):
            assert decode_text(srt(text).encode(encoding)) == srt(text), encoding
    for mark, encoding in ((b"\xfe\xff", "utf-16-be"), (b"\0\0\xfe\xff", "utf-32-be")):
        assert decode_text(mark + "日本語".encode(encoding)) == "日本語"
    long = srt(SAMPLES["shift_jis"]) * 800  # recognised by its beginning
    assert decode_text(long.encode("shift_jis")) == long
    assert decode_text(bytes(range(256)) * 20) and decode_text(b"") == ""


HELLO = [(1.0, 3.5, "Hello world!"), (5.0, 7.0, "This is a test."), (8.5, 10.0, "Goodbye!")]


def plain(lines: list[Line]) -> list[tuple[float, float, str]]:
    return [(round(line.start_s, 3), round(line.end_s, 3), line.text) for line in lines]


def test_real_sidecars(media: Path) -> None:
    for name in ("mediabunny__test.srt", "mediabunny__test.vtt"):
        lines = sidecar_lines(str(media / "subs" / name))
        assert plain(lines) == HELLO
        assert {(line.source, line.language, line.speaker) for line in lines} == {("sidecar", None, None)}
    lines = sidecar_lines(str(media / "subs" / "iandevlin__sintel-en.vtt"))
    assert (len(lines), lines[0].text, lines[0].speaker) == (14, "[Test]", "Test")
    assert not any("NOTE" in line.text or "comment" in line.text for line in lines)
    assert lines[3].text == "You're a fool for traveling alone,\nso completely unprepared."
    lines = sidecar_lines(str(media / "subs" / "subtitleedit__auto_detect_windows-1250.srt"))
    assert len(lines) > 900
    assert (lines[1].text, lines[2].text) == ("Đino!", "Đino, dođavola.\nDolazi ovamo!")


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


def test_a_broken_sidecar_is_reported_and_the_rest_is_read(media: Path, tmp_path: Path) -> None:
    broken, good, long = tmp_path / "broken.srt", media / "subs" / "mediabunny__test.srt", tmp_path / "long.srt"
    with long.open("wb") as file:
        file.truncate(2**40)  # sparse
    with pytest.raises(SubtitleError, match=r"holds 1099512 MB of subtitles, more than the 16 MB"):
        sidecar_lines(str(long))
    path = media / "clips" / "moviepy__chaplin.mp4"
    metadata = probe(path)
    source = Source(str(path), "chaplin", (str(broken), str(tmp_path / "gone.srt"), str(long), str(good)))
    for content in (b"", b"just words", bytes(range(256)) * 20, b"PK\x03\x04" + b"\0" * 500):
        broken.write_bytes(content)
        with pytest.raises(SubtitleError):
            sidecar_lines(str(broken))
        lines, errors = read_subtitles(path, source, metadata)
        assert (plain(lines), len(errors)) == (HELLO, 3)
        assert all("\n" not in error for error in errors)


def test_random_damage_to_sidecars_is_a_subtitle_error_or_lines(media: Path, tmp_path: Path) -> None:
    dice, path = random.Random(3), tmp_path / "fuzzed.srt"
    ass = "[Script Info]\n[Events]\nFormat: Layer, Start, End, Text\nDialogue: 0,0:00:01.00,0:00:02.00,hi\n" * 3
    whole = [(media / "subs" / "iandevlin__sintel-en.vtt").read_bytes(), ass.encode()]
    whole.append((media / "subs" / "mediabunny__test.srt").read_bytes())
    readable = 0
    for round_ in range(90):
        data = bytearray(whole[round_ % 3])
        for _ in range(dice.randrange(1, 12)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        path.write_bytes(data)
        try:
            readable += bool(sidecar_lines(str(path)))
        except SubtitleError:
            continue
    assert readable > 30


TIMES = {
    "00:00:01 --> 00:00:03": (1.0, 3.0),
    "00:01,000 --> 00:03,5": (1.0, 3.5),
    "59:58.25 --> 01:00:05.000": (3598.25, 3605.0),
    "00:00:01:500 --> 00:00:03:250": (1.5, 3.25),
    "00: 00: 01, 000 --> 00 :00: 03 ,000": (1.0, 3.0),
    "00:00:01,5000 --> 00:00:03,0004": (1.5, 3.0),
    "-00:00:01,000 --> 00:00:03,000": (0.0, 3.0),
    "0:0:1.000 -> 00:00:03,000  X1:1 X2:9": (1.0, 3.0),
    "00:00:01,000 → 00:00:03,000": (1.0, 3.0),
    "00:00:01,000-->00:00:03,000 align:start position:0%": (1.0, 3.0),
}
STRICT = "7\n00:00:00,100 --> 00:00:00,900\nbefore\n\n8\n{}\nsaid\n\n9\n01:10:00,000 --> 01:10:01,000\nafter\n"
NO_TIMES = (
    "00:00:0x,000 --> 00:00:03,000",
    "soon --> later",
    "00:00:01:12 --> 00:00:03:20",
    "00:00:01,000 -->",
    "A --> B",
)


@pytest.mark.parametrize("head", ["", "WEBVTT\n\n"])
def test_times_in_any_form_are_read_beside_strict_ones_and_what_is_none_is_reported(head: str) -> None:
    for timing, (start_s, end_s) in TIMES.items():
        reported: list[str] = []
        lines = subtitle_lines((head + STRICT.format(timing)).encode(), "film.srt", report=reported.append)
        expected = [(0.1, 0.9, "before"), (start_s, end_s, "said"), (4200.0, 4201.0, "after")]
        assert (sorted(plain(lines)), reported) == (sorted(expected), []), timing
    for timing in NO_TIMES:
        reported = []
        lines = subtitle_lines((head + STRICT.format(timing)).encode(), "film.srt", report=reported.append)
        assert [line.text for line in lines] == ["before", "after"], timing
        (problem,) = reported
        assert problem.startswith(f"film.srt: line {6 + head.count(chr(10))} has no two times"), problem
        with pytest.raises(SubtitleError, match="has no two times"):
            subtitle_lines(f"{head}1\n{timing}\nsaid\n".encode(), "film.srt")
    text = STRICT.format("00:00:01,000 --> 00:00:03,000").replace("said", "a --> b")
    assert subtitle_lines((head + text).encode(), "film.srt")[1].text == "a --> b", "an arrow in a text is text"
    talk = STRICT.format("00:00:01,000 --> 00:00:03,000").replace("said", "between 10:15:30,100 and 10:15:31,200")
    assert subtitle_lines(talk.encode(), "film.srt")[1].text == "between 10:15:30,100 and 10:15:31,200"


SAID = [
    (0.08, 2.39, "welcome to the workshop today"),
    (2.40, 4.47, "we will build a wooden lantern"),
    (14.0, 16.2, "first we saw the cedar boards"),
    (16.21, 18.8, "then we sand every edge"),
]


def rolling() -> str:
    """Captions in two rows, as YouTube writes them by itself; the upper row is a space where speech begins anew."""
    out, upper, last_s = "WEBVTT\nKind: captions\n", " ", -9.0
    for start_s, end_s, text in SAID:
        upper = " " if start_s - last_s > 5 else upper
        timed = text.replace(" ", "<00:00:01.000><c> ", 1) + "</c>"
        out += f"\n00:{start_s:06.3f} --> 00:{end_s:06.3f} align:start position:0%\n{upper}\n{timed}\n"
        out += f"\n00:{end_s:06.3f} --> 00:{end_s + 0.01:06.3f} align:start position:0%\n{text}\n \n"
        upper, last_s = text, end_s
    return out


def test_captions_that_roll_up_are_each_said_once() -> None:
    lines = subtitle_lines(rolling().encode(), "talk.en.vtt")
    assert [(line.start_s, line.text) for line in lines] == [(start_s, text) for start_s, _, text in SAID]
    assert [line.end_s for line in lines] == pytest.approx([end_s + 0.01 for _, end_s, _ in SAID])
    rows = [(1.0, 2.0, "A\nB\nC"), (2.0, 3.0, "B\nC\nD"), (3.0, 4.0, "D"), (9.0, 9.5, "D"), (9.5, 11.0, "D\nE")]
    assert [tuple(cue)[:3] for cue in unrolled(Cue(*row) for row in rows)] == [
        (1.0, 2.0, "A\nB\nC"),
        (2.0, 4.0, "D"),
        (9.0, 9.5, "D"),
        (9.5, 11.0, "E"),
    ]
    assert len(unrolled([Cue(1.0, 2.0, "No.", "Ann"), Cue(2.0, 3.0, "No.", "Bob"), Cue(4.0, 5.0, "No.", "Bob")])) == 3


@needs_ffmpeg
def test_signs_set_anew_for_every_frame_are_one_line_in_a_file_and_in_a_track(tmp_path: Path) -> None:
    head, _, _ = ASS.format(columns=COLUMNS, event="").rpartition("Dialogue")
    frames = [
        f"Dialogue: 0,0:00:{at / 25:05.2f},0:00:{(at + 1) / 25:05.2f},Sign,,0,0,0,,{{\\pos({at},9)}}TO THE HARBOUR\n"
        for at in range(25, 75)
    ]
    said = "Dialogue: 0,0:00:01.50,0:00:02.50,Default,Ann,0,0,0,,This way.\n"
    sign, ann = (1.0, 3.0, "TO THE HARBOUR"), (1.5, 2.5, "This way.")
    path, film = tmp_path / "signs.ass", tmp_path / "film.mkv"
    path.write_text(head + "".join([said, *frames]))
    assert plain(sidecar_lines(str(path))) == [sign, ann]
    ffmpeg("-f", "lavfi", "-i", "color=red:s=64x64:r=5:d=4", "-i", path, "-c:s", "ass", film)
    assert sorted(plain(embedded_lines(film, "film"))) == [sign, ann]


@pytest.mark.slow
def test_what_a_sidecar_leaves_out_is_in_the_report_and_a_failure(kinodex: Kinodex, tmp_path: Path) -> None:
    film, library = tiny_film(tmp_path / "boat.mp4", 3, 0), tmp_path / "library"
    film.with_suffix(".srt").write_text(STRICT.format("soon --> later"))
    ran = kinodex("ingest", film, "--library", library, "--space", DRAWN, "--json")
    (outcome,) = json.loads(ran.out)["sources"]
    assert "boat.srt: line 6 has no two times" in outcome["problem"]
    assert [line.text for line in Library.open(str(library)).speech("boat")] == ["before", "after"]
    assert "line 6 has no two times" in kinodex("info", library).out
