"""The folder of a run: its plan, its items, their results, and the judgements of a judge model.

A result is one JSON line, appended whole by the one process that holds the folder. So a run that is killed loses the
items in progress and nothing else: a torn last line is not read, and the next run cuts it off.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from kinodex.agent.answer import Status
from kinodex.agent.limits import Budget, Ledger
from kinodex.agent.protocol import AnswerRules
from kinodex.agent.requests.answer import named_option
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.contenders import Contender, ItemResult, Judgement
from kinodex.jobs.eval.items import (
    WHOLE,
    BadRow,
    Item,
    MissingVideo,
    Problem,
    Raw,
    Scoring,
    composed,
    csv_rows,
    json_file,
    json_lines,
    parquet_rows,
    some,
    tsv_rows,
)

PLAN, ITEMS, ANSWERS, JUDGED, TRACES = "run.json", "items.jsonl", "answers.jsonl", "judged.jsonl", "traces"
IMPORTED = "imported"
REPORT, PAGE, FIGURES = "report.json", "report.html", "figures"
SLUG_CHARACTERS = 60
RULES_OF_OLDER_RUNS = AnswerRules(early_insufficient=True)
"""The rules by which answers were given before a plan said so: a model could give up at any time."""

T = TypeVar("T")
Line = ItemResult | Judgement


@dataclass(frozen=True, slots=True)
class IndexCost:
    """Cost of indexing the videos of a run, to be amortised: `frames` embedded, `captions` kept, in `videos`."""

    videos: int
    hours: float
    frames: int
    captions: int


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The items, contenders and models of a run; two runs of equal plans ask the same.

    `items` maps the ids of items to their videos in the library, and `space` is the space of the library that is
    searched. `questions` is the size of the benchmark, before `part`, `limit` and missing videos; `part` describes the
    subset in words. `contenders` are the contenders, `models` the models by role (with endpoint, without any key). With
    `keep_captions` captions that agents make are kept for later items, so that their cost depends on the order.
    `rules` say when a model may find the evidence insufficient. `at_once` is the number of requests of a role under way
    together, and `prices` are those of the models by role; plans of older runs say none of the three. `screen_text`
    may be read by agents. `states` tell of each video what the library held of it, and `contents` what the files held
    that answer; plans of older runs have neither.
    """

    benchmark: str
    title: str
    annotations: str
    annotations_sha256: str
    scoring: Scoring
    library: str
    space: str
    contenders: tuple[Contender, ...]
    models: Mapping[str, str]
    budget: Budget
    subtitles: bool
    keep_captions: bool
    limit: int | None
    seed: int
    questions: int
    items: Mapping[str, tuple[str, ...]]
    missing: tuple[MissingVideo, ...]
    problems: tuple[Problem, ...]
    index_cost: IndexCost
    version: str
    part: str = WHOLE
    rules: AnswerRules | None = None
    at_once: int | None = None
    prices: Mapping[str, str] = field(default_factory=dict)
    screen_text: bool = True
    states: Mapping[str, str] = field(default_factory=dict)
    contents: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ImportedContender:
    """A contender whose answers were given elsewhere: the file that they are from, and what is to be said of it."""

    system: Contender
    source: str
    sha256: str
    notes: tuple[str, ...]
    results: tuple[ItemResult, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """The content of a run's folder, except its traces.

    The contenders of its `plan` and its `records` are those of the run, then those of `imported` contenders.
    """

    folder: Path
    plan: RunPlan
    items: tuple[Item, ...]
    records: tuple[ItemResult, ...]
    judgements: tuple[Judgement, ...]
    imported: tuple[ImportedContender, ...] = ()

    @property
    def judge(self) -> str | None:
        """The judge whose scores count: the last one that judged."""
        return self.judgements[-1].judge if self.judgements else None


@cache
def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """Make the reader and writer of a type's JSON, once: that takes 2 ms, where reading a line takes 20 µs."""
    return TypeAdapter(kind)


def read_run(folder: Path) -> Run:
    """Read a run, finished or not; raise `UsageError` if the folder holds none, or one that cannot be read."""
    plan, imported = read_plan(folder), read_imported(folder)
    plan = replace(plan, contenders=(*plan.contenders, *(each.system for each in imported)))
    results = (*read_results(folder), *(result for each in imported for result in each.results))
    return Run(folder, plan, read_items(folder), results, read_judgements(folder), imported)


def read_plan(run: Path) -> RunPlan:
    """Read the plan of a run; raise `UsageError` if the folder holds none."""
    try:
        plan: RunPlan = adapter_of(RunPlan).validate_json(_read(run / PLAN))
    except ValidationError as error:
        raise _unreadable(run / PLAN, error) from error
    return plan


def plan_or_none(run: Path) -> RunPlan | None:
    """Read the plan of a run; None if the folder holds none."""
    return read_plan(run) if (run / PLAN).exists() else None


def read_items(run: Path) -> tuple[Item, ...]:
    """Read the items of a run with their targets, in the order of the benchmark."""
    return _lines(run / ITEMS, Item)


def read_results(run: Path) -> tuple[ItemResult, ...]:
    """Read the results of a run in the order of their writing; of an item solved again the last one counts."""
    lines = _lines(run / ANSWERS, ItemResult) if (run / ANSWERS).exists() else ()
    return tuple({(each.contender, each.item_id): each for each in lines}.values())


def read_judgements(run: Path) -> tuple[Judgement, ...]:
    """Read the judgements of a run, the newest last; of those of an answer by one judge the last one counts."""
    lines = _lines(run / JUDGED, Judgement) if (run / JUDGED).exists() else ()
    newest: dict[tuple[str, str, str], Judgement] = {}
    for each in reversed(lines):
        newest.setdefault((each.contender, each.item_id, each.judge), each)
    return tuple(reversed(newest.values()))


def read_imported(run: Path) -> tuple[ImportedContender, ...]:
    """Read the imported contenders of a run, by name."""
    adapter, found = adapter_of(ImportedContender), list[ImportedContender]()
    for path in sorted((run / IMPORTED).glob("*.json")):
        try:
            found.append(adapter.validate_json(_read(path)))
        except ValidationError as error:
            raise _unreadable(path, error) from error
    return tuple(sorted(found, key=lambda each: each.system.name))


def write_imported(run: Path, imported: ImportedContender) -> None:
    """Write an imported contender into a run's folder, in the place of one of its name."""
    path = run / IMPORTED / f"{slug(imported.system.name)}.json"
    write_whole(path, adapter_of(ImportedContender).dump_json(imported, indent=1) + b"\n")


def begin_run(run: Path, plan: RunPlan, items: Sequence[Item]) -> None:
    """Write the items and the plan of a new run. The plan is written last: where it is, the items are too."""
    adapter = adapter_of(Item)
    write_whole(run / ITEMS, b"".join(adapter.dump_json(each) + b"\n" for each in items))
    write_whole(run / PLAN, adapter_of(RunPlan).dump_json(plan, indent=2) + b"\n")


@contextmanager
def open_for_append(path: Path) -> Iterator[Callable[[Line], None]]:
    """Give a function that appends results or judgements to a file of a run, which this process alone may write.

    The folder is created. Raises `UsageError` if another process writes it, or it cannot be written.
    """
    import fcntl  # here, so that runs can be looked at where there is none

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        opened = path.open("ab")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; give another folder") from error
    with opened as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(f"another process is writing {path}; wait for it, or give another folder") from error
        adapter = adapter_of(Line)
        file.truncate(len(_whole_lines(path.read_bytes())))

        def append(line: Line) -> None:
            file.write(adapter.dump_json(line) + b"\n")
            file.flush()

        yield append


def trace_file(run: Path, system: str, item_id: str) -> Path:
    """Name the file of an item's trace by one contender: JSON lines, compressed."""
    return run / TRACES / slug(system) / f"{slug(item_id)}.jsonl.gz"


def comparable(plan: RunPlan, name: str) -> Any:
    """Value of a plan's field as two runs are compared by it.

    A library's folder counts by its real path, not by a link, and rules that an older plan does not say by those of
    its time.
    """
    value = getattr(plan, name)
    if name == "rules":
        return value or RULES_OF_OLDER_RUNS
    return str(Path(value).resolve()) if name == "library" and "://" not in value else value


def slug(name: str) -> str:
    """Make a file name of any name; different names get different file names."""
    short = re.sub(r"[^A-Za-z0-9_.=-]+", "-", name).strip("-.")[:SLUG_CHARACTERS]
    return short if short == name else f"{short}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it exists whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(content)
    part.replace(path)


def _read(path: Path) -> bytes:
    """Read a file of a run; raise `UsageError` if that fails."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}; give the folder that `kinodex eval` wrote with --out"
        ) from error


def _lines(path: Path, kind: type[T]) -> tuple[T, ...]:
    schema: Any = kind
    adapter, rows = adapter_of(schema), list[T]()
    for number, line in enumerate(_whole_lines(_read(path)).splitlines(), start=1):
        try:
            rows.append(adapter.validate_json(line))
        except ValidationError as error:
            raise _unreadable(Path(f"{path}, line {number}"), error) from error
    return tuple(rows)


def _whole_lines(content: bytes) -> bytes:
    return content[: content.rfind(b"\n") + 1]


def first_defect(error: ValidationError) -> str:
    """Describe the first defect of a file in one line: the field, if it is one of a field, and what is wrong."""
    first = error.errors(include_url=False)[0]
    return ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))


def _unreadable(path: Path, error: ValidationError) -> UsageError:
    return UsageError(
        f"cannot read {path}: {first_defect(error)}; it was changed, or another version of kinodex wrote it: "
        "run the evaluation again with another --out"
    )


# Predictions made elsewhere become a contender of a run: read as agents' answers are, and scored beside them.
#
# What they cost and what they saw is not known, and every table and plot says that they were imported.

AGENT = "imported"
"""The agent of an imported contender, which no run can start."""
MOST_NAMED = 5
NONE = ("-1", "-1.0", "nan", "None")
"""Words for "no option" in submission files, and in tables that were written by pandas."""


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """A file of predictions, and how to read it; `name` is that of the contender, None for the file's own.

    `first` is the number of the first option, 0 or 1; None if the user does not say that numbers count the options.
    Questions without a prediction count as wrong, as benchmarks' servers count them, or with `partial` not at all.
    """

    file: Path
    name: str | None = None
    id_field: str | None = None
    prediction_field: str | None = None
    first: int | None = None
    partial: bool = False
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class Prediction:
    """A row of a file: its place, the ids that its question may go by, the likeliest first, and its prediction."""

    where: str
    ids: tuple[str, ...]
    value: Any


def import_predictions(folder: Path, request: ImportRequest) -> ImportedContender:
    """Read predictions, match them to a run's questions, and keep them in the run's folder.

    Raises:
        UsageError: the file cannot be read, none of its questions is in the run, one is predicted twice and unlike,
            options are counted from another number, or the name is taken.
    """
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
    _forget_judgements(run, found)
    return found


def read_option(value: Any, options: Sequence[str], first: int = 0) -> int | None:
    """Index of the option that a prediction names, None if it names none for certain.

    Text is read as a model's answer is. A number is an option's own words if it came as text and one of the options
    reads so; else it counts the options from `first`. TVQA's "a3" counts from 0.
    """
    if isinstance(value, str) and (found := named_option(value, options)) is not None:
        return found
    number, tvqa = _number(value), re.fullmatch(r"a(\d)", str(value).strip())
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


def _forget_judgements(run: Run, found: ImportedContender) -> None:
    """Withdraw the scores of replaced answers that older versions kept without what was judged."""
    texts = {each.item_id: each.text for each in run.records if each.contender == found.system.name}
    same = {each.item_id for each in found.results if texts.get(each.item_id) == each.text}
    of_it = [each for each in run.judgements if each.contender == found.system.name]
    if stale := [each for each in of_it if not each.asked and each.item_id not in same]:
        with open_for_append(run.folder / JUDGED) as append:
            for each in stale:
                append(replace(each, score=None, asked="replaced"))


# Files of predictions, in the forms in which they are handed out: a question's id and what was predicted.
#
# - JSON: an object of predictions by id (EgoSchema's submissions), a list of objects, or an object that holds such a
#   list under a name such as "predictions";
# - JSON lines, such as the items that lmms-eval logs (`doc`, `filtered_resps`; its `target` is the truth);
# - CSV, TSV and parquet, such as VLMEvalKit's results (`index`, `prediction`; its `answer` is the truth).

ID_FIELDS = ("question_id", "item_id", "q_uid", "uid", "qid", "id", "index")
"""Names of a question's id. NExT-QA's questions are numbered by video: their ids are joined of `video` and `qid`."""
PREDICTION_FIELDS = ("prediction", "pred", "pred_answer", "response", "filtered_resps", "resps", "option", "answer")
"""Names of a prediction, the surest first: an `answer` beside one of the others is the truth."""
LIST_FIELDS = ("predictions", "results", "samples", "logs", "answers")
"""Names under which an object holds the list of its predictions."""
SAMPLE_FIELD = "doc"
"""The name under which lmms-eval logs the benchmark's own row."""
FORMS = "JSON of predictions by id or of a list, JSON lines, CSV, TSV or parquet"


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
