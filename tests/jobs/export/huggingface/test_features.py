"""Features: what `datasets` makes of the schema of the files is what the card says."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.datasets import (
    PRECISIONS,
    checked_precision,
    columns_read,
    parquet_schema,
    to_parquet_rows,
    yaml_features,
)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_schema_and_card_say_the_same(precision) -> None:
    datasets = pytest.importorskip("datasets")
    schema = parquet_schema(precision, 8)
    features = datasets.Features.from_arrow_schema(schema)
    assert features == datasets.Features._from_yaml_list(yaml_features(precision, 8))
    assert features.arrow_schema.remove_metadata() == schema.remove_metadata()


def test_a_jpeg_becomes_a_picture_with_a_name() -> None:
    row = {"video_id": "ab", "title": "t", "frame_no": 3, "time_s": 1.5, "width_px": 2, "height_px": 2, "jpeg": b"x"}
    table = to_parquet_rows(pa.Table.from_pylist([row]), parquet_schema("none", 8))
    assert table.to_pylist()[0]["image"] == {"bytes": b"x", "path": "ab-3.jpg"}


def test_a_precision_is_one_of_three() -> None:
    assert checked_precision("none") == "none" and "vector" not in columns_read("none")
    with pytest.raises(UsageError, match="got vectors 'int8'; give float16, float32, none"):
        checked_precision("int8")
