"""Readers of benchmarks, one a module: from the published annotation file to samples.

They may import `jobs.benchmarks`, the questions of `agent` and `jobs.errors`; the registry lists them.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, Field, field_validator

from kinodex.jobs.eval.samples import (
    AS_PUBLISHED,
    AddNote,
    BadRow,
    ParsedRows,
    Raw,
    Sample,
    Target,
    json_lines,
    json_rows,
    lettered_answer,
    make_question,
    parquet_rows,
    parse_samples,
)

# CG-Bench: questions about long films with the clues that answer them (Chen et al. 2024, arXiv 2412.12075).
#
# Published as JSON, `cgbench.json` and, with 3,000 questions, `cgbench_mini.json`. `clue_intervals`, in seconds, are
# the
# evidence. Its own scores of an answer's clues are mIoU and recall: `kinodex eval ground` with the same file.


class CluedRow(BaseModel):
    """A row without its options and answer."""

    model_config = AS_PUBLISHED

    qid: str
    video_uid: Annotated[str, Field(min_length=1)]
    question: Annotated[str, Field(min_length=1)]
    clue_intervals: tuple[tuple[float, float], ...] = ()
    domain: str | None = None
    sub_category: str | None = None
    duration: Annotated[float, Field(gt=0)] | None = None


class _CgBenchRow(CluedRow):
    choices: Annotated[tuple[str, ...], Field(min_length=2)]
    right_answer: Annotated[str, Field(pattern="^[A-Z]$")]


def read_cg_bench(path: Path) -> ParsedRows:
    """Read questions, grouped by domain and sub-category. A video's name is its `video_uid`."""
    return parse_samples(json_rows(path), _CgBenchRow, _cg_bench_item)


def _cg_bench_item(row: _CgBenchRow, note: AddNote) -> Sample:
    answer = lettered_answer("right_answer", row.right_answer, row.choices, "choices")
    clues = tuple(clue for clue in row.clue_intervals if 0 <= clue[0] < clue[1])
    if len(clues) < len(row.clue_intervals):
        note("clue_intervals: got one that ends where it begins or before; the question is kept without it")
    groups = {"domain": row.domain, "sub_category": row.sub_category}
    return Sample(
        row.qid,
        row.video_uid,
        make_question(row.question, row.choices, note),
        Target(answer, evidence=clues),
        {name: (value,) for name, value in groups.items() if value},
        row.duration,
    )


# LVBench: films of half an hour to two hours and more (Wang et al. 2024, arXiv 2406.08035).
#
# Published as `video_info.meta.jsonl`, a line a video with its questions in `qa`. The options stand in the question's
# own
# text. A question counts in every type that its list names, and once overall.

_OPTION = re.compile(r"^\s*\(([A-Z])\)", re.MULTILINE)
_CLOCK = r"((?:\d{1,5}:)?\d{1,5}:\d{1,5})"
_RANGE = re.compile(rf"\s*{_CLOCK}\s*-\s*{_CLOCK}\s*")


class _VideoInfo(BaseModel):
    duration_minutes: Annotated[float, Field(gt=0)]


class _Question(BaseModel):
    model_config = AS_PUBLISHED

    uid: str
    question: str
    answer: Annotated[str, Field(pattern="^[A-Z]$")]
    question_type: Annotated[tuple[str, ...], Field(min_length=1)]
    time_reference: str


class _LVBenchRow(BaseModel):
    key: str
    type: str
    video_info: _VideoInfo
    qa: _Question


def read_lvbench(path: Path) -> ParsedRows:
    """Read questions, grouped by type of question and of video; the time reference of a question is its evidence."""
    return parse_samples(_questions(path), _LVBenchRow, _lvbench_item)


def _questions(path: Path) -> Iterator[Raw]:
    """Read each question with the fields of its video."""
    for where, video in json_lines(path):
        questions = video.get("qa") if isinstance(video, dict) else None
        if not isinstance(questions, list):
            yield where, video
            continue
        for number, asked in enumerate(questions, start=1):
            yield f"{where}, question {number}", {**video, "qa": asked}


def _lvbench_item(row: _LVBenchRow, note: AddNote) -> Sample:
    text, options = _split_lvbench(row.qa.question)
    answer = lettered_answer("answer", row.qa.answer, options)
    return Sample(
        row.qa.uid,
        row.key,
        make_question(text, options, note),
        Target(answer, evidence=_evidence(row.qa.time_reference, note)),
        {"question_type": tuple(dict.fromkeys(row.qa.question_type)), "video_type": (row.type,)},
        row.video_info.duration_minutes * 60,
    )


def _split_lvbench(text: str) -> tuple[str, list[str]]:
    """Split a text into question and options, "What year? (A) 1636 (B) 1366" with each option on its own line."""
    asked, *parts = _OPTION.split(text)
    letters = "".join(parts[::2])
    if len(letters) < 2 or letters != string.ascii_uppercase[: len(letters)]:
        raise BadRow(f"question: got options {letters or 'none'} in its text; each is on a line, from (A) on")
    return asked, parts[1::2]


def _evidence(time_reference: str, note: AddNote) -> tuple[tuple[float, float], ...]:
    """Parse a range of whole seconds, of which the last may be the first."""
    match = _RANGE.fullmatch(time_reference)
    start_s, end_s = map(_seconds, match.groups()) if match else (0.0, -1.0)
    if end_s < start_s:
        note(f"time_reference: got {time_reference!r}, not MM:SS-MM:SS; the question is kept without evidence")
        return ()
    return ((start_s, max(end_s, start_s + 1)),)


def _seconds(clock: str) -> float:
    seconds = 0.0
    for part in clock.split(":"):
        seconds = seconds * 60 + int(part)
    return seconds


# MINERVA: questions of several steps about films of two minutes to an hour and a half (Nagrani et al. 2025,
# arXiv 2505.00681).
#
# Published as a JSON array, `minerva.json`, linked from google-deepmind/neptune. Each row has a reasoning trace written
# by hand; it holds the answer, so nothing of it goes into a sample.

_YOUTUBE = re.compile(r"(?:[?&]v=|youtu\.be/|/shorts/|/embed/)([\w-]+)")


class _MinervaRow(BaseModel):
    model_config = AS_PUBLISHED

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


def read_minerva(path: Path) -> ParsedRows:
    """Read questions, grouped by each skill that they need, domain and category. A video's name is its YouTube id."""
    return parse_samples(json_rows(path), _MinervaRow, _minerva_item)


def _minerva_item(row: _MinervaRow, note: AddNote) -> Sample:
    options = (row.answer_choice_0, row.answer_choice_1, row.answer_choice_2, row.answer_choice_3, row.answer_choice_4)
    if not all(option.strip() for option in options):
        raise BadRow("answer_choice: got one without words; there are five")
    if row.answer is not None and row.answer.strip() != options[row.answer_id].strip():
        note(f"answer: got {row.answer[:60]!r}, not the text of choice {row.answer_id}; the question is kept with that")
    skills = tuple(filter(None, map(str.strip, row.question_type.split(","))))
    groups = {"skill": skills, "split": (row.split,), "category": (row.category,)}
    address = _YOUTUBE.search(row.video_id)
    return Sample(
        row.key,
        address[1] if address else row.video_id,
        make_question(row.question, options, note),
        Target(row.answer_id),
        {name: values for name, values in groups.items() if all(values) and values},
    )


# MLVU: nine tasks about films of three minutes to two hours (Zhou et al. 2024, arXiv 2406.04264).
#
# Published as a JSON array for each task, `1_plotQA.json` to `9_summary.json`: seven with candidates, whose mean over
# the
# tasks is its M-Avg, and two with free answers, which its judge scores (G-Avg). Rows of the test set have a
# `question_id` and may have no answer; those of the dev set have no ids and are known by task and row.

CHOICE_FILES = (
    "1_plotQA.json",
    "2_needle.json",
    "3_ego.json",
    "4_count.json",
    "5_order.json",
    "6_anomaly_reco.json",
    "7_topic_reasoning.json",
)
OPEN_FILES = ("8_sub_scene.json", "9_summary.json")
KINDS = {
    "topic_reasoning": "holistic",
    "anomaly_reco": "holistic",
    "summary": "holistic",
    "findNeedle": "single detail",
    "ego": "single detail",
    "plotQA": "single detail",
    "subPlot": "single detail",
    "order": "multi-detail",
    "count": "multi-detail",
}


class _MLVURow(BaseModel):
    model_config = AS_PUBLISHED

    id: str
    video: Annotated[str, Field(min_length=1)]
    duration: Annotated[float, Field(gt=0)] | None = None
    question: str
    question_type: Annotated[str, Field(min_length=1)]
    answer: str | None = None


class _Choice(_MLVURow):
    candidates: Annotated[tuple[str, ...], Field(min_length=2)]


def read_choices(path: Path) -> ParsedRows:
    """Read the questions with candidates: of `1_plotQA.json` and the tasks beside it, or of another file alone."""
    return parse_samples(_rows(path, CHOICE_FILES), _Choice, _choice)


def read_open_ended(path: Path) -> ParsedRows:
    """Read the questions with free answers: of `8_sub_scene.json` and `9_summary.json` beside it, or of one file."""
    return parse_samples(
        _rows(path, OPEN_FILES), _MLVURow, lambda row, note: _mlvu_item(row, (), Target(text=row.answer), note)
    )


def _rows(path: Path, files: Iterable[str]) -> Iterator[Raw]:
    first, *others = files
    beside = (path.with_name(name) for name in others) if path.name == first else ()
    for file in (path, *filter(Path.is_file, beside)):
        for number, (where, raw) in enumerate(json_rows(file), start=1):
            place = where if file is path else f"{file.name}, {where}"
            yield place, {"id": _id(raw, file, number), **raw} if isinstance(raw, dict) else raw


def _id(raw: dict[str, object], file: Path, number: int) -> str:
    known = raw.get("question_id")
    return str(known) if isinstance(known, str | int) else f"{file.stem}-{number}"


def _choice(row: _Choice, note: AddNote) -> Sample:
    bare = [candidate.strip() for candidate in row.candidates]
    if row.answer is not None and row.answer.strip() not in bare:
        raise BadRow(f"answer: got {row.answer[:60]!r}, which is none of the {len(bare)} candidates")
    option = None if row.answer is None else bare.index(row.answer.strip())
    if option is not None and bare.count(bare[option]) > 1:
        note(f"answer: got {bare[option][:60]!r}, the text of several candidates; the first of them counts as right")
    return _mlvu_item(row, row.candidates, Target(option), note)


def _mlvu_item(row: _MLVURow, options: tuple[str, ...], target: Target, note: AddNote) -> Sample:
    kind = KINDS.get(row.question_type)
    groups = {"task": (row.question_type,), **({"kind": (kind,)} if kind else {})}
    video = PurePosixPath(row.video).name
    return Sample(row.id, video, make_question(row.question, options, note), target, groups, row.duration)


# Video-MME: 900 films of seconds to an hour, four options (Fu et al. 2024, arXiv 2405.21075).
#
# Published as a parquet file, a row a question. Whether subtitles are shown is a choice of the run.

_VIDEO_MME_LETTER = re.compile(r"\s*([A-Z])[.:)]\s*")


class _VideoMMERow(BaseModel):
    model_config = AS_PUBLISHED

    duration: Literal["short", "medium", "long"]
    domain: str
    sub_category: str
    video: Annotated[str, Field(alias="videoID")]
    question_id: str
    task_type: str
    question: str
    options: Annotated[tuple[str, ...], Field(min_length=2)]
    answer: Annotated[str, Field(pattern="^[A-Z]$")]


def read_video_mme(path: Path) -> ParsedRows:
    """Read questions, grouped by duration, domain, sub-category and task. A video's name is its YouTube id."""
    return parse_samples(parquet_rows(path), _VideoMMERow, _video_mme_item)


def _video_mme_item(row: _VideoMMERow, note: AddNote) -> Sample:
    answer = lettered_answer("answer", row.answer, row.options)
    groups = {
        "duration": (row.duration,),
        "domain": (row.domain,),
        "sub_category": (row.sub_category,),
        "task_type": (row.task_type,),
    }
    asked = make_question(row.question, _bare(row.options), note)
    return Sample(row.question_id, row.video, asked, Target(answer), groups)


def _bare(options: tuple[str, ...]) -> list[str]:
    """Strip the letters "A. " that the file puts before options."""
    letters = [match and match[1] for match in map(_VIDEO_MME_LETTER.match, options)]
    if letters != list(string.ascii_uppercase[: len(options)]):
        raise BadRow(f"options: got {' | '.join(options)!r:.80}; each begins with its letter, from A. on")
    return [_VIDEO_MME_LETTER.sub("", option, count=1) for option in options]


# Video-MME-v2: 800 films with a group of four questions each, eight options (Fu et al. 2026, arXiv 2604.05015).
#
# Published as `test.parquet`, a row a question: `video_id`, `question_id`, `question`, `options` (one a line with its
# letter, or a list), `answer`, `level` (1 to 3), `group_type`, `group_structure`, `second_head`, `third_head`. Its own
# score is by group, not by question: `jobs.evaluation.score.question_groups`.

STRUCTURES = ("[1,2,3,4]", "[1,[2,3],4]", "[[1,2],3,4]")
"""The orders in which a chain of four questions may stand."""
_VIDEO_MME_V2_LETTER = re.compile(r"^\s*([A-Z])[.)]\s*", re.MULTILINE)


class _VideoMMEv2Row(BaseModel):
    model_config = AS_PUBLISHED

    video_id: Annotated[str, Field(min_length=1)]
    question_id: str
    question: str
    options: Annotated[tuple[str, ...], Field(min_length=2)]
    answer: Annotated[str, Field(pattern="^[A-Z]$")]
    group_type: Literal["relevance", "logic"]
    group_structure: str | None = None
    level: str | None = None
    second_head: str | None = None
    third_head: str | None = None

    @field_validator("options", mode="before")
    @classmethod
    def _lines(cls, options: object) -> object:
        """Split a text of lettered lines, in which an option may go over several; a list stays one."""
        if (
            isinstance(options, list | tuple)
            and options
            and all(_VIDEO_MME_V2_LETTER.match(str(each)) for each in options)
        ):
            return _split_video_mme_v2("\n".join(map(str, options)))
        return _split_video_mme_v2(options) if isinstance(options, str) else options


def read_video_mme_v2(path: Path) -> ParsedRows:
    """Read questions, grouped by level, type of their group, and both heads. A video's name is its number, as 001."""
    return parse_samples(parquet_rows(path), _VideoMMEv2Row, _video_mme_v2_item)


def _split_video_mme_v2(text: str) -> list[str]:
    before, *parts = _VIDEO_MME_V2_LETTER.split(text)
    letters = "".join(parts[::2])
    if before.strip() or letters != string.ascii_uppercase[: len(letters)]:
        raise ValueError(f"got {text[:60]!r}; each option is on a line and begins with its letter, from A. on")
    return parts[1::2]


def _video_mme_v2_item(row: _VideoMMEv2Row, note: AddNote) -> Sample:
    structure = (row.group_structure or "").replace(" ", "")
    if row.group_type == "logic" and structure not in STRUCTURES:
        note(f"group_structure: got {structure or 'none'}; its group is scored as {STRUCTURES[0]}")
    groups = {
        "level": row.level,
        "group_type": row.group_type,
        "group_structure": row.group_structure,
        "second_head": row.second_head,
        "third_head": row.third_head,
    }
    return Sample(
        row.question_id,
        row.video_id,
        make_question(row.question, row.options, note),
        Target(lettered_answer("answer", row.answer, row.options)),
        {name: (value,) for name, value in groups.items() if value and value != "None"},
    )
