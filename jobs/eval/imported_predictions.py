"""Predictions made elsewhere become a contender of a run: read as agents' answers are, and scored beside them.

What they cost and what they saw is not known, and every table and plot says that they were imported.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kinodex.agent.answer import Status
from kinodex.agent.limits.ledger import Ledger
from kinodex.agent.requests.named_option import named_option
from kinodex.index.text import composed
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.contenders import Contender
from kinodex.jobs.eval.folder import ImportedContender, read_run, write_imported
from kinodex.jobs.eval.item_choice import some
from kinodex.jobs.eval.items import Item
from kinodex.jobs.eval.prediction_files import Prediction, read_predictions
from kinodex.jobs.eval.results import ItemResult

AGENT = "imported"
"""The agent of an imported contender, which no run can start."""
MOST_NAMED = 5
NONE = ("-1", "-1.0", "nan", "None")
"""Words for "no option" in submission files, and in tables that were written by pandas."""


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """A file of predictions, and how to read it; `name` is that of the contender, None for the file's own.

    `first` is the number of the first option, None if numbers need not count them. With `partial` questions without a
    prediction do not count, else as wrong, as benchmarks' servers count them.
    """

    file: Path
    name: str | None = None
    id_field: str | None = None
    prediction_field: str | None = None
    first: int | None = None
    partial: bool = False
    replaces: bool = False


def import_predictions(folder: Path, request: ImportRequest) -> ImportedContender:
    """Read predictions, match them to a run's questions, and keep them in the run's folder; raises `UsageError`."""
    run = read_run(folder)
    name = f"{request.name or request.file.stem} (imported)"
    imported = {each.system.name for each in run.imported}
    if name in {each.name for each in run.plan.contenders} and not (name in imported and request.replaces):
        raise UsageError(f"{run.folder} has a contender {name!r}; give another --name, or --replace for this one")
    predictions = read_predictions(request.file, request.id_field, request.prediction_field)
    matched, notes = _matched(run.items, predictions, request.file)
    matched = _counted(run.items, matched, request)
    results = [_result(name, item, matched.get(item.item_id), request.first or 0) for item in run.items]
    if missing := len(results) - len(matched):
        counted = "left out" if request.partial else "counted as unanswered"
        notes.append(f"{missing:,} of {len(results):,} questions have no prediction and are {counted}")
    if unread := sum(each.status == "invalid" for each in results):
        notes.append(f"predictions that name no option, counted as invalid: {unread:,}")
    kept = tuple(each for each in results if not request.partial or each.item_id in matched)
    digest = hashlib.sha256(request.file.read_bytes()).hexdigest()
    found = ImportedContender(Contender(name, AGENT), str(request.file), digest, tuple(notes), kept)
    write_imported(folder, found)
    return found


def read_option(value: Any, options: Sequence[str], first: int = 0) -> int | None:
    """Index of the option that a prediction names, None if it names none for certain.

    Text is read as a model's answer is. A number that is no option's own words counts from `first`, TVQA's "a3" from 0.
    """
    if isinstance(value, str) and (found := named_option(value, options)) is not None:
        return found
    number, tvqa = _number(value), re.fullmatch(r"a(\d)", str(value).strip())
    index = int(tvqa[1]) if tvqa else -1 if number is None else number - first
    return index if 0 <= index < len(options) else None


def is_empty(value: Any, options: Sequence[str]) -> bool:
    """Return True for a prediction that says that there is none: nothing, or the -1 of submission files.

    What an option says in these words is that option, and what an answer without options says is an answer.
    """
    if isinstance(value, str) and (not options or value.strip().casefold() in map(str.casefold, options)):
        return not value.strip()
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return missing or bool(options and str(value).strip() in ("", *NONE))


def _number(value: Any) -> int | None:
    """Read a whole number, which CSV and parquet may write as text or as 3.0; None for anything else."""
    text = "" if isinstance(value, bool) else str(value).strip()
    return int(float(text)) if re.fullmatch(r"\d{1,3}(\.0)?", text) else None


def _matched(
    items: Sequence[Item], predictions: Sequence[Prediction], file: Path
) -> tuple[dict[str, Prediction], list[str]]:
    """Match predictions to questions by id; say which are of no question, and which stand there twice."""
    known = {composed(item.item_id): item.item_id for item in items}
    found: dict[str, Prediction] = {}
    unknown, repeated = [], []
    for each in predictions:
        item_id = next((known[name] for name in map(composed, each.ids) if name in known), None)
        if item_id is None:
            unknown.append(each.ids[0])
        elif item_id not in found:
            found[item_id] = each
        elif found[item_id].value == each.value:
            repeated.append(item_id)
        else:
            raise UsageError(
                f"{file} predicts {item_id} twice: {str(found[item_id].value)[:60]!r} ({found[item_id].where}) and "
                f"{str(each.value)[:60]!r} ({each.where}); leave one of them"
            )
    if not found:
        raise UsageError(
            f"{file} predicts none of the run's {len(known):,} questions: it has {some(unknown, MOST_NAMED)}, and the "
            f"run {some(list(known.values()), MOST_NAMED)}; name the field of the id by --id-field"
        )
    notes = []
    if unknown:
        notes.append(f"predictions of no question of this run: {len(unknown):,}, {some(unknown, MOST_NAMED)}")
    if repeated:
        notes.append(f"{len(repeated):,} stand there twice alike: {some(repeated, MOST_NAMED)}")
    return found, notes


def _counted(items: Sequence[Item], matched: dict[str, Prediction], request: ImportRequest) -> dict[str, Prediction]:
    """Turn a file's texts, if all are whole numbers, into numbers that count the options, as JSON would have them.

    CSV has no numbers: where an option itself reads so, `--first` says that they count; without it, it is refused, and
    so are numbers that fit the options only if they are counted from another first one.
    """
    asked = {item.item_id: item.question.options for item in items if item.question.options}
    texts = {
        item_id: each.value
        for item_id, each in matched.items()
        if item_id in asked and isinstance(each.value, str) and not is_empty(each.value, asked[item_id])
    }
    numbers = {item_id: number for item_id, text in texts.items() if (number := _number(text)) is not None}
    if len(numbers) == len(texts) and request.first is not None:
        matched = {name: replace(each, value=numbers.get(name, each.value)) for name, each in matched.items()}
    elif len(numbers) == len(texts):
        for name, number in numbers.items():
            words = named_option(texts[name], asked[name])
            if words is not None and words != number:
                raise UsageError(
                    f"{request.file} predicts {number} for {name}, whose option {words} (from 0) has these words; if "
                    "the numbers count the options, say so by --first 0 or --first 1, else give the options' letters"
                )
    counts = {name: number for name, each in matched.items() if (number := _number(each.value)) is not None}
    too_high = any(number >= len(asked.get(name, ())) for name, number in counts.items())
    if too_high and not request.first and min(counts.values()) >= 1:
        raise UsageError(
            f"{request.file} counts options from 1 on, as it seems: no prediction is 0, and one is beyond the last "
            "option; say so by --first 1"
        )
    return matched


def _result(name: str, item: Item, prediction: Prediction | None, first: int) -> ItemResult:
    value = None if prediction is None else prediction.value
    options = item.question.options
    empty = is_empty(value, options)
    option = None if empty or not options else read_option(value, options, first)
    status: Status = "answered" if option is not None or not options else "invalid"
    text = None if empty else str(value) if option is None else options[option]
    reason = "" if prediction is not None else "no prediction"
    status = "insufficient_evidence" if empty else status
    return ItemResult(name, item.item_id, status, option, text, reason, 0, Ledger(), (), imported=True)
