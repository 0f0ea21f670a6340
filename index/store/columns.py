"""Columns of tables: required ones, and those of a key."""

from __future__ import annotations

import pyarrow as pa


def required(name: str, kind: pa.DataType) -> pa.Field:
    """Make a column without nulls."""
    return pa.field(name, kind, nullable=False)


def key(name: str, position: int) -> pa.Field:
    """Make a column of the primary key, without which concurrent upserts of one row leave it there twice."""
    marks = {
        "lance-schema:unenforced-primary-key": "true",
        "lance-schema:unenforced-primary-key:position": str(position),
    }
    return pa.field(name, pa.string(), nullable=False, metadata=marks)
