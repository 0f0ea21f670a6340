"""The rows of benchmarks whose answers are ranges of time, as they are published, and how each becomes a search."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.items import (
    AddNote,
    BadRow,
    Range,
    Raw,
    Row,
    SearchItem,
    check_range,
    is_there,
    json_file,
    json_lines,
    json_rows,
    text_lines,
)
from kinodex.jobs.eval.readers.questions import CluedRow, LengthS, Text

Name = Annotated[str, Field(min_length=1)]


# Searches of one's own: a line of JSON each, about videos of one's own library. docs/evaluation.md shows the lines.


class OwnSearchRow(Row, extra="forbid"):
    """A search and its moments, [start, end] in `video`, or [video, start, end]; `image` is a path."""

    id: Text
    text: Annotated[str, StringConstraints(strip_whitespace=True)] = ""
    image: Text | None = None
    video: Text | None = None
    relevant: tuple[tuple[float, float] | tuple[Text, float, float], ...] = ()
    grades: tuple[float, ...] | None = None
    absent: bool = False
    category: Text | None = None

    def item(self, note: AddNote) -> SearchItem:
        image = None if self.image is None else Path(self.image)
        if image is not None and not is_there(image):
            raise BadRow(f"image: there is no file {image}; give its path from the folder of the file of searches")
        if not self.text and image is None:
            raise BadRow("text: got neither text nor image; a search has one of them, or both")
        if self.absent and self.relevant:
            raise BadRow(f"absent: got true and {len(self.relevant)} relevant moments; give one of them")
        if not self.absent and not self.relevant:
            note('relevant: got no moment; the search is kept and not scored (say "absent": true if there is none)')
        if self.grades is not None:
            if len(self.grades) != len(self.relevant):
                raise BadRow(f"grades: got {len(self.grades)}; there are {len(self.relevant)} relevant moments")
            if not all(grade > 0 for grade in self.grades):
                raise BadRow(f"grades: got {min(self.grades):g}; each is more than 0")
        relevant = tuple(map(self._range, self.relevant))
        found = (relevant, self.grades, image, self.absent, self.category)
        return SearchItem(self.id, "own", self.text, self.video, *found)

    def _range(self, moment: tuple[float, float] | tuple[str, float, float]) -> Range:
        if len(moment) == 3:
            name, start_s, end_s = moment
            if self.video not in (None, name):
                raise BadRow(f"relevant: got a moment of {name}, and {self.video} is the video that is searched")
            return (name, *check_range("relevant", start_s, end_s))
        if self.video is None:
            raise BadRow("relevant: got [start, end] and no video; give video, or moments as [video, start, end]")
        return (self.video, *check_range("relevant", *moment))


def own_rows(path: Path) -> Iterator[Raw]:
    """Read searches; the path of an image counts from the folder of the file."""
    for where, raw in json_lines(path):
        image = raw.get("image") if isinstance(raw, dict) else None
        if isinstance(image, str) and image.strip():
            raw = {**raw, "image": str(path.parent / image.strip())}
        yield where, raw


# CG-Bench: where the clues lie that answer a question about a long film (Chen et al. 2024, arXiv 2412.12075).
#
# The question is the search and its clue intervals are the moments; options and answer would help to find them.


class ClueRow(CluedRow):
    """A question as a search."""

    def item(self, note: AddNote) -> SearchItem:
        clues = tuple((self.video_uid, *check_range("clue_intervals", *clue)) for clue in self.clue_intervals)
        category = self.sub_category or self.domain
        text, video = self.question.strip(), self.video_uid
        return SearchItem(self.qid, "cg-bench", text, video, clues, category=category, duration_s=self.duration)


# MomentSeeker: moments in long films, by words, by a picture or by a clip (Yuan et al. 2025, arXiv 2502.12558).
#
# Files of the first release name the pieces of the film, `.../VIDEO/0.00_3.00.mp4`, in `candidate_video_list`, and
# those that answer in `gt_indices`. Rows have no ids: a search is known by its file and row.

_PIECE = re.compile(r"(\d+(?:\.\d+)?)_(\d+(?:\.\d+)?)")


class MomentSeekerRow(Row):
    """A search by words or by a picture beside the file; those by a clip are left out and listed."""

    id: str
    folder: str
    qry_text: str = ""
    qry_img_path: str = ""
    qry_video_path: str = ""
    src_video_path: Name
    task: str | None = None
    answering_time_interval: Annotated[tuple[tuple[float, float], ...], Field(min_length=1)]

    def item(self, note: AddNote) -> SearchItem:
        if self.qry_video_path:
            raise BadRow("qry_video_path: a search by a clip is left out; kinodex searches by words and by a picture")
        image = Path(self.folder) / self.qry_img_path if self.qry_img_path else None
        if image is not None and not is_there(image):
            raise BadRow(f"qry_img_path: there is no file {image}; unpack the pictures beside {self.folder}")
        video = PurePosixPath(self.src_video_path).name
        if not video:
            raise BadRow(f"src_video_path: got {self.src_video_path!r}, which names no file")
        moments = tuple(
            (video, *check_range("answering_time_interval", *each)) for each in self.answering_time_interval
        )
        text = self.qry_text.strip()
        return SearchItem(self.id, "momentseeker", text, video, moments, image=image, category=self.task)


def momentseeker_rows(path: Path) -> Iterator[Raw]:
    """Read rows of both releases."""
    for number, (where, raw) in enumerate(json_rows(path), start=1):
        if not isinstance(raw, dict):
            yield where, raw
            continue
        try:
            yield where, {**raw, **_of_pieces(raw), "id": f"{path.stem}-{number}", "folder": str(path.parent)}
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


# QVHighlights: moments and highlights in clips of 150 seconds from YouTube (Lei et al. 2021, arXiv 2107.09609).
#
# The moments of a search are whole numbers of clips of 2 seconds, each rated by three annotators from 0 to 4.

CLIP_S = 2.0
Score = Annotated[float, Field(ge=0, le=4)]


class QVHighlightsRow(Row):
    """The grade of a moment is 1 + the mean saliency of its clips. Rows of the test set have no moments.

    The 1 keeps a moment that all annotators rated 0 a relevant one, as it is in the published measures.
    """

    qid: str
    query: Name
    vid: Name
    duration: LengthS
    relevant_windows: tuple[tuple[float, float], ...] = ()
    relevant_clip_ids: tuple[int, ...] = ()
    saliency_scores: tuple[Annotated[tuple[Score, ...], Field(min_length=1)], ...] = ()

    def item(self, note: AddNote) -> SearchItem:
        clips, scores = len(self.relevant_clip_ids), len(self.saliency_scores)
        if clips != scores:
            raise BadRow(f"saliency_scores: got {scores}; there are {clips} clips")
        ranges = [check_range("relevant_windows", *window) for window in self.relevant_windows]
        late = next((end_s for _, end_s in ranges if end_s > self.duration + CLIP_S), None)
        if late is not None:
            note(f"relevant_windows: got an end at {late:g} s of {self.duration:g}; the search is kept")
        relevant = tuple((self.vid, start_s, end_s) for start_s, end_s in ranges)
        text, grades = self.query.strip(), self._grades()
        return SearchItem(self.qid, "qvhighlights", text, self.vid, relevant, grades, duration_s=self.duration)

    def _grades(self) -> tuple[float, ...] | None:
        """The grades of the windows; None if not every window has a clip with scores."""
        scores = dict(zip(self.relevant_clip_ids, self.saliency_scores, strict=True))
        grades = []
        for start_s, end_s in self.relevant_windows:
            clips = range(round(start_s / CLIP_S), round(end_s / CLIP_S))
            rated = [score for clip in clips for score in scores.get(clip, ())]
            if not rated:
                return None
            grades.append(1 + sum(rated) / len(rated))
        return tuple(grades) or None


# Charades-STA: sentences about half a minute of indoor life, and where they hold (Gao et al. 2017, arXiv 1705.02101).


class CharadesRow(Row):
    """A line, `VIDEO START END##SENTENCE`, with one moment; it is known by its number."""

    line: int
    video: Name
    start: float
    end: float
    sentence: Name

    def item(self, note: AddNote) -> SearchItem:
        moment = (self.video, *check_range("times", self.start, self.end))
        return SearchItem(str(self.line), "charades-sta", self.sentence, self.video, (moment,))


def charades_rows(path: Path) -> Iterator[Raw]:
    """Read the parts of each line."""
    for number, line in text_lines(path):
        place, mark, sentence = line.partition("##")
        words = place.split()
        if not mark or len(words) != 3:
            yield f"line {number}", BadRow(f"got {line[:60]!r}; a line is VIDEO START END##SENTENCE")
            continue
        times = dict(zip(("video", "start", "end"), words, strict=True))
        yield f"line {number}", {"line": number, **times, "sentence": sentence.strip()}


# ActivityNet Captions: sentences that tell films of about two minutes (Krishna et al. 2017, arXiv 1705.00754).
#
# Published as `{video: {"duration", "timestamps": [[start, end], ...], "sentences"}}`.


class ActivityNetRow(Row):
    """A sentence with one moment, known by its video and its place in it, from 0.

    One that ends after its film is cut there, as its annotators saw no more.
    """

    video: Name
    number: int
    duration: LengthS
    times: tuple[float, float]
    sentence: str

    def item(self, note: AddNote) -> SearchItem:
        text, (start_s, end_s) = self.sentence.strip(), self.times
        if not text:
            raise BadRow("sentence: got no words")
        if end_s > self.duration:
            note(f"timestamps: got an end at {end_s:g} s of {self.duration:g}; the moment is cut there")
        moment = (self.video, *check_range("timestamps", start_s, min(end_s, self.duration)))
        name = f"{self.video}-{self.number}"
        return SearchItem(name, "activitynet-captions", text, self.video, (moment,), duration_s=self.duration)


def activitynet_rows(path: Path) -> Iterator[Raw]:
    """Read the sentences of each video."""
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
