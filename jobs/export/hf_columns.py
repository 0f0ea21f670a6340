"""Columns of the exported frames, as Parquet has them and as Hugging Face `datasets` knows them.

Named `Sequence` in the metadata, which versions 2 to 5 of `datasets` read; version 4 renamed it to `List`.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from kinodex.jobs.export.hf_settings import Precision

IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
PLAIN = {
    "video_id": "string",
    "title": "string",
    "frame_no": "int32",
    "time_s": "float64",
    "width_px": "int32",
    "height_px": "int32",
}
"""The columns without pictures and vectors, with their types."""


def parquet_schema(precision: Precision, dim: int) -> pa.Schema:
    """Make the schema of the files, whose metadata tells `datasets` which column is a picture."""
    fields = [pa.field(name, pa.type_for_alias(kind)) for name, kind in PLAIN.items()]
    fields.append(pa.field("image", IMAGE))
    if precision != "none":
        fields.append(pa.field("vector", pa.list_(pa.type_for_alias(precision), dim)))
    known = json.dumps({"info": {"features": _features(precision, dim)}})
    return pa.schema(fields, metadata={"huggingface": known})


def _features(precision: Precision, dim: int) -> dict[str, Any]:
    features: dict[str, Any] = {name: {"dtype": kind, "_type": "Value"} for name, kind in PLAIN.items()}
    features["image"] = {"_type": "Image"}
    if precision != "none":
        number = {"dtype": precision, "_type": "Value"}
        features["vector"] = {"feature": number, "length": dim, "_type": "Sequence"}
    return features


def yaml_features(precision: Precision, dim: int) -> list[dict[str, Any]]:
    """List the same features as the head of a dataset's card has them."""
    features: list[dict[str, Any]] = [{"name": name, "dtype": kind} for name, kind in PLAIN.items()]
    features.append({"name": "image", "dtype": "image"})
    if precision != "none":
        features.append({"name": "vector", "sequence": precision, "length": dim})
    return features


def to_parquet_rows(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Turn rows of the library into rows of the files: the JPEG with a file name as a picture."""
    numbers = zip(table["video_id"].to_pylist(), table["frame_no"].to_pylist(), strict=True)
    paths = pa.array([f"{video_id}-{frame_no}.jpg" for video_id, frame_no in numbers], pa.string())
    picture = pa.StructArray.from_arrays([table["jpeg"].combine_chunks(), paths], fields=list(IMAGE))
    columns = [picture if name == "image" else table[name].cast(schema.field(name).type) for name in schema.names]
    return pa.Table.from_arrays(columns, schema=schema)
