"""Text of cues: ASS rules for ASS alone, tags that players know elsewhere, and everything else stays as it is."""

from __future__ import annotations

import pytest

from kinodex.pipeline.subtitles import ass_text, split_voices, srt_voices

MANY = 150_000


@pytest.mark.parametrize("rules", [srt_voices, split_voices])
@pytest.mark.parametrize(
    ("cue", "text"),
    [
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
    ],
)
def test_only_known_tags_and_entities_are_markup(rules: type, cue: str, text: str) -> None:
    assert list(rules(cue)) == [(None, text)]


def test_a_cue_of_nothing_but_markup_is_left_out() -> None:
    assert list(split_voices("<b></b>&nbsp;")) == []


def test_voices_are_speakers() -> None:
    assert list(split_voices("<v.loud Mary &amp; Ann>Hi</v>\n<v Bob>No")) == [("Mary & Ann", "Hi"), ("Bob", "No")]


@pytest.mark.parametrize("code", [r"{\an8}", r"{\i1}", r"{\pos(10,20)}", r"{\c&HFFFFFF&\b1}", r"{\k20}"])
def test_codes_of_place_and_style_go_from_srt_where_players_follow_them(code: str) -> None:
    assert list(srt_voices(f"{code}top")) == [(None, "top")]
    assert list(split_voices(f"{code}top")) == [(None, f"{code}top")]


def test_a_path_in_braces_is_no_code() -> None:
    assert list(srt_voices(r"{\temp} and {\\server}")) == [(None, r"{\temp} and {\\server}")]


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (r"{\i1}Run{\i0},\Nnow!\hnow\nnow", "Run,\nnow! now\nnow"),
        (r"{comment}said", "said"),
        (r"{\p1}m 0 0 l 10 10{\p0}after", "after"),
        (r"{\p1}m 0 0{\an8} l 1 1", ""),
        (r"{\pos(1,2)}here", "here"),
        ("a {b", "a {b"),
        (r"\{shown\}{hidden}", "{shown}"),
        ("<i>no tag</i> &amp;", "<i>no tag</i> &amp;"),
    ],
)
def test_ass(event: str, text: str) -> None:
    assert ass_text(event) == text


@pytest.mark.parametrize("piece", ["<v ", "<v\t", "<b ", "<br ", "{", "{}", r"{\an8", r"{\pos(", "&#65", "<1", "<c."])
def test_repeated_openings_are_read_in_linear_time(piece: str) -> None:
    """A pattern that looks for its end from each of them takes minutes."""
    text = piece * (MANY // len(piece))
    assert len(list(srt_voices(text))) == 1
    assert len(list(split_voices("<v" + " " * MANY + text))) == 1
    assert ass_text(text) == ("" if "}" in piece else text.strip())
