"""Files of predictions, in the forms in which they are handed out: a question's id and its prediction.

- JSON: an object of predictions by id (EgoSchema's submissions), a list of objects, or an object that holds such a
  list under a name such as "predictions";
- JSON lines, such as the items that lmms-eval logs (`doc`, `filtered_resps`; its `target` is the truth);
- CSV, TSV and parquet, such as VLMEvalKit's results (`index`, `prediction`; its `answer` is the truth).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.items import BadRow
from kinodex.jobs.eval.row_files import csv_rows, json_file, json_lines, parquet_rows, tsv_rows
from kinodex.jobs.eval.rows import Raw

ID_FIELDS = ("question_id", "item_id", "q_uid", "uid", "qid", "id", "index")
"""Names of a question's id. NExT-QA's questions are numbered by video: their ids are joined of `video` and `qid`."""
PREDICTION_FIELDS = ("prediction", "pred", "pred_answer", "response", "filtered_resps", "resps", "option", "answer")
"""Names of a prediction, the surest first: an `answer` beside one of the others is the truth."""
LIST_FIELDS = ("predictions", "results", "samples", "logs", "answers")
"""Names under which an object holds the list of its predictions."""
SAMPLE_FIELD = "doc"
"""The name under which lmms-eval logs the benchmark's own row."""
FORMS = "JSON of predictions by id or of a list, JSON lines, CSV, TSV or parquet"


@dataclass(frozen=True, slots=True)
class Prediction:
    """A row of a file: its place, the ids that its question may go by, the likeliest first, and its prediction."""

    where: str
    ids: tuple[str, ...]
    value: Any


def read_predictions(
    path: Path, id_field: str | None = None, prediction_field: str | None = None
) -> tuple[Prediction, ...]:
    """Read the predictions of a file; fields named by the user take the place of the usual names.

    Raises:
        UsageError: the file is in none of the forms, or a row has no id or no prediction.
    """
    ids = ID_FIELDS if id_field is None else (id_field,)
    fields = PREDICTION_FIELDS if prediction_field is None else (prediction_field,)
    found = tuple(_prediction(path, where, raw, ids, fields) for where, raw in _rows(path))
    if not found:
        raise UsageError(f"{path} holds no prediction; give {FORMS}")
    return found


def _rows(path: Path) -> Iterable[Raw]:
    suffix = path.suffix.lower()
    readers: Mapping[str, Callable[[Path], Iterable[Raw]]] = {
        ".json": _json_rows,
        ".jsonl": json_lines,
        ".ndjson": json_lines,
        ".csv": csv_rows,
        ".tsv": tsv_rows,
        ".parquet": parquet_rows,
    }
    if suffix not in readers:
        hint = "; save the sheet as CSV" if suffix in (".xlsx", ".xls") else ""
        raise UsageError(f"got {path}, which is no file of predictions{hint}; give {FORMS}")
    return readers[suffix](path)


def _json_rows(path: Path) -> Iterator[Raw]:
    content = json_file(path)
    if isinstance(content, Mapping):
        content = next(
            (content[name] for name in LIST_FIELDS if isinstance(content.get(name), list | Mapping)), content
        )
    if isinstance(content, Mapping):
        for key, value in content.items():
            fields = value if isinstance(value, Mapping) else {PREDICTION_FIELDS[0]: value}
            yield f"id {key}", {ID_FIELDS[0]: key, **fields}
    elif isinstance(content, list):
        for number, row in enumerate(content, start=1):
            yield f"row {number}", row
    else:
        raise UsageError(f"{path} is no object or list; give {FORMS}")


def _prediction(path: Path, where: str, raw: Any, ids: tuple[str, ...], fields: tuple[str, ...]) -> Prediction:
    if isinstance(raw, BadRow) or not isinstance(raw, Mapping):
        problem = str(raw) if isinstance(raw, BadRow) else f"got {str(raw)[:60]!r}, which is no object"
        raise UsageError(f"{path}, {where}: {problem}; correct it, or give {FORMS}")
    there, inner = ", ".join(map(str, raw)) or "an empty row", raw.get(SAMPLE_FIELD)
    places = [inner, raw] if isinstance(inner, Mapping) else [raw]
    found = [_video_and_number(each) for each in places] + [each.get(name) for each in places for name in ids]
    known = tuple(dict.fromkeys(str(each) for each in found if each not in (None, "")))
    if not known:
        raise UsageError(f"{path}, {where}: got no id of a question in {there}; name its field by --id-field")
    field = next((name for name in fields if name in raw), None)
    if field is None:
        raise UsageError(f"{path}, {where}: got no prediction in {there}; name its field by --prediction-field")
    if field == PREDICTION_FIELDS[-1] and fields is PREDICTION_FIELDS and "question" in raw:
        raise UsageError(
            f"{path}, {where}: got a question with its {field!r}, as annotation files have the truth; if that is what "
            f"was predicted, say so by --prediction-field {field}"
        )
    value = raw[field]
    while isinstance(value, list | tuple):  # lmms-eval logs the responses to a question in lists
        if (different := len(set(map(str, value)))) > 1:
            raise UsageError(
                f"{path}, {where}: got {different} different responses as {field}; leave the one that counts"
            )
        value = value[0] if value else None
    return Prediction(where, known, value)


def _video_and_number(row: Mapping[str, Any]) -> str | None:
    video = row.get("video_id") if row.get("video") is None else row["video"]
    return None if video is None or row.get("qid") is None else f"{video}_{row['qid']}"
