"""A digest is that of values: the same in any order, files and layout, another as soon as a bit is another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from kinodex.index.videos.writer import as_text, digests_by_video, row_hashes

WORD = pa.struct([("text", pa.string()), ("start_s", pa.float64())])
SCHEMA = pa.schema(
    [
        ("video_id", pa.string()),
        ("frame_no", pa.int32()),
        ("time_s", pa.float64()),
        ("text", pa.string()),
        ("model", pa.string()),
        ("crc", pa.uint32()),
        ("vector", pa.list_(pa.float16(), 3)),
        ("words", pa.list_(WORD)),
        ("when", pa.timestamp("us", tz="UTC")),
    ]
)
ROW: dict[str, Any] = {
    "video_id": "aaaa",
    "frame_no": 7,
    "time_s": 0.0,
    "text": "हाथी",
    "model": None,
    "crc": 2**32 - 1,
    "vector": [np.float16(each) for each in (0.5, -0.25, 6e4)],
    "words": [{"text": "one", "start_s": 1.0}, {"text": "two", "start_s": 2.0}],
    "when": 5,
}


def table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([ROW | row for row in rows], schema=SCHEMA)


def one(**changes: Any) -> int:
    return row_hashes(table(changes))[0]


CHANGES: list[dict[str, Any]] = [
    {"video_id": "aaab"},
    {"frame_no": 8},
    {"frame_no": None},
    {"time_s": -0.0},
    {"time_s": float("nan")},
    {"time_s": np.nextafter(0.0, 1.0)},
    {"text": "हाथ"},
    {"text": ""},
    {"text": None},
    {"model": ""},
    {"model": "हाथी", "text": None},
    {"crc": 2**32 - 2},
    {"vector": None},
    {"vector": [np.float16(each) for each in (-0.5, -0.25, 6e4)]},
    {"vector": [np.float16(each) for each in (0.5, -0.25, np.nan)]},
    {"words": None},
    {"words": []},
    {"words": ROW["words"][:1]},
    {"words": ROW["words"][::-1]},
    {"words": [{"text": "onet", "start_s": 1.0}, {"text": "wo", "start_s": 2.0}]},
    {"words": [{"text": "one", "start_s": 1.0}, {"text": "two", "start_s": None}]},
    {"when": 6},
]


def test_any_other_value_is_another_row_every_payload_of_nan_too() -> None:
    for changes in CHANGES:
        assert one() == one() != one(**changes), changes
    bits = np.array([0x7E00, 0x7E01, 0xFE00], np.uint16).view(np.float16)
    assert len({one(vector=[bit, bit, bit]) for bit in bits}) == 3


ROWS = [{"frame_no": n, "text": f"line {n}", "model": None if n % 2 else "m"} for n in range(40)]


LAYOUTS: list[Callable[[pa.Table], Any]] = [
    lambda rows: rows.take(pa.array(np.random.default_rng(0).permutation(40))),
    lambda rows: pa.concat_tables([rows.slice(0, 7), rows.slice(7, 1), rows.slice(8)]),
    lambda rows: pa.concat_tables([table(*ROWS[:3]), rows.slice(3)]).select(sorted(SCHEMA.names)),
    lambda rows: rows.append_column("later", pa.nulls(40, pa.list_(pa.string()))),
    lambda rows: rows.append_column("jpeg", pa.array([b"a picture"] * 40)).append_column(
        "digests", pa.array(["{}"] * 40)
    ),
    lambda rows: rows.combine_chunks().to_batches()[0],
]


def test_the_same_rows_in_another_layout_have_the_same_digest() -> None:
    for laid_out in LAYOUTS:
        assert digests_by_video(laid_out(table(*ROWS))) == digests_by_video(table(*ROWS))


def test_digests_of_parts_add_up_by_video() -> None:
    rows = table(*ROWS, *({"video_id": "bbbb", "frame_no": n} for n in range(3)))
    parts = digests_by_video(rows.slice(0, 11)) + digests_by_video(rows.slice(11))
    whole = digests_by_video(rows)
    assert parts == whole
    assert set(whole) == {"aaaa", "bbbb"}
    assert digests_by_video(table(*ROWS, ROWS[0])) != digests_by_video(table(*ROWS))  # a row that is there twice


def test_a_digest_is_written_as_128_bits() -> None:
    assert as_text(0) == "0" * 32
    assert as_text((1 << 128) + 255) == "0" * 30 + "ff"
