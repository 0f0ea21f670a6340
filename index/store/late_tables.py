"""Tables that a library gets once something needs them: libraries that were made without them stay as they are.

Readers take a table that is not there for one without rows. `sentences_*` tables, one for each model of sentences, come
late as well (`index.annotations.sentences`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict

import pyarrow as pa

from index.embedding.fingerprint import Fingerprint
from index.store.database import Tables
from index.store.schema import SPACE_KEY, key, required

LIKENESS_KEY = b"kinodex.likeness"
"""Metadata of a table of sentences: the cosines of texts that have nothing in common (`sentences.likeness`)."""

CLIPS = pa.schema(
    [
        key("video_id", 1),
        key("model", 2),
        key("part", 3),  # start_s and end_s as a text, since a key of floats never matches
        required("start_s", pa.float64()),
        required("end_s", pa.float64()),
        required("text", pa.string()),
        pa.field("confidence", pa.float64()),
        required("frames", pa.int32()),  # that the model was shown
    ]
)

SCREEN_TEXT = pa.schema(
    [
        required("video_id", pa.string()),
        required("start_s", pa.float64()),
        required("end_s", pa.float64()),
        required("text", pa.string()),  # the best of its readings
        required("confidence", pa.float32()),
        required("box", pa.list_(pa.float32(), 4)),  # x0, y0, x1, y1, each 0 to 1
        required("frames", pa.int32()),  # in which it was read
        pa.field("language", pa.string()),
        required("model", pa.string()),
    ]
)

SCENES = pa.schema(
    [
        required("video_id", pa.string()),
        required("level", pa.string()),  # scene, chapter
        required("number", pa.int32()),
        required("start_s", pa.float64()),
        required("end_s", pa.float64()),
        required("first_segment", pa.int32()),
        required("segments", pa.int32()),
        required("title", pa.string()),
        required("text", pa.string()),  # its summary
        required("model", pa.string()),
    ]
)

SPEAKERS = pa.schema(
    [
        key("speaker", 1),  # speaker-3
        pa.field("name", pa.string()),  # that a person gave it
        required("vector", pa.list_(pa.float32(), 256)),  # the mean voice, unit length
        required("seconds", pa.float64()),  # of speech in the mean
        required("model", pa.string()),
    ]
)

LATE_TABLES = {"clips": CLIPS, "screen_text": SCREEN_TEXT, "scenes": SCENES, "speakers": SPEAKERS}


def sentences_schema(fingerprint: Fingerprint, likeness: Mapping[str, float]) -> pa.Schema:
    """Make the schema of lines as vectors of a sentence model; its metadata holds the model's identity."""
    return pa.schema(
        [
            required("video_id", pa.string()),
            required("source", pa.string()),  # transcript, text, caption
            required("start_s", pa.float64()),
            required("end_s", pa.float64()),
            required("text", pa.string()),
            pa.field("model", pa.string()),  # that wrote the text
            required("vector", pa.list_(pa.float16(), fingerprint.dim)),
        ],
        metadata={
            SPACE_KEY: json.dumps(asdict(fingerprint), sort_keys=True),
            LIKENESS_KEY: json.dumps(dict(likeness), sort_keys=True),
        },
    )


def present(tables: Tables, names: Iterable[str]) -> list[str]:
    """Those of some tables that the library has."""
    return [name for name in names if name not in LATE_TABLES or tables.has(name)]
