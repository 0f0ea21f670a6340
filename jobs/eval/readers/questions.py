"""The rows of benchmarks of questions, as they are published, and how each becomes an item.

A class is the row of a file: its fields by their published names, and `item`, which gives the question and its target
or raises `BadRow`. kinodex.jobs.eval.benchmarks names the files, and how rows are read from them.
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from kinodex.agent.protocol.question import Question
from kinodex.index.text import composed
from kinodex.index.times import parse_time
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.items import (
    AS_PUBLISHED,
    AddNote,
    BadRow,
    Item,
    Raw,
    Row,
    Target,
    json_file,
    json_lines,
    json_rows,
    lettered_answer,
    make_question,
    parquet_rows,
)

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Letter = Annotated[str, Field(pattern="^[A-Z]$")]
Options = Annotated[tuple[str, ...], Field(min_length=2)]
LengthS = Annotated[float, Field(gt=0)]
Range = tuple[float, float]


# Questions of one's own and those of the sketch world: a line of JSON each. docs/evaluation.md shows the lines.


class OwnOpenRow(Row, extra="forbid"):
    """A question without options; a misspelt field would silently leave out an answer or a range."""

    id: Text
    video: Text
    question: str
    answer: Annotated[str, StringConstraints(strip_whitespace=True)] | None = None
    evidence: tuple[Range, ...] = ()
    category: Text | tuple[Text, ...] = ()

    def item(self, note: AddNote) -> Item:
        return self._item((), Target(text=self.answer, evidence=self.evidence), note)

    def _item(self, options: tuple[str, ...], truth: Target, note: AddNote) -> Item:
        for start_s, end_s in self.evidence:
            if not 0 <= start_s < end_s:
                raise BadRow(f"evidence: got {start_s} to {end_s}; it is a start from 0 on and a later end in seconds")
        categories = (self.category,) if isinstance(self.category, str) else self.category
        groups = {"category": categories} if categories else {}
        return Item(self.id, self.video, make_question(self.question, options, note), truth, groups)


class OwnRow(OwnOpenRow):
    """A question with options; `answer` is the right option's own words or its letter."""

    options: Options

    def item(self, note: AddNote) -> Item:
        option = None if self.answer is None else _own_option(self.options, self.answer)
        return self._item(self.options, Target(option, evidence=self.evidence), note)


def _own_option(options: tuple[str, ...], answer: str) -> int:
    """Find the option with these words, in the same case first, else with this letter: an option may be a letter."""
    answer, bare = composed(answer), [composed(option.strip()) for option in options]
    folded = [option.casefold() for option in bare]
    letters = list(string.ascii_lowercase[: len(options)])
    for wanted, known in ((answer, bare), (answer.casefold(), folded), (answer.casefold(), letters)):
        if known.count(wanted) > 1:
            raise BadRow(f"answer: got {answer!r}, which are the words of {known.count(wanted)} options; give a letter")
        if wanted in known:
            return known.index(wanted)
    raise BadRow(f"answer: got {answer!r}; it is one of the options, or a letter up to {letters[-1].upper()}")


class SketchRow(Row):
    """A question about a drawn film: in groups by the kind of moment that it asks for, in a story by what it needs."""

    question_id: str
    video: str
    kind: str
    question: str
    options: tuple[str, ...]
    answer: int
    evidence: Range
    ranges: tuple[Range, ...] = ()
    needs: str | None = None

    def item(self, note: AddNote) -> Item:
        if not 0 <= self.answer < len(self.options):
            raise BadRow(f"answer: got {self.answer}; there are {len(self.options)} options, counted from 0")
        evidence = self.ranges or (self.evidence,)
        for start_s, end_s in evidence:
            if not 0 <= start_s < end_s:
                raise BadRow(f"evidence: got {start_s} to {end_s}; it is a start and a later end in seconds")
        asked = make_question(self.question, self.options, note)
        groups = _groups(kind=self.kind, needs=self.needs)
        return Item(self.question_id, self.video, asked, Target(self.answer, evidence=evidence), groups)


# EgoSchema: three-minute films of daily life, five options (Mangalam et al. 2023, arXiv 2308.09126).
#
# Published as `questions.json` (5,031 rows, no answers) and `subset_answers.json` (`{q_uid: index}` of 500). LLoVi and
# others hand out the 500 as one file, `subset_anno.json`: `{q_uid: row with "truth"}`.

EGOSCHEMA_FILES = ("subset_anno.json", "questions.json")
EGOSCHEMA_ANSWERS = "subset_answers.json"
EGOSCHEMA_S = 180.0


class EgoSchemaRow(Row):
    """One of all questions: only the benchmark's server knows most of the answers."""

    q_uid: str
    question: str
    option_0: Annotated[str, Field(alias="option 0")]
    option_1: Annotated[str, Field(alias="option 1")]
    option_2: Annotated[str, Field(alias="option 2")]
    option_3: Annotated[str, Field(alias="option 3")]
    option_4: Annotated[str, Field(alias="option 4")]
    truth: Annotated[int | None, Field(ge=0, le=4)] = None
    file: str

    def item(self, note: AddNote) -> Item:
        options = (self.option_0, self.option_1, self.option_2, self.option_3, self.option_4)
        asked = make_question(self.question, options, note)
        return Item(self.q_uid, self.q_uid, asked, Target(self.truth), duration_s=EGOSCHEMA_S)


class EgoSchemaSubsetRow(EgoSchemaRow):
    """One of the 500 questions with a published answer."""

    def item(self, note: AddNote) -> Item:
        if self.truth is None:
            raise BadRow(f"no truth; give {EGOSCHEMA_ANSWERS} beside {self.file}, or ask for egoschema-full")
        return super().item(note)


def egoschema_rows(path: Path) -> list[Raw]:
    """Read all rows, with the answers of the file beside them where they have none."""
    published, answers = json_file(path), _egoschema_answers(path)
    rows = list(published.values()) if isinstance(published, dict) else published
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{path} is no list or object of questions; give {' or '.join(EGOSCHEMA_FILES)} as published")
    return [
        (f"row {number}", {"truth": answers.get(str(row.get("q_uid"))), **_held(row), "file": path.name})
        for number, row in enumerate(rows, start=1)
    ]


def egoschema_subset_rows(path: Path) -> list[Raw]:
    """Read the rows that have an answer; all, if there is no file of answers. What is no id is noted as a defect."""
    answers = _egoschema_answers(path)
    rows = egoschema_rows(path)
    ids = [raw.get("q_uid") for _, raw in rows]
    may_be_in = [not answers or not isinstance(each, str | int) or str(each) in answers for each in ids]
    return [row for row, is_kept in zip(rows, may_be_in, strict=True) if is_kept]


def _held(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in row.items() if name != "truth" or value is not None}


def _egoschema_answers(path: Path) -> Mapping[str, Any]:
    beside = path.with_name(EGOSCHEMA_ANSWERS)
    answers = json_file(beside) if beside.is_file() else {}
    if not isinstance(answers, dict):
        raise UsageError(f"{beside} is no object of answers by question; give it as it is published")
    return answers


# NExT-QA (Xiao et al. 2021, CVPR) and IntentQA (Li et al. 2023, ICCV): why, how and when, five options.
#
# Questions are reported by type: causal (why CW, how CH), temporal (previous TP, next TN, current TC), descriptive
# (location DL, counting DC, other DO); both count TP with TN.


class NextQARow(Row):
    """In groups by all eight types, the seven official ones, and C, T, D."""

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

    def item(self, note: AddNote) -> Item:
        official = "TN" if self.type == "TP" else self.type
        return self._item({"type": self.type, "official_type": official, "C/T/D": self.type[0]}, note)

    def _item(self, groups: Mapping[str, str], note: AddNote) -> Item:
        asked = make_question(self.question, (self.a0, self.a1, self.a2, self.a3, self.a4), note)
        return Item(f"{self.video}_{self.qid}", self.video, asked, Target(self.answer), _groups(**groups))


class IntentQARow(NextQARow):
    """In groups by the four types in the file, and the three official ones."""

    video: Annotated[str, Field(alias="video_id")]

    def item(self, note: AddNote) -> Item:
        official = "TP&TN" if self.type in ("TP", "TN") else self.type
        return self._item({"type": self.type, "official_type": official}, note)


# LVBench: films of half an hour to two hours and more (Wang et al. 2024, arXiv 2406.08035).
#
# A line is a video with its questions in `qa`. The options stand in the question's own text. A question counts in every
# type that its list names, and once overall.

_LVBENCH_OPTION = re.compile(r"^\s*\(([A-Z])\)", re.MULTILINE)
_CLOCK = r"((?:\d{1,5}:)?\d{1,5}:\d{1,5})"
_CLOCK_RANGE = re.compile(rf"\s*{_CLOCK}\s*-\s*{_CLOCK}\s*")


class _LVBenchVideo(BaseModel):
    duration_minutes: LengthS


class _LVBenchQuestion(Row):
    uid: str
    question: str
    answer: Letter
    question_type: Annotated[tuple[str, ...], Field(min_length=1)]
    time_reference: str


class LVBenchRow(BaseModel):
    """In groups by type of question and of video; the time reference of a question is its evidence."""

    key: str
    type: str
    video_info: _LVBenchVideo
    qa: _LVBenchQuestion

    def item(self, note: AddNote) -> Item:
        text, options = _split_lvbench(self.qa.question)
        answer = lettered_answer("answer", self.qa.answer, options)
        return Item(
            self.qa.uid,
            self.key,
            make_question(text, options, note),
            Target(answer, evidence=_clock_range(self.qa.time_reference, note)),
            {"question_type": tuple(dict.fromkeys(self.qa.question_type)), "video_type": (self.type,)},
            self.video_info.duration_minutes * 60,
        )


def lvbench_rows(path: Path) -> Iterator[Raw]:
    """Read each question with the fields of its video."""
    for where, video in json_lines(path):
        questions = video.get("qa") if isinstance(video, dict) else None
        if not isinstance(questions, list):
            yield where, video
            continue
        for number, asked in enumerate(questions, start=1):
            yield f"{where}, question {number}", {**video, "qa": asked}


def _split_lvbench(text: str) -> tuple[str, list[str]]:
    """Split a text into question and options, "What year? (A) 1636 (B) 1366" with each option on its own line."""
    asked, *parts = _LVBENCH_OPTION.split(text)
    letters = "".join(parts[::2])
    if len(letters) < 2 or letters != string.ascii_uppercase[: len(letters)]:
        raise BadRow(f"question: got options {letters or 'none'} in its text; each is on a line, from (A) on")
    return asked, parts[1::2]


def _clock_range(time_reference: str, note: AddNote) -> tuple[Range, ...]:
    """Parse a range of whole seconds, of which the last may be the first."""
    match = _CLOCK_RANGE.fullmatch(time_reference)
    start_s, end_s = map(parse_time, match.groups()) if match else (0.0, -1.0)
    if end_s < start_s:
        note(f"time_reference: got {time_reference!r}, not MM:SS-MM:SS; the question is kept without evidence")
        return ()
    return ((start_s, max(end_s, start_s + 1)),)


# Video-MME: 900 films of seconds to an hour, four options (Fu et al. 2024, arXiv 2405.21075).
#
# Whether subtitles are shown is a choice of the run.

_LETTER = re.compile(r"\s*([A-Z])[.:)]\s*")


class VideoMMERow(Row):
    """In groups by duration, domain, sub-category and task. A video's name is its YouTube id."""

    duration: Literal["short", "medium", "long"]
    domain: str
    sub_category: str
    video: Annotated[str, Field(alias="videoID")]
    question_id: str
    task_type: str
    question: str
    options: Options
    answer: Letter

    def item(self, note: AddNote) -> Item:
        answer = lettered_answer("answer", self.answer, self.options)
        letters = [match and match[1] for match in map(_LETTER.match, self.options)]
        if letters != list(string.ascii_uppercase[: len(self.options)]):
            raise BadRow(f"options: got {' | '.join(self.options)!r:.80}; each begins with its letter, from A. on")
        asked = make_question(self.question, [_LETTER.sub("", option, count=1) for option in self.options], note)
        groups = _groups(**{name: getattr(self, name) for name in ("duration", "domain", "sub_category", "task_type")})
        return Item(self.question_id, self.video, asked, Target(answer), groups)


# Video-MME-v2: 800 films with a group of four questions each, eight options (Fu et al. 2026, arXiv 2604.05015).
#
# Its own score is by group, not by question: `kinodex.jobs.eval.score.group_scores`.

STRUCTURES = ("[1,2,3,4]", "[1,[2,3],4]", "[[1,2],3,4]")
"""The orders in which a chain of four questions may stand."""
_LINE_LETTER = re.compile(r"^\s*([A-Z])[.)]\s*", re.MULTILINE)


class VideoMMEv2Row(Row):
    """In groups by level, type of the group, and both heads. A video's name is its number, as 001."""

    video_id: Annotated[str, Field(min_length=1)]
    question_id: str
    question: str
    options: Options
    answer: Letter
    group_type: Literal["relevance", "logic"]
    group_structure: str | None = None
    level: str | None = None
    second_head: str | None = None
    third_head: str | None = None

    @field_validator("options", mode="before")
    @classmethod
    def _lines(cls, options: object) -> object:
        """Split a text of lettered lines, in which an option may go over several; a list without letters stays one."""
        if isinstance(options, list | tuple) and options and all(_LINE_LETTER.match(str(each)) for each in options):
            options = "\n".join(map(str, options))
        if not isinstance(options, str):
            return options
        before, *parts = _LINE_LETTER.split(options)
        letters = "".join(parts[::2])
        if before.strip() or letters != string.ascii_uppercase[: len(letters)]:
            raise ValueError(f"got {options[:60]!r}; each option is on a line and begins with its letter, from A. on")
        return parts[1::2]

    def item(self, note: AddNote) -> Item:
        structure = (self.group_structure or "").replace(" ", "")
        if self.group_type == "logic" and structure not in STRUCTURES:
            note(f"group_structure: got {structure or 'none'}; its group is scored as {STRUCTURES[0]}")
        names = ("level", "group_type", "group_structure", "second_head", "third_head")
        groups = {name: value for name in names if (value := getattr(self, name)) != "None"}
        asked = make_question(self.question, self.options, note)
        truth = Target(lettered_answer("answer", self.answer, self.options))
        return Item(self.question_id, self.video_id, asked, truth, _groups(**groups))


# MLVU: nine tasks about films of three minutes to two hours (Zhou et al. 2024, arXiv 2406.04264).
#
# Published as a JSON array for each task: seven with candidates, whose mean over the tasks is its M-Avg, and two with
# free answers, which its judge scores (G-Avg). Rows of the test set have a `question_id` and may have no answer; those
# of the dev set have no ids and are known by task and row.

MLVU_CHOICES = (
    *("1_plotQA.json", "2_needle.json", "3_ego.json", "4_count.json", "5_order.json"),
    *("6_anomaly_reco.json", "7_topic_reasoning.json"),
)
MLVU_OPEN = ("8_sub_scene.json", "9_summary.json")
MLVU_KINDS = {
    **dict.fromkeys(("topic_reasoning", "anomaly_reco", "summary"), "holistic"),
    **dict.fromkeys(("findNeedle", "ego", "plotQA", "subPlot"), "single detail"),
    **dict.fromkeys(("order", "count"), "multi-detail"),
}


class MLVUOpenRow(Row):
    """A question with a free answer; in groups by task and kind of task."""

    id: str
    video: Annotated[str, Field(min_length=1)]
    duration: LengthS | None = None
    question: str
    question_type: Annotated[str, Field(min_length=1)]
    answer: str | None = None

    def item(self, note: AddNote) -> Item:
        return self._item((), Target(text=self.answer), note)

    def _item(self, options: tuple[str, ...], target: Target, note: AddNote) -> Item:
        groups = _groups(task=self.question_type, kind=MLVU_KINDS.get(self.question_type))
        asked = make_question(self.question, options, note)
        return Item(self.id, PurePosixPath(self.video).name, asked, target, groups, self.duration)


class MLVURow(MLVUOpenRow):
    """A question with candidates, of which the answer is one."""

    candidates: Options

    def item(self, note: AddNote) -> Item:
        bare, option = [candidate.strip() for candidate in self.candidates], None
        if self.answer is not None:
            if self.answer.strip() not in bare:
                raise BadRow(f"answer: got {self.answer[:60]!r}, which is none of the {len(bare)} candidates")
            option = bare.index(self.answer.strip())
            if bare.count(bare[option]) > 1:
                of_several = "the text of several candidates; the first of them counts as right"
                note(f"answer: got {bare[option][:60]!r}, {of_several}")
        return self._item(self.candidates, Target(option), note)


def _mlvu_rows(files: Sequence[str], path: Path) -> Iterator[Raw]:
    """Read the first of these files with the others beside it, or another file alone."""
    beside = (path.with_name(name) for name in files[1:]) if path.name == files[0] else ()
    for file in (path, *filter(Path.is_file, beside)):
        for number, (where, raw) in enumerate(json_rows(file), start=1):
            place = where if file is path else f"{file.name}, {where}"
            if isinstance(raw, dict):
                known = raw.get("question_id")
                raw = {"id": str(known) if isinstance(known, str | int) else f"{file.stem}-{number}", **raw}
            yield place, raw


mlvu_rows, mlvu_open_rows = partial(_mlvu_rows, MLVU_CHOICES), partial(_mlvu_rows, MLVU_OPEN)


# MINERVA: questions of several steps about films of two minutes to an hour and a half (Nagrani et al. 2025,
# arXiv 2505.00681).
#
# Each row has a reasoning trace written by hand; it holds the answer, so nothing of it goes into an item.

_YOUTUBE = re.compile(r"(?:[?&]v=|youtu\.be/|/shorts/|/embed/)([\w-]+)")


class MinervaRow(Row):
    """In groups by each skill that it needs, domain and category. A video's name is its YouTube id."""

    key: str
    video_id: Annotated[str, Field(min_length=1)]
    question: str
    answer: str | None = None
    answer_choice_0: str
    answer_choice_1: str
    answer_choice_2: str
    answer_choice_3: str
    answer_choice_4: str
    answer_id: Annotated[int, Field(ge=0, le=4)]
    question_type: Annotated[str, Field(validation_alias=AliasChoices("question_type", "question type"))] = ""
    split: str = ""
    category: str = ""

    def item(self, note: AddNote) -> Item:
        options = [getattr(self, f"answer_choice_{number}") for number in range(5)]
        if not all(option.strip() for option in options):
            raise BadRow("answer_choice: got one without words; there are five")
        if self.answer is not None and self.answer.strip() != options[self.answer_id].strip():
            other = f"not the text of choice {self.answer_id}; the question is kept with that"
            note(f"answer: got {self.answer[:60]!r}, {other}")
        skills = tuple(filter(None, map(str.strip, self.question_type.split(","))))
        groups = {**({"skill": skills} if skills else {}), **_groups(split=self.split, category=self.category)}
        address = _YOUTUBE.search(self.video_id)
        video = address[1] if address else self.video_id
        return Item(self.key, video, make_question(self.question, options, note), Target(self.answer_id), groups)


# CG-Bench: questions about long films with the clues that answer them (Chen et al. 2024, arXiv 2412.12075).
#
# `clue_intervals`, in seconds, are the evidence. Its own scores of an answer's clues are mIoU and recall: `kinodex eval
# ground` with the same file.


class CluedRow(Row):
    """A row without its options and answer, which would help to find the clues."""

    qid: str
    video_uid: Annotated[str, Field(min_length=1)]
    question: Annotated[str, Field(min_length=1)]
    clue_intervals: tuple[Range, ...] = ()
    domain: str | None = None
    sub_category: str | None = None
    duration: LengthS | None = None


class CGBenchRow(CluedRow):
    """In groups by domain and sub-category. A video's name is its `video_uid`."""

    choices: Options
    right_answer: Letter

    def item(self, note: AddNote) -> Item:
        answer = lettered_answer("right_answer", self.right_answer, self.choices, "choices")
        clues = tuple(clue for clue in self.clue_intervals if 0 <= clue[0] < clue[1])
        if len(clues) < len(self.clue_intervals):
            note("clue_intervals: got one that ends where it begins or before; the question is kept without it")
        asked = make_question(self.question, self.choices, note)
        groups = _groups(domain=self.domain, sub_category=self.sub_category)
        return Item(self.qid, self.video_uid, asked, Target(answer, evidence=clues), groups, self.duration)


# MMBench-Video: free-form questions about films of some minutes (Fang et al. 2024, arXiv 2406.14515).
#
# A named model judges answers from 0 to 3. A question counts once in every leaf of the tree of abilities that it names,
# in every branch that holds one of them, and in perception or reasoning or both.

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


class MMBenchVideoRow(Row):
    """In groups by leaf, branch, and perception or reasoning."""

    index: str
    video: str
    question: str
    answer: Annotated[str, Field(min_length=1)]
    dimensions: str

    def item(self, note: AddNote) -> Item:
        leaves = _leaves(self.dimensions)
        groups = {
            "dimension": leaves,
            "ability": tuple(dict.fromkeys(BRANCHES[leaf][0] for leaf in leaves)),
            "perception/reasoning": tuple(dict.fromkeys(BRANCHES[leaf][1] for leaf in leaves)),
        }
        return Item(self.index, self.video, Question(self.question.strip()), Target(text=self.answer), groups)


def _leaves(dimensions: str) -> tuple[str, ...]:
    """Parse the leaves in a list that is written as a string: "['OCR', 'Counting']"."""
    try:
        leaves = ast.literal_eval(dimensions)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise BadRow(f"dimensions: got {dimensions!r:.60}, no list of abilities") from error
    if not isinstance(leaves, list) or not leaves or not all(leaf in list(BRANCHES) for leaf in leaves):
        raise BadRow(f"dimensions: got {dimensions!r:.60}; it is a list of some of {', '.join(BRANCHES)}")
    return tuple(dict.fromkeys(leaves))


# LongVideoBench: films of seconds to an hour with subtitles (Wu et al. 2024, arXiv 2407.15754).
#
# Published as `lvb_val.json`, and as parquet without levels and with candidates in `option0` to `option4`, "N/A" at the
# end where there is none. `position` counts frames at a rate that the file does not tell: it gives no evidence.

_OPTION_COLUMN = re.compile(r"option(0|[1-9]\d?)")


class LongVideoBenchRow(Row):
    """In groups by duration, category, level and topic. Rows of the test set have no answer."""

    id: str
    video_path: str
    question: str
    candidates: Options
    correct_choice: int | None = None
    topic_category: str
    question_category: str
    level: str | None = None
    duration_group: str
    duration: LengthS

    @model_validator(mode="before")
    @classmethod
    def _candidates(cls, row: Any) -> Any:
        """Turn the parquet file's columns of options into the JSON file's list."""
        if not isinstance(row, dict) or "candidates" in row:
            return row
        numbers = sorted(int(match[1]) for match in map(_OPTION_COLUMN.fullmatch, row) if match)
        options = [row[f"option{number}"] for number in numbers]
        while options and options[-1] in (None, "N/A"):  # one before a real option is an option: the answer counts it
            options.pop()
        return {**row, "candidates": options}

    def item(self, note: AddNote) -> Item:
        truth = None if self.correct_choice == -1 else self.correct_choice
        if truth is not None and not 0 <= truth < len(self.candidates):
            raise BadRow(f"correct_choice: got {truth}; there are {len(self.candidates)} candidates, counted from 0")
        groups = {"duration_group": self.duration_group, "question_category": self.question_category}
        video, asked = PurePosixPath(self.video_path).stem, make_question(self.question, self.candidates, note)
        groups_of = _groups(**groups, level=self.level, topic=self.topic_category)
        return Item(self.id, video, asked, Target(truth), groups_of, self.duration)


def longvideobench_rows(path: Path) -> Iterator[Raw]:
    """Read rows of either form."""
    return parquet_rows(path) if path.suffix == ".parquet" else json_rows(path)


# LongTVQA and LongTVQA+: TVQA and TVQA+ asked about whole episodes (LongVideoAgent, arXiv 2512.20618).
#
# The question is about an episode; the clip where it happens, the seconds in it and the boxes are part of what is true,
# and no agent is to know them.

_PAIR: TypeAdapter[Range] = TypeAdapter(Range, config=AS_PUBLISHED)


class LongTVQARow(Row):
    """In groups by the episode's season. `ts` counts from the start of the clip."""

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

    def item(self, note: AddNote) -> Item:
        if not self.occur_clip.startswith(self.episode_name):
            note(
                f"occur_clip: got {self.occur_clip}, which is not of episode {self.episode_name}; the question is kept"
            )
        asked = make_question(self.q, (self.a0, self.a1, self.a2, self.a3, self.a4), note)
        truth = Target(int(self.answer[1]), evidence=_clip_range(self.ts, note), clip=self.occur_clip)
        season = re.sub(r"e\d+$", "", self.episode_name)
        return Item(self.qid, self.episode_name, asked, truth, {"season": (season,)})


def _clip_range(ts: object, note: AddNote) -> tuple[Range, ...]:
    """Parse a range written as `[12.3, 20.11]` or as TVQA's `"12.3-20.11"`."""
    try:
        start_s, end_s = _PAIR.validate_python(ts.split("-") if isinstance(ts, str) else ts)
    except ValidationError:
        start_s, end_s = 0.0, 0.0
    if not 0 <= start_s < end_s:
        note(f"ts: got {ts!r}, not a start and a later end in seconds; the question is kept without evidence")
        return ()
    return ((start_s, end_s),)


def _groups(**categories: str | None) -> dict[str, tuple[str, ...]]:
    """A category of each breakdown, without those that a row does not have."""
    return {breakdown: (name,) for breakdown, name in categories.items() if name}
