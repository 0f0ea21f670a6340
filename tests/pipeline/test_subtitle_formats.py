"""Files of every format give their cues; what looks like another format's rules is text."""

from __future__ import annotations

import pytest

from kinodex.pipeline.subtitles import Cue, parse_cues

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


def test_a_number_that_is_said_alone_stays() -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\n7\n\n2\n00:00:03,000 --> 00:00:04,000\n8\n"
    assert [cue.text for cue in parse_cues(text)] == ["7", "8"]


def test_webvtt_keeps_a_number_at_the_end_of_a_cue() -> None:
    text = "WEBVTT\n\nname\n00:01.000 --> 1:00:02.00 align:start\nroom\n42\n\nNOTE\nno --> no\n\n00:03.0 --> x\nlost\n"
    assert list(parse_cues(text)) == [Cue(1.0, 3602.0, "room\n42")]


def test_cues_that_are_json_are_text() -> None:
    """A track of metadata: every cue of it stands in braces."""
    cues = "".join(f'00:{i:02}.000 --> 00:{i:02}.900\n{{"n": {i}}}\n\n' for i in range(40))
    assert [cue.text for cue in parse_cues(f"WEBVTT\n\n{cues}")] == [f'{{"n": {i}}}' for i in range(40)]


@pytest.mark.parametrize(
    ("columns", "event"),
    [
        (COLUMNS, "0,0:00:01.00, 0:00:02.50,Default,Hero,0,0,0,,{\\i1}Run,\\Nnow{"),
        ("Start, End, Name, Text", "0:00:01.00,0:00:02.50,Hero,Run,\\nnow{"),
    ],
)
def test_ass_by_its_columns(columns: str, event: str) -> None:
    assert list(parse_cues(ASS.format(columns=columns, event=event))) == [Cue(1.0, 2.5, "Run,\nnow{", "Hero")]


def test_an_event_without_times_is_named() -> None:
    with pytest.raises(ValueError, match="line 10 has no two times"):
        list(parse_cues(ASS.format(columns=COLUMNS, event="0,soon,later,Default,Hero,0,0,0,,Run")))


@pytest.mark.parametrize("text", ["", "just words", "{1}{2}MicroDVD"])
def test_other_text_is_no_subtitles(text: str) -> None:
    with pytest.raises(ValueError, match="no line with two times"):
        list(parse_cues(text))


@pytest.mark.parametrize("filler", ["\n" * 200_000, "[" + "a" * 200_000, "1" * 200_000, "1:1:1,1 " * 25_000])
def test_long_files_are_read_in_linear_time(filler: str) -> None:
    """A pattern that starts again at each of their lines or digits takes minutes."""
    srt = f"1\n00:00:01,000 --> 00:00:02,000\na{filler}\nb\n\n2\n00:00:03,000 --> 00:00:04,000\nlast\n"
    assert list(parse_cues(srt))[-1] == Cue(3.0, 4.0, "last")
    assert len(list(parse_cues(ASS.format(columns=COLUMNS, event="0,0:0:1.0,0:0:2.0,,,0,0,0,,a") + filler))) == 1
