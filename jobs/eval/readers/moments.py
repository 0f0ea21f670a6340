"""Readers of benchmarks whose answers are ranges of time, one a module: from the published file to moment samples.

They may import `jobs.benchmarks` and `jobs.errors`; `jobs.benchmarks.moment_registry` lists them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import BaseModel, Field, StringConstraints

from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.readers.choices import CluedRow
from kinodex.jobs.eval.samples import (
    AS_PUBLISHED,
    AddNote,
    BadRow,
    MomentSample,
    ParsedMoments,
    Range,
    Raw,
    check_range,
    is_there,
    json_file,
    json_lines,
    json_rows,
    parse_moments,
    text_lines,
)

# ActivityNet Captions: sentences that tell films of about two minutes (Krishna et al. 2017, arXiv 1705.00754).
#
# Published as JSON, `val_1.json` and others: `{video: {"duration", "timestamps": [[start, end], ...], "sentences"}}`. A
# sentence is known by its video and its place in it, from 0.


class _ActivityNetRow(BaseModel):
    model_config = AS_PUBLISHED

    video: Annotated[str, Field(min_length=1)]
    number: int
    duration: Annotated[float, Field(gt=0)]
    times: tuple[float, float]
    sentence: str


def read_activitynet_captions(path: Path) -> ParsedMoments:
    """Read searches, each with one moment; one that ends after its film is cut there, as its annotators saw no more."""
    return parse_moments(_activitynet_rows(path), _ActivityNetRow, _activitynet_item)


def _activitynet_rows(path: Path) -> Iterator[Raw]:
    videos = json_file(path)
    if not isinstance(videos, dict):
        raise UsageError(f"{path} is no object of videos; give val_1.json or another file as published")
    for video, facts in videos.items():
        facts = facts if isinstance(facts, dict) else {}
        times, sentences = facts.get("timestamps"), facts.get("sentences")
        if not (isinstance(times, list) and isinstance(sentences, list) and len(times) == len(sentences)):
            yield f"video {video}", BadRow("timestamps: they are a list, as long as that of sentences")
            continue
        for number, (pair, sentence) in enumerate(zip(times, sentences, strict=True)):
            row = {"number": number, "duration": facts.get("duration"), "times": pair, "sentence": sentence}
            yield f"video {video}, sentence {number}", {"video": video, **row}


def _activitynet_item(row: _ActivityNetRow, note: AddNote) -> MomentSample:
    text = row.sentence.strip()
    if not text:
        raise BadRow("sentence: got no words")
    start_s, end_s = row.times
    if end_s > row.duration:
        note(f"timestamps: got an end at {end_s:g} s of {row.duration:g}; the moment is cut there")
    moment = (row.video, *check_range("timestamps", start_s, min(end_s, row.duration)))
    return MomentSample(
        f"{row.video}-{row.number}", "activitynet-captions", text, row.video, (moment,), duration_s=row.duration
    )


# CG-Bench: where the clues lie that answer a question about a long film (Chen et al. 2024, arXiv 2412.12075).
#
# Published as JSON, `cgbench.json` and, with 3,000 questions, `cgbench_mini.json`. Here the question is the search and
# its clue intervals are the moments; `jobs.benchmarks.datasets.cg_bench` reads the same file as questions with options.


def read_cg_bench(path: Path) -> ParsedMoments:
    """Read the questions as searches; the options and the answer, which would help to find the clues, are left out."""
    return parse_moments(json_rows(path), CluedRow, _cg_bench_item)


def _cg_bench_item(row: CluedRow, note: AddNote) -> MomentSample:
    clues = tuple((row.video_uid, *check_range("clue_intervals", *clue)) for clue in row.clue_intervals)
    return MomentSample(
        row.qid,
        "cg-bench",
        row.question.strip(),
        row.video_uid,
        clues,
        category=row.sub_category or row.domain,
        duration_s=row.duration,
    )


# Charades-STA: sentences about half a minute of indoor life, and where they hold (Gao et al. 2017, arXiv 1705.02101).
#
# Published as text, `charades_sta_test.txt`: `VIDEO START END##SENTENCE` on each line. The lines have no ids: a
# search is
# known by its line's number.


class _CharadesRow(BaseModel):
    model_config = AS_PUBLISHED

    line: int
    video: Annotated[str, Field(min_length=1)]
    start: float
    end: float
    sentence: Annotated[str, Field(min_length=1)]


def read_charades_sta(path: Path) -> ParsedMoments:
    """Read searches, one a line, each with one moment."""
    return parse_moments(_charades_rows(path), _CharadesRow, _charades_item)


def _charades_rows(path: Path) -> Iterator[Raw]:
    for number, line in text_lines(path):
        place, mark, sentence = line.partition("##")
        words = place.split()
        if not mark or len(words) != 3:
            yield f"line {number}", BadRow(f"got {line[:60]!r}; a line is VIDEO START END##SENTENCE")
            continue
        video, start, end = words
        raw = {"line": number, "video": video, "start": start, "end": end, "sentence": sentence.strip()}
        yield f"line {number}", raw


def _charades_item(row: _CharadesRow, note: AddNote) -> MomentSample:
    moment = (row.video, *check_range("times", row.start, row.end))
    return MomentSample(str(row.line), "charades-sta", row.sentence, row.video, (moment,))


# Searches of one's own: a line of JSON each, about videos of one's own library. docs/evaluation.md shows the lines.

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


# A misspelt field of one's own file would silently leave out a moment or a video.
class _OwnRow(BaseModel, extra="forbid"):
    model_config = AS_PUBLISHED

    id: Text
    text: Annotated[str, StringConstraints(strip_whitespace=True)] = ""
    image: Text | None = None
    video: Text | None = None
    relevant: tuple[tuple[float, float] | tuple[Text, float, float], ...] = ()
    grades: tuple[float, ...] | None = None
    absent: bool = False
    category: Text | None = None


def read_own(path: Path) -> ParsedMoments:
    """Read searches and their moments, [start, end] in `video`, or [video, start, end]; an image beside the file."""
    return parse_moments(json_lines(path), _OwnRow, lambda row, note: _own_item(row, path.parent, note))


def _own_item(row: _OwnRow, folder: Path, note: AddNote) -> MomentSample:
    image = None if row.image is None else folder / row.image
    if image is not None and not is_there(image):
        raise BadRow(f"image: there is no file {image}; give its path from the folder of the file of searches")
    if not row.text and image is None:
        raise BadRow("text: got neither text nor image; a search has one of them, or both")
    if row.absent and row.relevant:
        raise BadRow(f"absent: got true and {len(row.relevant)} relevant moments; give one of them")
    if not row.absent and not row.relevant:
        note('relevant: got no moment; the search is kept and not scored (say "absent": true if there is none)')
    relevant = tuple(_range(moment, row.video) for moment in row.relevant)
    return MomentSample(row.id, "own", row.text, row.video, relevant, _own_grades(row), image, row.absent, row.category)


def _range(moment: tuple[float, float] | tuple[str, float, float], video: str | None) -> Range:
    if len(moment) == 3:
        name, start_s, end_s = moment
        if video not in (None, name):
            raise BadRow(f"relevant: got a moment of {name}, and {video} is the video that is searched")
        return (name, *check_range("relevant", start_s, end_s))
    if video is None:
        raise BadRow("relevant: got [start, end] and no video; give video, or moments as [video, start, end]")
    return (video, *check_range("relevant", *moment))


def _own_grades(row: _OwnRow) -> tuple[float, ...] | None:
    if row.grades is None:
        return None
    if len(row.grades) != len(row.relevant):
        raise BadRow(f"grades: got {len(row.grades)}; there are {len(row.relevant)} relevant moments")
    if not all(grade > 0 for grade in row.grades):
        raise BadRow(f"grades: got {min(row.grades):g}; each is more than 0")
    return row.grades


# MomentSeeker: moments in long films, by words, by a picture or by a clip (Yuan et al. 2025, arXiv 2502.12558).
#
# Published as JSON arrays, `t2v.json` among them: `qry_text`, `qry_img_path`, `qry_video_path`, `src_video_path`,
# `task`,
# `answering_time_interval`. Files of the first release name instead the pieces of the film,
# `.../VIDEO/0.00_3.00.mp4`, in
# `candidate_video_list`, and those that answer in `gt_indices`. Rows have no ids: a search is known by its file and
# row.

_PIECE = re.compile(r"(\d+(?:\.\d+)?)_(\d+(?:\.\d+)?)")


class _MomentSeekerRow(BaseModel):
    model_config = AS_PUBLISHED

    id: str
    qry_text: str = ""
    qry_img_path: str = ""
    qry_video_path: str = ""
    src_video_path: Annotated[str, Field(min_length=1)]
    task: str | None = None
    answering_time_interval: Annotated[tuple[tuple[float, float], ...], Field(min_length=1)]


def read_momentseeker(path: Path) -> ParsedMoments:
    """Read searches by words and by a picture beside the file; those by a clip are left out and listed."""
    return parse_moments(
        _momentseeker_rows(path), _MomentSeekerRow, lambda row, note: _momentseeker_item(row, path.parent, note)
    )


def _momentseeker_rows(path: Path) -> Iterator[Raw]:
    for number, (where, raw) in enumerate(json_rows(path), start=1):
        if not isinstance(raw, dict):
            yield where, raw
            continue
        try:
            yield where, {**raw, **_of_pieces(raw), "id": f"{path.stem}-{number}"}
        except (KeyError, IndexError, TypeError, AttributeError):
            yield where, BadRow("gt_indices: they count the pieces in candidate_video_list, each VIDEO/START_END.mp4")


def _of_pieces(raw: dict[str, Any]) -> dict[str, Any]:
    """The film and the moments of a row of the first release; nothing for one of the second."""
    if "answering_time_interval" in raw or "candidate_video_list" not in raw:
        return {}
    if any(index < 0 for index in raw["gt_indices"]):  # Python would count from the end
        raise IndexError
    paths = [PurePosixPath(raw["candidate_video_list"][index]["output_path"]) for index in raw["gt_indices"]]
    moments = [match.groups() for match in map(_PIECE.fullmatch, (path.stem for path in paths)) if match]
    if len(moments) < len(paths):
        raise IndexError
    return {"src_video_path": paths[0].parent.name, "answering_time_interval": moments}


def _momentseeker_item(row: _MomentSeekerRow, folder: Path, note: AddNote) -> MomentSample:
    if row.qry_video_path:
        raise BadRow("qry_video_path: a search by a clip is left out; kinodex searches by words and by a picture")
    image = folder / row.qry_img_path if row.qry_img_path else None
    if image is not None and not is_there(image):
        raise BadRow(f"qry_img_path: there is no file {image}; unpack the pictures beside {folder}")
    video = PurePosixPath(row.src_video_path).name
    if not video:
        raise BadRow(f"src_video_path: got {row.src_video_path!r}, which names no file")
    moments = tuple((video, *check_range("answering_time_interval", *each)) for each in row.answering_time_interval)
    return MomentSample(row.id, "momentseeker", row.qry_text.strip(), video, moments, image=image, category=row.task)


# QVHighlights: moments and highlights in clips of 150 seconds from YouTube (Lei et al. 2021, arXiv 2107.09609).
#
# Published as JSON lines, `highlight_val_release.jsonl` and others in `data` of jayleicn/moment_detr. The moments of a
# search are whole numbers of clips of 2 seconds, each rated by three annotators from 0 (very bad) to 4 (very good).

CLIP_S = 2.0
Score = Annotated[float, Field(ge=0, le=4)]


class _QVHighlightsRow(BaseModel):
    model_config = AS_PUBLISHED

    qid: str
    query: Annotated[str, Field(min_length=1)]
    vid: Annotated[str, Field(min_length=1)]
    duration: Annotated[float, Field(gt=0)]
    relevant_windows: tuple[tuple[float, float], ...] = ()
    relevant_clip_ids: tuple[int, ...] = ()
    saliency_scores: tuple[Annotated[tuple[Score, ...], Field(min_length=1)], ...] = ()


def read_qvhighlights(path: Path) -> ParsedMoments:
    """Read searches; the grade of a moment is 1 + the mean saliency of its clips. Rows of the test set have no moments.

    The 1 keeps a moment that all annotators rated 0 a relevant one, as it is in the published measures.
    """
    return parse_moments(json_lines(path), _QVHighlightsRow, _qvhighlights_item)


def _qvhighlights_item(row: _QVHighlightsRow, note: AddNote) -> MomentSample:
    if len(row.relevant_clip_ids) != len(row.saliency_scores):
        raise BadRow(f"saliency_scores: got {len(row.saliency_scores)}; there are {len(row.relevant_clip_ids)} clips")
    ranges = [check_range("relevant_windows", *window) for window in row.relevant_windows]
    late = next((end_s for _, end_s in ranges if end_s > row.duration + CLIP_S), None)
    if late is not None:
        note(f"relevant_windows: got an end at {late:g} s of {row.duration:g}; the search is kept")
    relevant = tuple((row.vid, start_s, end_s) for start_s, end_s in ranges)
    return MomentSample(
        row.qid,
        "qvhighlights",
        row.query.strip(),
        row.vid,
        relevant,
        _qvhighlights_grades(row),
        duration_s=row.duration,
    )


def _qvhighlights_grades(row: _QVHighlightsRow) -> tuple[float, ...] | None:
    """The grades of the windows; None if not every window has a clip with scores."""
    scores = dict(zip(row.relevant_clip_ids, row.saliency_scores, strict=True))
    grades = []
    for start_s, end_s in row.relevant_windows:
        clips = range(round(start_s / CLIP_S), round(end_s / CLIP_S))
        rated = [score for clip in clips for score in scores.get(clip, ())]
        if not rated:
            return None
        grades.append(1 + sum(rated) / len(rated))
    return tuple(grades) or None
