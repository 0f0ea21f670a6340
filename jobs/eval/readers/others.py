"""Questions of one's own: a line of JSON each, about videos of one's own library.

`own` takes questions with options, scored by the option that is chosen; `own-open` those without, whose answers a
model judges. docs/evaluation.md shows the lines.
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints, TypeAdapter, ValidationError, model_validator

from kinodex.agent.protocol import Question
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.samples import (
    AS_PUBLISHED,
    AddNote,
    BadRow,
    ParsedRows,
    Raw,
    Sample,
    Target,
    csv_rows,
    json_file,
    json_lines,
    json_rows,
    make_question,
    parquet_rows,
    parse_samples,
)

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Range = tuple[float, float]


# A misspelt field of one's own file would silently leave out an answer or an evidence range.
class _OwnRow(BaseModel, extra="forbid"):
    model_config = AS_PUBLISHED

    id: Text
    video: Text
    question: str
    answer: Annotated[str, StringConstraints(strip_whitespace=True)] | None = None
    evidence: tuple[Range, ...] = ()
    category: Text | tuple[Text, ...] = ()


class _Chosen(_OwnRow):
    options: tuple[str, ...] = Field(min_length=2)


def read_multiple_choice(path: Path) -> ParsedRows:
    """Read questions with options; `answer` is the right option's own words or its letter."""
    return parse_samples(json_lines(path), _Chosen, _chosen)


def read_open_ended(path: Path) -> ParsedRows:
    """Read questions without options; `answer` is the text with which a judge compares replies."""
    return parse_samples(json_lines(path), _OwnRow, lambda row, note: _own_item(row, (), Target(text=row.answer), note))


def _chosen(row: _Chosen, note: AddNote) -> Sample:
    return _own_item(row, row.options, Target(None if row.answer is None else _option(row.options, row.answer)), note)


def _own_item(row: _OwnRow, options: tuple[str, ...], truth: Target, note: AddNote) -> Sample:
    for start_s, end_s in row.evidence:
        if not 0 <= start_s < end_s:
            raise BadRow(f"evidence: got {start_s} to {end_s}; it is a start from 0 on and a later end in seconds")
    categories = (row.category,) if isinstance(row.category, str) else row.category
    asked = make_question(row.question, options, note)
    true = Target(truth.option, truth.text, row.evidence)
    return Sample(row.id, row.video, asked, true, {"category": categories} if categories else {})


def _option(options: tuple[str, ...], answer: str) -> int:
    """Find the option with these words, in the same case first, else with this letter: an option may be a letter."""
    bare = [option.strip() for option in options]
    letters = list(string.ascii_lowercase[: len(options)])
    for wanted, known in (
        (answer.strip(), bare),
        (answer.strip().casefold(), [option.casefold() for option in bare]),
        (answer.strip().casefold(), letters),
    ):
        if known.count(wanted) > 1:
            raise BadRow(f"answer: got {answer!r}, which are the words of {known.count(wanted)} options; give a letter")
        if wanted in known:
            return known.index(wanted)
    raise BadRow(f"answer: got {answer!r}; it is one of the options, or a letter up to {letters[-1].upper()}")


# EgoSchema: three-minute films of daily life, five options (Mangalam et al. 2023, arXiv 2308.09126).
#
# Published as `questions.json` (5,031 rows, no answers) and `subset_answers.json` (`{q_uid: index}` of 500). LLoVi and
# others hand out the 500 as one file, `subset_anno.json`: `{q_uid: row with "truth"}`.

FILES = ("subset_anno.json", "questions.json")
ANSWERS = "subset_answers.json"
LENGTH_S = 180.0


class _EgoSchemaRow(BaseModel):
    model_config = AS_PUBLISHED

    q_uid: str
    question: str
    option_0: Annotated[str, Field(alias="option 0")]
    option_1: Annotated[str, Field(alias="option 1")]
    option_2: Annotated[str, Field(alias="option 2")]
    option_3: Annotated[str, Field(alias="option 3")]
    option_4: Annotated[str, Field(alias="option 4")]
    truth: Annotated[int | None, Field(ge=0, le=4)] = None


def read_subset(path: Path) -> ParsedRows:
    """Read the 500 questions with published answers: `subset_anno.json`, or `questions.json` beside its answers."""
    answers = _answers(path)
    rows = [(where, raw) for where, raw in _rows(path, answers) if not answers or _may_be_in(answers, raw.get("q_uid"))]

    def scored(row: _EgoSchemaRow, note: AddNote) -> Sample:
        if row.truth is None:
            raise BadRow(f"no truth; give {ANSWERS} beside {path.name}, or ask for egoschema-full")
        return _egoschema_item(row, note)

    return parse_samples(rows, _EgoSchemaRow, scored)


def read_full(path: Path) -> ParsedRows:
    """Read all 5,031 questions: only the benchmark's server knows most of the answers."""
    return parse_samples(_rows(path, _answers(path)), _EgoSchemaRow, _egoschema_item)


def _egoschema_item(row: _EgoSchemaRow, note: AddNote) -> Sample:
    options = (row.option_0, row.option_1, row.option_2, row.option_3, row.option_4)
    return Sample(
        row.q_uid, row.q_uid, make_question(row.question, options, note), Target(row.truth), duration_s=LENGTH_S
    )


def _rows(path: Path, answers: Mapping[str, Any]) -> list[Raw]:
    published = json_file(path)
    rows = list(published.values()) if isinstance(published, dict) else published
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{path} is no list or object of questions; give {' or '.join(FILES)} as published")
    return [
        (f"row {number}", row if row.get("truth") is not None else {**row, "truth": answers.get(str(row.get("q_uid")))})
        for number, row in enumerate(rows, start=1)
    ]


def _may_be_in(answers: Mapping[str, Any], q_uid: object) -> bool:
    """True for an id with an answer, and for what is no id, which is noted as a defect of its row."""
    return not isinstance(q_uid, str | int) or str(q_uid) in answers


def _answers(path: Path) -> Mapping[str, Any]:
    beside = path.with_name(ANSWERS)
    answers = json_file(beside) if beside.is_file() else {}
    if not isinstance(answers, dict):
        raise UsageError(f"{beside} is no object of answers by question; give it as it is published")
    return answers


# LongTVQA and LongTVQA+: TVQA and TVQA+ asked about whole episodes (LongVideoAgent, arXiv 2512.20618).
#
# Published as an array of JSON, also in files named `.jsonl`. The question is about an episode; the clip where it
# happens, the seconds in it and the boxes are part of what is true, and no agent is to know them.

_PAIR: TypeAdapter[tuple[float, float]] = TypeAdapter(tuple[float, float], config=AS_PUBLISHED)


class _LongTVQARow(BaseModel):
    model_config = AS_PUBLISHED

    qid: str
    q: str
    a0: str
    a1: str
    a2: str
    a3: str
    a4: str
    answer: Annotated[str, Field(pattern="^a[0-4]$")]
    episode_name: Annotated[str, Field(min_length=1)]
    occur_clip: str
    ts: object = None


def read_longtvqa(path: Path) -> ParsedRows:
    """Read questions, grouped by the episode's season. `ts` counts from the start of the clip."""
    return parse_samples(json_rows(path), _LongTVQARow, _longtvqa_item)


def _longtvqa_item(row: _LongTVQARow, note: AddNote) -> Sample:
    if not row.occur_clip.startswith(row.episode_name):
        note(f"occur_clip: got {row.occur_clip}, which is not of episode {row.episode_name}; the question is kept")
    asked = make_question(row.q, (row.a0, row.a1, row.a2, row.a3, row.a4), note)
    truth = Target(int(row.answer[1]), evidence=_evidence(row.ts, note), clip=row.occur_clip)
    season = re.sub(r"e\d+$", "", row.episode_name)
    return Sample(row.qid, row.episode_name, asked, truth, {"season": (season,)})


def _evidence(ts: object, note: AddNote) -> tuple[tuple[float, float], ...]:
    """Parse a range written as `[12.3, 20.11]` or as TVQA's `"12.3-20.11"`."""
    try:
        start_s, end_s = _PAIR.validate_python(ts.split("-") if isinstance(ts, str) else ts)
    except ValidationError:
        start_s, end_s = 0.0, 0.0
    if not 0 <= start_s < end_s:
        note(f"ts: got {ts!r}, not a start and a later end in seconds; the question is kept without evidence")
        return ()
    return ((start_s, end_s),)


# LongVideoBench: films of seconds to an hour with subtitles (Wu et al. 2024, arXiv 2407.15754).
#
# Published as `lvb_val.json`, and as parquet without levels and with candidates in `option0` to `option4`, "N/A" at the
# end where there is none. `position` counts frames at a rate that the file does not tell, so no evidence is taken from
# it.

_OPTION = re.compile(r"option(0|[1-9]\d?)")


class _LongVideoBenchRow(BaseModel):
    model_config = AS_PUBLISHED

    id: str
    video_path: str
    question: str
    candidates: Annotated[tuple[str, ...], Field(min_length=2)]
    correct_choice: int | None = None
    topic_category: str
    question_category: str
    level: str | None = None
    duration_group: str
    duration: Annotated[float, Field(gt=0)]

    @model_validator(mode="before")
    @classmethod
    def _candidates(cls, row: Any) -> Any:
        """Turn the parquet file's columns of options into the JSON file's list."""
        if not isinstance(row, dict) or "candidates" in row:
            return row
        numbers = sorted(int(match[1]) for match in map(_OPTION.fullmatch, row) if match)
        options = [row[f"option{number}"] for number in numbers]
        while options and options[-1] in (None, "N/A"):  # one before a real option is an option: the answer counts it
            options.pop()
        return {**row, "candidates": options}


def read_longvideobench(path: Path) -> ParsedRows:
    """Read questions, grouped by duration, category, level and topic. Rows of the test set have no answer."""
    rows = parquet_rows(path) if path.suffix == ".parquet" else json_rows(path)
    return parse_samples(rows, _LongVideoBenchRow, _longvideobench_item)


def _longvideobench_item(row: _LongVideoBenchRow, note: AddNote) -> Sample:
    truth = None if row.correct_choice == -1 else row.correct_choice
    if truth is not None and not 0 <= truth < len(row.candidates):
        raise BadRow(f"correct_choice: got {truth}; there are {len(row.candidates)} candidates, counted from 0")
    groups = {
        "duration_group": (row.duration_group,),
        "question_category": (row.question_category,),
        **({"level": (row.level,)} if row.level else {}),
        "topic": (row.topic_category,),
    }
    video = PurePosixPath(row.video_path).stem
    return Sample(row.id, video, make_question(row.question, row.candidates, note), Target(truth), groups, row.duration)


# MMBench-Video: free-form questions about films of some minutes (Fang et al. 2024, arXiv 2406.14515).
#
# Published as `MMBench-Video.tsv`. A named model judges answers from 0 to 3. A question counts once in every leaf of
# the
# tree of abilities that it names, in every branch that holds one of them, and in perception or reasoning or both.

# fmt: off
PERCEPTION = {
    "CP": ("Video Topic", "Video Emotion", "Video Scene", "Video Style"),
    "FP-S": ("OCR", "Object Recognition", "Attribute Recognition", "Event Recognition", "Human Motion", "Counting"),
    "FP-C": ("Spatial Relationship", "Human-object Interaction", "Human Interaction"),
    "HL": ("Hallucination",),
}
REASONING = {
    "LR": ("Structuralized Image-Text Understanding", "Mathematical Calculation"),
    "AR": ("Physical Property", "Function Reasoning", "Identity Reasoning"),
    "RR": ("Natural Relation", "Physical Relation", "Social Relation"),
    "CSR": ("Common Sense Reasoning",),
    "TR": ("Counterfactual Reasoning", "Causal Reasoning", "Future Prediction"),
}
# fmt: on
BRANCHES = {
    leaf: (branch, side)
    for side, branches in (("perception", PERCEPTION), ("reasoning", REASONING))
    for branch, leaves in branches.items()
    for leaf in leaves
}
"""The branch and the side of the tree on which each of the 26 leaves grows."""


class _MMBenchVideoRow(BaseModel):
    model_config = AS_PUBLISHED

    index: str
    video: str
    question: str
    answer: Annotated[str, Field(min_length=1)]
    dimensions: str


def read_mmbench_video(path: Path) -> ParsedRows:
    """Read questions, grouped by leaf, branch, and perception or reasoning."""
    return parse_samples(csv_rows(path, "\t"), _MMBenchVideoRow, _mmbench_video_item)


def _mmbench_video_item(row: _MMBenchVideoRow, note: AddNote) -> Sample:
    leaves = _leaves(row.dimensions)
    groups = {
        "dimension": leaves,
        "ability": tuple(dict.fromkeys(BRANCHES[leaf][0] for leaf in leaves)),
        "perception/reasoning": tuple(dict.fromkeys(BRANCHES[leaf][1] for leaf in leaves)),
    }
    return Sample(row.index, row.video, Question(row.question.strip()), Target(text=row.answer), groups)


def _leaves(dimensions: str) -> tuple[str, ...]:
    """Parse the leaves in a list that is written as a string: "['OCR', 'Counting']"."""
    try:
        leaves = ast.literal_eval(dimensions)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise BadRow(f"dimensions: got {dimensions!r:.60}, no list of abilities") from error
    if not isinstance(leaves, list) or not leaves or not all(leaf in list(BRANCHES) for leaf in leaves):
        raise BadRow(f"dimensions: got {dimensions!r:.60}; it is a list of some of {', '.join(BRANCHES)}")
    return tuple(dict.fromkeys(leaves))


# NExT-QA (Xiao et al. 2021, CVPR) and IntentQA (Li et al. 2023, ICCV): why, how and when, five options.
#
# Published as CSV, a row a question. Questions are reported by type: causal (why CW, how CH), temporal (previous TP,
# next
# TN, current TC), descriptive (location DL, counting DC, other DO); both count TP with TN.


class _NextQa(BaseModel):
    model_config = AS_PUBLISHED

    video: str
    question: str
    answer: Annotated[int, Field(ge=0, le=4)]
    qid: str
    type: Literal["CW", "CH", "TP", "TN", "TC", "DL", "DC", "DO"]
    a0: str
    a1: str
    a2: str
    a3: str
    a4: str


class _IntentQa(_NextQa):
    video: Annotated[str, Field(alias="video_id")]


def read_nextqa(path: Path) -> ParsedRows:
    """`val.csv` or `test.csv`: all eight types, the seven official ones, and C, T, D."""

    def item(row: _NextQa, note: AddNote) -> Sample:
        official = "TN" if row.type == "TP" else row.type
        return _nextqa_item(row, {"type": row.type, "official_type": official, "C/T/D": row.type[0]}, note)

    return parse_samples(csv_rows(path), _NextQa, item)


def read_intentqa(path: Path) -> ParsedRows:
    """`test.csv` or `val.csv`: the four types in the file, and the three official ones."""

    def item(row: _IntentQa, note: AddNote) -> Sample:
        official = "TP&TN" if row.type in ("TP", "TN") else row.type
        return _nextqa_item(row, {"type": row.type, "official_type": official}, note)

    return parse_samples(csv_rows(path), _IntentQa, item)


def _nextqa_item(row: _NextQa, groups: Mapping[str, str], note: AddNote) -> Sample:
    asked = make_question(row.question, (row.a0, row.a1, row.a2, row.a3, row.a4), note)
    in_each = {breakdown: (group,) for breakdown, group in groups.items()}
    return Sample(f"{row.video}_{row.qid}", row.video, asked, Target(row.answer), in_each)


# The sketch world: films that `kinodex sample` draws, with the `questions.jsonl` that it writes.


class _SketchRow(BaseModel):
    model_config = AS_PUBLISHED

    question_id: str
    video: str
    kind: str
    question: str
    options: tuple[str, ...]
    answer: int
    evidence: tuple[float, float]
    ranges: tuple[tuple[float, float], ...] = ()
    needs: str | None = None


def read_synthetic(path: Path) -> ParsedRows:
    """Read questions, grouped by the kind of moment that they ask for, and those of a story by what they need."""
    return parse_samples(json_lines(path), _SketchRow, _sketch_item)


def _sketch_item(row: _SketchRow, note: AddNote) -> Sample:
    if not 0 <= row.answer < len(row.options):
        raise BadRow(f"answer: got {row.answer}; there are {len(row.options)} options, counted from 0")
    evidence = row.ranges or (row.evidence,)
    for start_s, end_s in evidence:
        if not 0 <= start_s < end_s:
            raise BadRow(f"evidence: got {start_s} to {end_s}; it is a start and a later end in seconds")
    asked = make_question(row.question, row.options, note)
    groups = {"kind": (row.kind,), **({"needs": (row.needs,)} if row.needs else {})}
    return Sample(row.question_id, row.video, asked, Target(row.answer, evidence=evidence), groups)
