"""Decode text of unknown encoding."""

from __future__ import annotations

SAMPLE_BYTES = 1 << 18
MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe\0\0", "utf-32"), (b"\0\0\xfe\xff", "utf-32"),
         (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))  # fmt: skip
"""Byte order marks and what they say; that of UTF-32 begins like that of UTF-16."""
WIDE = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
ALWAYS_THERE = ("-->", "WEBVTT", "Dialogue:")
"""Every subtitle file holds one of these."""


def decode_text(data: bytes) -> str:
    """Decode a subtitle file's bytes: by a byte order mark, else as UTF-8, else in the likeliest encoding.

    UTF-16 and UTF-32 without a mark are known by what every subtitle file holds. Of encodings that are equally likely
    it is Windows-1252, the commonest; likelihood is charset-normalizer's, by the first 256 KiB.
    """
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    if b"\0" in data[:SAMPLE_BYTES] and (text := _wide_text(data)) is not None:
        return text
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode(_likeliest(data), errors="replace")


def _wide_text(data: bytes) -> str | None:
    """Decode UTF-16 or UTF-32 without a byte order mark; None if it is neither."""
    for encoding in WIDE:
        text = data.decode(encoding, errors="replace")
        if any(word in text for word in ALWAYS_THERE):
            return text
    return None


def _likeliest(data: bytes) -> str:
    from charset_normalizer import from_bytes

    sample = data
    if len(data) > SAMPLE_BYTES:  # whole lines: a character that is cut in half would rule its encoding out
        sample = data[: data.rfind(b"\n", 0, SAMPLE_BYTES) + 1 or SAMPLE_BYTES]
    matches = from_bytes(sample)
    best = matches.best()
    if best is None:
        return "cp1252"
    ties = {match.encoding for match in matches if (match.chaos, match.coherence) == (best.chaos, best.coherence)}
    return "cp1252" if "cp1252" in ties else best.encoding
