"""Text is decoded whatever its encoding, with a byte order mark and without."""

from __future__ import annotations

import pytest

from kinodex.pipeline.subtitles import decode_text

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
NO_MARK = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")


def srt(text: str) -> str:
    return "".join(f"{i}\n00:00:0{i},000 --> 00:00:0{i},900\n{text}\n\n" for i in range(1, 6))


@pytest.mark.parametrize("encoding", SAMPLES)
def test_encodings(encoding: str) -> None:
    assert decode_text(srt(SAMPLES[encoding]).encode(encoding)) == srt(SAMPLES[encoding])


@pytest.mark.parametrize("encoding", NO_MARK)
@pytest.mark.parametrize("text", ["plain words", "Où est-il ?", "日本語の字幕はここにあります。"])
def test_wide_encodings_without_a_mark(encoding: str, text: str) -> None:
    assert decode_text(srt(text).encode(encoding)) == srt(text)


@pytest.mark.parametrize(("mark", "encoding"), [(b"\xfe\xff", "utf-16-be"), (b"\0\0\xfe\xff", "utf-32-be")])
def test_marks_of_the_other_byte_order(mark: bytes, encoding: str) -> None:
    assert decode_text(mark + "日本語".encode(encoding)) == "日本語"


def test_a_long_file_is_recognised_by_its_beginning() -> None:
    text = srt(SAMPLES["shift_jis"]) * 800
    assert len(text.encode("shift_jis")) > 2**18
    assert decode_text(text.encode("shift_jis")) == text


def test_bytes_that_are_no_text_decode_to_something() -> None:
    assert decode_text(bytes(range(256)) * 20)
    assert decode_text(b"") == ""
