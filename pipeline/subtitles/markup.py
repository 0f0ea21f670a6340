"""Text of one subtitle cue without its markup: by the rules of ASS for ASS, of SRT and WebVTT for these.

Every pass is linear in the length of the text, whatever it holds: no pattern here looks past the next bracket.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

# Tags that players know, of WebVTT (W3C, section 3.2) and of SRT (no standard; what FFmpeg and VLC take).
NAMES = "b|i|u|s|font|em|strong|strike|span|br|c|v|lang|ruby|rt"
TAG = re.compile(rf"</?(?:{NAMES})(?:[.\s/][^<>]*)?>|<(?:\d+:)?\d\d:\d\d[.,]\d\d\d>", re.IGNORECASE)
BREAK = re.compile(r"<br(?:[\s/][^<>]*)?>", re.IGNORECASE)
VOICE = re.compile(r"<v(?:\.[^\s<>]*)?\s([^<>]*)>")  # WebVTT: <v.loud Mary>
# No number is longer than Python reads.
ENTITY = re.compile(r"&(?:#\d{1,7}(?!\d)|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});?")
# Codes of ASS for place and style that SRT files carry as well, because most players follow them there: {\an8}.
SRT_CODE = re.compile(r"\{\\(?:(?:an?|[biusq]|[kK][fo]?|f(?:s|r[xyz]?)|bord|shad|blur|be)-?[\d.]|[1-4]?(?:c|a|alpha)&"
                      r"|(?:pos|move|fade?|org|i?clip)\()[^{}]*\}")  # fmt: skip
DRAWING = re.compile(r"\\p(\d+)")


def srt_voices(text: str) -> Iterator[tuple[str | None, str]]:
    """Split a cue of SRT as `split_voices` does; codes of place and style in braces go, other text in braces stays."""
    return split_voices(SRT_CODE.sub("", text))


def split_voices(text: str) -> Iterator[tuple[str | None, str]]:
    """Split a cue of WebVTT into (speaker, plain text) of each voice; leaves out empty text.

    Known tags are removed and entities resolved; unknown tags, braces and backslashes are text.
    """
    opening, *voices = VOICE.split(text)
    for speaker, words in [("", opening), *zip(voices[::2], voices[1::2], strict=True)]:
        plain = tidy(_resolve(TAG.sub("", BREAK.sub("\n", words))))
        if plain:
            yield _resolve(speaker).strip() or None, plain


def ass_voices(text: str) -> Iterator[tuple[str | None, str]]:
    """Yield the plain text of an ASS or SSA event, unless there is none; its speaker is not in it."""
    if words := ass_text(text):
        yield None, words


def ass_text(text: str) -> str:
    """Strip the text of an ASS or SSA event of override blocks and drawings; its codes for breaks become these.

    A brace without its partner is text, and so is one after a backslash, as in libass.
    """
    shown: list[str] = []
    position, drawing = 0, False
    while (opening := text.find("{", position)) >= 0:
        escaped = text[opening - 1 : opening] == "\\"
        closing = opening if escaped else text.find("}", opening)
        if closing < 0:
            break
        if not drawing:
            shown.append(text[position : opening - 1] + "{" if escaped else text[position:opening])
        if modes := DRAWING.findall(text, opening, closing):
            drawing = modes[-1].strip("0") != ""
        position = closing + 1
    if not drawing:
        shown.append(text[position:])
    plain = "".join(shown)
    for code, meaning in ((r"\N", "\n"), (r"\n", "\n"), (r"\h", " "), (r"\}", "}")):
        plain = plain.replace(code, meaning)
    return tidy(plain)


def tidy(text: str) -> str:
    """Strip each line of white space; empty lines go, and spaces that do not break become ordinary ones."""
    return "\n".join(line.strip() for line in text.replace("\xa0", " ").splitlines() if line.strip())


def _resolve(text: str) -> str:
    return ENTITY.sub(lambda match: html.unescape(match.group()), text)
