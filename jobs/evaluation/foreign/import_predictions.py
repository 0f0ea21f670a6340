"""Predictions made elsewhere become a contender of a run: read as agents' answers are, and scored beside them.

What they cost and what they saw is not known, and every table and plot says that they were imported.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent.answer import Status
from agent.core.budget import Ledger
from agent.requests.named_option import named_option
from jobs.benchmarks.samples import Sample, composed
from jobs.errors import UsageError
from jobs.evaluation.foreign.prediction_file import Prediction, read_predictions
from jobs.evaluation.run.run_folder import (
    JUDGED,
    ImportedSystem,
    Run,
    open_for_append,
    read_run,
    write_imported,
)
from jobs.evaluation.run.systems import System
from jobs.evaluation.run.types import SampleResult

AGENT = "imported"
"""The agent of an imported system, which no run can start."""
MOST_NAMED = 5
NONE = ("-1", "-1.0", "nan", "None")
"""Words for "no option" in submission files, and in tables that were written by pandas."""
_WHOLE_NUMBER = re.compile(r"\d{1,3}(\.0)?")
_TVQA_OPTION = re.compile(r"a(\d)")


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """A file of predictions, and how to read it.

    `name` is that of the contender, None for the file's own. `first` is the number of the first option, 0 or 1; None
    if the user does not say that the numbers count the options.
    Questions without a prediction count as wrong, as benchmarks' servers count them, or with `partial` not at all.
    """

    file: Path
    name: str | None = None
    id_field: str | None = None
    prediction_field: str | None = None
    first: int | None = None
    partial: bool = False
    replaces: bool = False


def import_predictions(folder: Path, request: ImportRequest) -> ImportedSystem:
    """Read predictions, match them to a run's questions, and keep them in the run's folder.

    Raises:
        UsageError: the file cannot be read, none of its questions is in the run, one is predicted twice and unlike,
            options are counted from another number, or the name is taken.
    """
    run = read_run(folder)
    name = f"{request.name or request.file.stem} (imported)"
    _check_name(run, name, request.replaces)
    predictions = read_predictions(request.file, request.id_field, request.prediction_field)
    matched, notes = _matched(run.items, predictions, request.file)
    matched = _counted(run.items, matched, request)
    _check_first(run.items, matched, request)
    results = [_result(name, item, matched.get(item.item_id), request.first or 0) for item in run.items]
    missing = [each for each in results if each.item_id not in matched]
    if missing:
        counted = "left out" if request.partial else "counted as unanswered"
        notes.append(f"{len(missing):,} of {len(results):,} questions have no prediction and are {counted}")
    unread = sum(each.status == "invalid" for each in results)
    if unread:
        notes.append(f"predictions that name no option, counted as invalid: {unread:,}")
    kept = tuple(each for each in results if not request.partial or each.item_id in matched)
    digest = hashlib.sha256(request.file.read_bytes()).hexdigest()
    found = ImportedSystem(System(name, AGENT), str(request.file), digest, tuple(notes), kept)
    write_imported(folder, found)
    _forget_judgements(run, found)
    return found


def read_option(value: Any, options: Sequence[str], first: int = 0) -> int | None:
    """Index of the option that a prediction names, None if it names none for certain.

    Text is read as a model's answer is. A number is an option's own words if it came as text and one of the options
    reads so; else it counts the options from `first`. TVQA's "a3" counts from 0.
    """
    if isinstance(value, str) and (found := named_option(value, options)) is not None:
        return found
    number, tvqa = _number(value), _TVQA_OPTION.fullmatch(str(value).strip())
    index = int(tvqa[1]) if tvqa else -1 if number is None else number - first
    return index if 0 <= index < len(options) else None


def is_empty(value: Any, options: Sequence[str]) -> bool:
    """True for a prediction that says that there is none: nothing, or the -1 of submission files.

    What an option says in these words is that option, and what an answer without options says is an answer.
    """
    if isinstance(value, str) and (not options or value.strip().casefold() in map(str.casefold, options)):
        return not value.strip()
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return missing or bool(options and str(value).strip() in ("", *NONE))


def _number(value: Any) -> int | None:
    """Read a whole number, which CSV and parquet may write as text or as 3.0; None for anything else."""
    text = "" if isinstance(value, bool) else str(value).strip()
    return int(float(text)) if _WHOLE_NUMBER.fullmatch(text) else None


def _check_name(run: Run, name: str, replaces: bool) -> None:
    imported = {each.system.name for each in run.imported}
    taken = {each.name for each in run.plan.contenders} - imported
    if name in taken or (name in imported and not replaces):
        raise UsageError(f"{run.folder} has a contender {name!r}; give another --name, or --replace for this one")


def _forget_judgements(run: Run, found: ImportedSystem) -> None:
    """Withdraw the scores of replaced answers that older versions kept without what was judged."""
    texts = {each.item_id: each.text for each in run.records if each.contender == found.system.name}
    same = {each.item_id for each in found.results if texts.get(each.item_id) == each.text}
    stale = [
        each
        for each in run.judgements
        if each.contender == found.system.name and not each.asked and each.item_id not in same
    ]
    if stale:
        with open_for_append(run.folder / JUDGED) as append:
            for each in stale:
                append(replace(each, score=None, asked="replaced"))


def _matched(
    items: Sequence[Sample], predictions: Sequence[Prediction], file: Path
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
            f"{file} predicts none of the run's {len(known):,} questions: it has {_some(unknown)}, and the run "
            f"{_some([item.item_id for item in items])}; name the field of the id by --id-field"
        )
    notes = [f"predictions of no question of this run: {len(unknown):,}, {_some(unknown)}"] if unknown else []
    return found, notes + ([f"{len(repeated):,} stand there twice alike: {_some(repeated)}"] if repeated else [])


def _counted(items: Sequence[Sample], matched: dict[str, Prediction], request: ImportRequest) -> dict[str, Prediction]:
    """Turn a file's texts, if all are whole numbers, into numbers that count the options, as JSON would have them.

    CSV has no numbers: where an option itself reads so, `--first` says that they count; without it, it is refused.
    """
    asked = {item.item_id: item.question.options for item in items if item.question.options}
    texts = {
        item_id: each.value
        for item_id, each in matched.items()
        if item_id in asked and isinstance(each.value, str) and not is_empty(each.value, asked[item_id])
    }
    numbers = {item_id: number for item_id, text in texts.items() if (number := _number(text)) is not None}
    if len(numbers) < len(texts):
        return matched
    if request.first is not None:
        return {name: replace(each, value=numbers.get(name, each.value)) for name, each in matched.items()}
    for name, number in numbers.items():
        words = named_option(texts[name], asked[name])
        if words is not None and words != number:
            raise UsageError(
                f"{request.file} predicts {number} for {name}, whose option {words} (from 0) has these words; if the "
                "numbers count the options, say so by --first 0 or --first 1, else give the options' letters"
            )
    return matched


def _check_first(items: Sequence[Sample], matched: Mapping[str, Prediction], request: ImportRequest) -> None:
    """Refuse numbers that fit the options only if they are counted from another first number."""
    numbers = [
        (number, len(item.question.options))
        for item in items
        if item.item_id in matched and (number := _number(matched[item.item_id].value)) is not None
    ]
    too_high = any(number >= options for number, options in numbers)
    if too_high and not request.first and all(number >= 1 for number, _ in numbers):
        raise UsageError(
            f"{request.file} counts options from 1 on, as it seems: no prediction is 0, and one is beyond the last "
            "option; say so by --first 1"
        )


def _result(name: str, item: Sample, prediction: Prediction | None, first: int) -> SampleResult:
    value = None if prediction is None else prediction.value
    options = item.question.options
    empty = is_empty(value, options)
    option = None if empty or not options else read_option(value, options, first)
    status: Status = "answered" if option is not None or not options else "invalid"
    text = None if empty else str(value) if option is None else options[option]
    if empty:
        status = "insufficient_evidence"
    reason = "" if prediction is not None else "no prediction"
    return SampleResult(name, item.item_id, status, option, text, reason, 0, Ledger(), (), imported=True)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
