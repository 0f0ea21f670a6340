"""A library for its users: searched by words, picture or vector, read as pictures and arrays, asked questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from kinodex.arguments import (
    VideoName,
    checked,
    earlier_path,
    library_place,
    name_of,
    names_of,
    question_of,
    trace_path,
)
from kinodex.frames import Frame, frame_of
from kinodex.index.kinds import LINE_KINDS, WORDS, line_kinds
from kinodex.index.rows import VideoRow
from kinodex.jobs.errors import UsageError
from kinodex.torch_options import TorchOptions

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    import pyarrow as pa
    import ray.data
    from lancedb.db import DBConnection
    from numpy.typing import NDArray
    from PIL.Image import Image
    from pydantic import BaseModel

    from kinodex.agent.answer_rules import AnswerRules
    from kinodex.agent.limits.budget import Budget
    from kinodex.agent.limits.stop import StopSignal
    from kinodex.agent.protocol.exchange import Models
    from kinodex.agent.protocol.question import Question
    from kinodex.agent.traces.events import Event
    from kinodex.agent.variants.base import Variant
    from kinodex.agent.videos.environment import Environment
    from kinodex.desk import Desk
    from kinodex.index.library import LibraryReader
    from kinodex.index.metadata import Facet
    from kinodex.index.rows import (
        CaptionRow,
        DetectionRow,
        FrameVectors,
        Hit,
        LibraryFacts,
        ScreenTextRow,
        SegmentRow,
        SpeechRow,
        TextLine,
    )
    from kinodex.index.torch_frames import FrameBatches
    from kinodex.jobs.add.map import Over
    from kinodex.jobs.add.run import AddReport, VideoOutcome
    from kinodex.jobs.add.stage import Stage
    from kinodex.jobs.addresses.relocation import Relocation
    from kinodex.jobs.duplicates.search import Duplicate
    from kinodex.jobs.grounding.result import Grounding
    from kinodex.jobs.models import ModelChoice
    from kinodex.notebook import Extracted, Hits
    from kinodex.requests import R
    from kinodex.search.finder import Finder
    from kinodex.search.pictures import Picture
    from kinodex.shown_answers import ShownAnswer, ShownCollection

FRAMES_A_READ = 64
"""Frames read at a time by `all_frames`."""


@checked
def open(uri: str | Path, *, space: str | None = None) -> Library:
    """Open the library at `uri`: a folder, or any URI that Lance takes. `space` names one of its embedding spaces.

    Raises `LibraryError` where there is no library, or one that this version cannot read, and for an unknown space.
    """
    from kinodex.index.library import Library as Tables

    reader = Tables.open(library_place(uri))
    reader.space(space)
    return Library(reader, space)


def _reopened(uri: str, space: str | None, condition: str | None) -> Library:
    return open(uri, space=space).where(condition)


class Library:
    """A library that was opened by `kinodex.open`; it may be written by others meanwhile.

    Videos are named by id, the first digits of one, title, file name or row. Time ranges are half-open seconds. Methods
    raise a `KinodexError` that says what was got, what is allowed and what to do.
    """

    def __init__(self, reader: LibraryReader, space: str | None = None) -> None:
        self._reader = reader
        self.space = space
        """The embedding space that is searched; None is the library's own."""

    def __repr__(self) -> str:
        condition = self._reader.condition
        return f"kinodex.open({self.uri!r}){'' if condition is None else f'.where({condition!r})'}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Open it again where it is unpickled, in the state of that moment."""
        return _reopened, (self.uri, self.space, self._reader.condition)

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *raised: object) -> None:
        """Let go of the towers that were loaded; whatever is asked later loads them again."""
        self.__dict__.pop("_finder", None)

    def _repr_html_(self) -> str:
        from kinodex.notebook import library_html

        return library_html(self._reader)

    @property
    def uri(self) -> str:
        return self._reader.uri

    @checked
    def where(self, condition: str | None) -> Library:
        """Return the library with only those videos for which a condition on their columns holds, for all that reads.

        `opened.where("camera = 'front' AND recorded_at >= '2026-03-01'").search(...)`; columns are those of
        `info().columns`, and title, uri, duration_s, fps, width_px, height_px, codec, frames and ingested_at. It
        follows what is set later; None is all of the library. Raises `QueryError` for what is no such condition, or
        where it holds for no video.
        """
        return Library(self._reader.where(condition), self.space)

    def facets(self) -> tuple[Facet, ...]:
        """Facets of the columns of videos: values with their numbers of videos, or the least and the most."""
        return self._reader.metadata.facets(self._reader.video_ids())

    def info(self) -> LibraryFacts:
        """Return the library in numbers."""
        return self._reader.info()

    def videos(self) -> list[VideoRow]:
        """Return all complete videos."""
        return self._reader.videos()

    def video(self, name: VideoName) -> VideoRow:
        """Return one video; raises `UnknownVideo`."""
        return self._reader.video(name_of(name))

    @checked
    def search(
        self,
        query: str | Image | NDArray[Any],
        *,
        videos: VideoName | Sequence[VideoName] = (),
        where: str | None = None,
        start_s: float | None = None,
        end_s: float | None = None,
        in_: str = "all",
        picture: Picture | None = None,
        like: str | None = None,
        k: int = 10,
        min_gap_s: float = 2.0,
        min_score: float = 0.0,
        rerank: str | None = None,
        verify: int = 0,
        model: str | Models | ModelChoice = "similarity",
        base_url: str | None = None,
        cache: bool = True,
    ) -> Hits:
        """Find the `k` moments that match words, a picture or a vector best, the best first.

        `query` is a text, a PIL picture, an RGB array `[height, width, 3]` of uint8, or a vector `[dim]` of the space;
        beside a text, `picture` is looked for too, or the stored frame `like` "VIDEO@SECONDS". `in_` is where to look:
        "frames" and "clips" (windows of some seconds) by meaning; "speech" or another kind of lines by words, or all of
        them ("words"), and by meaning too after `kinodex add sentences`; "chapters" by their texts, "detections" by
        label, of `min_score` or more; an extract by its name; "all" fuses frames, clips and words by rank, and `parts`
        of a hit are the hits it is made of. Hits of one video are at least `min_gap_s` apart.

        `rerank` is the address of a reranker, which then orders the hits. The first `verify` of them are looked at by
        a vision-language model, named as for `ask`: it says of each if it is `present`, for what `reason`. The `notes`
        of the hits say what was not searched.
        """
        from kinodex.notebook import Hits
        from kinodex.requests import Find

        words, seen = (query, picture) if isinstance(query, str) else ("", query)
        request = _request(Find, locals(), query=words)
        found = self._desk(model, base_url, cache=cache).find(request, seen)
        return Hits(self._reader, found.hits, found.notes)

    def embed(self, query: str | Image | NDArray[Any]) -> NDArray[np.floating[Any]]:
        """Give the unit vector `[dim]` of a text or picture in the space that is searched; a vector is normalised."""
        return self._finder.embed(query) if isinstance(query, str) else self._finder.embed(picture=query)

    @cached_property
    def _finder(self) -> Finder:
        from kinodex.search.finder import Finder

        return Finder(self._reader, self.space)

    @checked
    def ground(
        self,
        text: str,
        *,
        videos: VideoName | Sequence[VideoName] = (),
        where: str | None = None,
        in_: str = "all",
        k: int = 5,
        agent: str | Variant | None = None,
        budget: Budget | None = None,
        verify: int = 0,
        pad_s: float = 0.0,
        join_s: float | None = None,
        snap: bool = False,
        model: str | Models | ModelChoice = "similarity",
        base_url: str | None = None,
        cache: bool = True,
    ) -> Grounding:
        """Find the ranges of these videos, or of all, that fit a text best.

        By search alone, `in_` "frames", "words" or "all", they are an order or have a probability, as their `basis`
        says, and `present` is None. The first `verify` are looked at by a model, which says if it is there. With an
        `agent` the ranges are the evidence of its answer, and `present` what it says. Models are named as for `ask`.
        Ranges are padded, joined and ended at cuts as `kinodex.jobs.export.moment_rule.MomentRule` says.
        """
        from kinodex.requests import Ground

        if agent is None and not verify and (model, base_url) != ("similarity", None):
            raise UsageError("got a model, and nothing for it to do; give an agent, or verify=K")
        desk = self._desk(model, base_url, cache=cache, agent=agent)
        return desk.ground(_request(Ground, locals()))

    @checked
    def duplicates(
        self, videos: VideoName | Sequence[VideoName] = (), *, min_s: float = 5.0, every_s: float = 30.0
    ) -> list[Duplicate]:
        """Find videos that show the same, whole or in part: re-encoded, cut, letterboxed, moved in time.

        Only pairs with one of `videos`, if any are named, and only those that share `min_s` seconds. One frame each
        `every_s` of a video looks for others, eight or more a video. What stands still is no duplicate of anything.
        """
        from kinodex.jobs.duplicates.search import find_duplicates

        named = self._reader.ids_named(names_of(videos)) or ()
        return find_duplicates(self._reader, named, min_s=min_s, every_s=every_s, space=self.space)

    def relocate(self, old: str | Path, new: str | Path, *, dry_run: bool = False) -> Relocation:
        """Map the addresses of all videos under one folder, bucket or web address to another, all in one commit.

        Raises `UsageError` where no video lies under `old`, or a new address is that of another video.
        """
        from kinodex.index.library import Library as Tables
        from kinodex.jobs.addresses.relocation import relocate

        return relocate(Tables.open(self._reader.uri), str(old), str(new), dry_run=dry_run)

    @checked
    def extract(
        self,
        row: type[BaseModel] | Any,
        *,
        into: str,
        model: str,
        base_url: str | None = None,
        each: str | None = None,
        search: str | None = None,
        videos: VideoName | Sequence[VideoName] = (),
        where: str | None = None,
        retry_failed: bool = False,
        **settings: Any,
    ) -> Extracted:
        """Fill in the table `into` from each part of these videos, by a model under a schema, and give its rows,
        which are an Arrow table that a notebook shows.

        `row` is a pydantic model, `list[MODEL]` for several rows a part, or a JSON schema. `each` is "video",
        "chapter", "scene" (if None), "shot" or "window:SECONDS"; with `search` the parts are moments that it finds.
        Videos that have the same already are not asked about again; `retry_failed` asks about parts without a usable
        reply. `settings` are those of `kinodex.jobs.add.stages.Extracts`: `frames_a_part`, `input_price`,
        `stop_at_cost`, ... Rows of parts without a usable reply have a `fault`.
        """
        from kinodex.additions import add_extract
        from kinodex.notebook import Extracted

        asked = {"row": row, "into": into, "model": model, "base_url": base_url, "each": each, "search": search}
        given = {**asked, "retry_failed": retry_failed, **settings}
        key, ids = add_extract(self._reader, given, names_of(videos), where)
        return Extracted(self._reader, self._reader.extracts.rows(key, ids))

    @checked
    def add(
        self,
        stage: str | Stage,
        *,
        videos: VideoName | Sequence[VideoName] = (),
        where: str | None = None,
        watch: Callable[[int, int, VideoOutcome], None] = lambda done, total, last: None,
        **settings: Any,
    ) -> AddReport:
        """Add results of one more model to these videos, or to all, as `kinodex add` does; only what is new is done.

        `stage` is the name of a command of `kinodex add`, or a stage of your own. `settings` are the options of its
        command: `library.add("captions", model="gpt-4o-mini", frames_a_segment=8)`. `watch` gets the numbers of videos
        that are done and of all, and the outcome of the last one.
        """
        from kinodex.additions import add_stage, made_stage
        from kinodex.index.library import Library as Tables

        report = add_stage(self._reader, made_stage(stage, settings), names_of(videos), where, watch)
        if not self._reader.fingerprint.has_vectors:  # by now it may have a space
            self._reader = Tables.open(self.uri).where(self._reader.condition)
            self.__dict__.pop("_finder", None)
        return report

    def lancedb(self) -> DBConnection:
        """LanceDB's connection to the library, whose tables of vectors are searched by words and pictures too.

        `library.lancedb().open_table(NAME).search("a dog on a beach")`; needs `pip install 'kinodex[lancedb]'`.
        """
        from kinodex.lancedb import connect

        return connect(self.uri)

    @checked
    def sql(self, select: str) -> duckdb.DuckDBPyRelation:
        """Run one SELECT over all tables, as DuckDB has it; `.to_arrow_table()`, `.df()` and `.pl()` give its rows.

        Tables are videos, frames, segments, lines, detections, chapters, additions, failures, and each extract by its
        name. It reads the library and nothing else, and writes nothing.
        """
        from kinodex.index.sql import query

        return query(self._reader, select)

    @checked
    def frames(self, video: VideoName, times_s: Sequence[float]) -> list[Frame]:
        """Return the frames on screen at these times, in this order.

        Raises `TimeOutside` for one that the video lacks.
        """
        rows = self._reader.frames_at(self.video(video).video_id, list(times_s), mode="shown")
        return [frame_of(row) for row in rows]

    def frame(self, hit: Hit) -> Frame:
        """Return the frame of a hit: the one that was found, or the one on screen when a line or caption begins."""
        if hit.frame_no is not None:
            (row,) = self._reader.frames(hit.video_id, [hit.frame_no])
        else:
            (row,) = self._reader.frames_at(hit.video_id, [hit.time_s], mode="nearest")
        return frame_of(row)

    def all_frames(self, video: VideoName) -> Iterator[Frame]:
        """Yield all stored frames of a video in time order, read a few at a time."""
        video_id = self.video(video).video_id
        numbers = self._reader.frame_times(video_id)[0].tolist()
        for first in range(0, len(numbers), FRAMES_A_READ):
            yield from map(frame_of, self._reader.frames(video_id, numbers[first : first + FRAMES_A_READ]))

    def vectors(self, video: VideoName) -> FrameVectors:
        """Numbers, times and vectors of a video's frames as numpy arrays, in time order."""
        return self._reader.vectors(self.video(video).video_id, self.space)

    def vectors_table(self, *videos: VideoName) -> pa.Table:
        """Return the same of some videos, or of all, as an Arrow table: video_id, frame_no, time_s, vector."""
        import pyarrow as pa

        parts = []
        for row in self._reader.chosen(names_of(videos)):
            stored = self._reader.vectors(row.video_id, self.space)
            flat = pa.array(stored.vectors.reshape(-1))
            columns = {
                "video_id": pa.array([row.video_id] * len(stored.frame_no), pa.string()),
                "frame_no": pa.array(stored.frame_no),
                "time_s": pa.array(stored.time_s),
                "vector": pa.FixedSizeListArray.from_arrays(flat, stored.vectors.shape[1]),
            }
            parts.append(pa.table(columns))
        if not parts:
            raise UsageError(f"{self.uri} holds no video; ingest one first")
        return pa.concat_tables(parts)

    @checked
    def to_arrow(
        self,
        columns: Sequence[str] = ("video_id", "title", "frame_no", "time_s", "vector"),
        *,
        videos: VideoName | Sequence[VideoName] = (),
        float32: bool = False,
    ) -> pa.RecordBatchReader:
        """Read frames as Arrow record batches, in the order stored: for pandas, DuckDB, or a file.

        `columns` are some of video_id, title, frame_no, time_s, width_px, height_px, jpeg and vector. Only complete
        videos are read, each frame once, in the state of the library at this moment. Vectors are float16, or `float32`.
        """
        from kinodex.bulk_frames import record_batches

        return record_batches(self._reader, columns, names_of(videos), self.space, float32=float32)

    @checked
    def to_torch(
        self,
        columns: Sequence[str] = ("video_id", "time_s", "image", "vector"),
        *,
        videos: VideoName | Sequence[VideoName] = (),
        **options: Unpack[TorchOptions],
    ) -> FrameBatches:
        """Read frames as an iterable torch dataset of batches; `.loader(num_workers=4)` reads it in processes.

        `columns` are those of `to_arrow`, and `image`: the decoded picture. `options` are the keys of
        `kinodex.torch_options.TorchOptions`: `batch_size`, `shuffle`, `seed`, `drop_last`, `transform`, `rank` and
        others.
        Every frame of the complete videos comes once an epoch, over all workers and ranks; see `set_epoch`.
        """
        from kinodex.bulk_frames import torch_batches

        return torch_batches(self._reader, columns, names_of(videos), self.space, options)

    @checked
    def to_ray(
        self,
        columns: Sequence[str] = ("video_id", "title", "frame_no", "time_s", "jpeg"),
        *,
        videos: VideoName | Sequence[VideoName] = (),
        **options: Any,
    ) -> ray.data.Dataset:
        """Read frames as a dataset of Ray Data; `columns` are those of `to_arrow`.

        `options` are those of `ray.data.read_datasource`. Its workers need kinodex, and the library at the same place.
        """
        from kinodex.bulk_frames import ray_dataset

        return ray_dataset(self._reader, columns, names_of(videos), self.space, **options)

    def segments(self, video: VideoName) -> list[SegmentRow]:
        """Shots and windows of a video, with their captions where there are any."""
        return self._reader.segments(self.video(video).video_id)

    def captions(self, video: VideoName) -> list[CaptionRow]:
        """Captions that `kinodex add captions` or `kinodex import captions` brought."""
        return self._reader.captions(self.video(video).video_id)

    @checked
    def speech(self, video: VideoName, start_s: float | None = None, end_s: float | None = None) -> list[SpeechRow]:
        """Return the lines of subtitles and of recognised speech that share some time with `[start_s, end_s)`."""
        return self._reader.speech(self.video(video).video_id, start_s, end_s)

    @checked
    def screen_text(
        self, video: VideoName, start_s: float | None = None, end_s: float | None = None
    ) -> list[ScreenTextRow]:
        """Return the lines of text on screen that share some time with `[start_s, end_s)`, by the newest reader."""
        return self._reader.screen_text(self.video(video).video_id, start_s, end_s)

    @checked
    def lines(
        self,
        video: VideoName,
        in_: str | Sequence[str] = "words",
        start_s: float | None = None,
        end_s: float | None = None,
    ) -> list[TextLine]:
        """Read lines of text that share some time with `[start_s, end_s)`, kind by kind: of one kind, some, or all.

        `library.lines("film", "speech")` has the lines that are said. Raises QueryError for another kind.
        """
        names = LINE_KINDS if in_ == WORDS else line_kinds([in_] if isinstance(in_, str) else in_)
        return self._reader.lines.rows(self.video(video).video_id, names, start_s, end_s)

    @checked
    def detections(self, video: VideoName, label: str | None = None) -> list[DetectionRow]:
        """Things found by `kinodex add detections`, of one label or of all."""
        return self._reader.detections(self.video(video).video_id, None, None, label)

    @checked
    def map(
        self,
        function: Callable[..., Any],
        over: Over = "frames",
        into: str | None = None,
        *,
        where: str | None = None,
        videos: VideoName | Sequence[VideoName] = (),
        batch: int = 32,
        pictures_each: int = 8,
        version: str = "",
        replace: bool = False,
        ray: bool | str = False,
        workers: int | None = None,
        watch: Callable[[int, int, VideoOutcome], None] = lambda done, total, last: None,
    ) -> AddReport:
        """Have a function make columns of the library, named `into` (its own name, if None), from what is stored.

        Its parameters name what it gets, in batches: over "frames" some of `pictures` (uint8 `[n, height, width, 3]`),
        `vectors` (float32 `[n, dim]`), `times_s`, `frame_no` and `video`; over "segments" and "videos" lists of
        these arrays, of at most `pictures_each` pictures each, with `start_s` and `end_s` of segments. It returns a
        column (a list, a numpy or Arrow array), or several by name (a dict, a table, an array of structs).

        Only videos are worked on that lack it, so a run that was killed goes on, and the next does what is new. The
        function's text is kept: another one is refused, unless it is to `replace` what is there. `version` marks
        changes that its text does not show. `where` is a condition on the columns of videos. With `ray` (True, or an
        address) as many `workers` as there are cores. Rows are read by `mapped`; of videos, `where` finds them too.
        """
        from kinodex.additions import add_map
        from kinodex.jobs.add.stages import Map

        sizes = {"batch": batch, "pictures_each": pictures_each}
        stage = Map(function=function, into=into or "", over=over, version=version, replace=replace, **sizes)
        return add_map(self._reader, stage, names_of(videos), where, watch, ray=ray, workers=workers)

    def mapped(self, name: str, where: str | None = None) -> pa.Table:
        """Read the columns that `map` made under a name, with video_id, and frame_no and time_s, or segment and times.

        `where` is a condition of SQL on these columns: "sharpness > 100 AND time_s < 60".
        """
        from kinodex.index.library import Library as Tables

        return Tables.open(self._reader.uri).where(self._reader.condition).additions.mapped(name, where)

    def environment(self, *videos: VideoName) -> Environment:
        """Give these videos, or all, as agents may see them: the environment that `kinodex.ask` takes."""
        from kinodex.agent.videos.environment import Environment

        return Environment.open(self._reader, *names_of(videos), space=self.space)

    @checked
    def ask(
        self,
        question: str | Question,
        options: Sequence[str] = (),
        *,
        videos: VideoName | Sequence[VideoName] = (),
        where: str | None = None,
        agent: str | Variant = "kino",
        settings: Mapping[str, Any] | None = None,
        budget: Budget | None = None,
        rules: AnswerRules | None = None,
        follow_up: str | Path | None = None,
        plan: Mapping[str, Any] | None = None,
        model: str | Models | ModelChoice = "similarity",
        base_url: str | None = None,
        cache: bool = True,
        trace: str | Path | None = None,
        on_event: Callable[[Event], None] | None = None,
        stop: StopSignal | None = None,
    ) -> ShownAnswer | ShownCollection:
        """Answer a question, as `kinodex ask` does; needs no asyncio, and works where an event loop runs already.

        `model` names a model of the endpoint at `base_url` (OpenAI's if None), is "similarity" (chooses the option that
        fits the frames and lines best, and writes no sentence), "replay:TRACE", "local:FOLDER", or model objects.
        `agent` is a name of `kinodex agents`, FILE.py or a `Variant`; `settings` change its parameters. Replies are
        kept on disk unless `cache` is False. `rules` say if an answer has to be chosen, and if it has to be verified.
        `trace` is a file to write; `follow_up` the trace of an earlier question that this one follows. `stop` ends it
        from another thread, with the best answer so far.

        The agent "all" looks at each film that may matter: "in which ..., and how often?" A model plans a table and its
        SQL, and the films' rows answer. `plan` takes the place of the model's own, as an earlier answer's. The rows
        stay as an extract, so the same question again costs nothing, and one that was ended goes on. Its answer is a
        `CollectionAnswer`, which says what was not looked at.

        Bad replies and spent budgets do not raise: they are the answer's `status`. Raises `ModelError` if a model
        cannot be reached, `UsageError` or `AgentError` for arguments that make no sense.
        """
        from kinodex.jobs.models import run_now
        from kinodex.requests import Ask
        from kinodex.runs import Run
        from kinodex.shown_answers import shown

        one, earlier = question_of(question, options), _text_of(earlier_path(follow_up))
        request = _request(Ask, locals(), question=one.text, options=one.options, follow_up=earlier)
        desk = self._desk(model, base_url, cache=cache, agent=agent)
        run = Run(trace_path(trace), on_event=on_event, stop=stop)
        answer: ShownAnswer | ShownCollection = shown(run_now(desk.ask(request, run)), self._reader)
        return answer

    @checked
    def ask_many(
        self,
        questions: Sequence[str | Question],
        *,
        videos: VideoName | Sequence[VideoName] = (),
        where: str | None = None,
        agent: str | Variant = "kino",
        settings: Mapping[str, Any] | None = None,
        budget: Budget | None = None,
        rules: AnswerRules | None = None,
        model: str | Models | ModelChoice = "similarity",
        base_url: str | None = None,
        cache: bool = True,
        at_once: int = 8,
    ) -> list[ShownAnswer]:
        """Answer many questions about the same videos, `at_once` together, in order; `budget` holds for each of them.

        Raises as `ask` does; if some questions get no answer, `QuestionsFailed` holds the answers of the others.
        """
        from kinodex.jobs.models import run_now
        from kinodex.requests import Ask
        from kinodex.shown_answers import shown

        if isinstance(questions, str):
            raise UsageError("got one text for questions; give a list of them, or use `ask`")
        common = locals()
        plain = [question_of(question, ()) for question in questions]
        requests = [_request(Ask, common, question=each.text, options=each.options) for each in plain]
        desk = self._desk(model, base_url, cache=cache, agent=agent)
        return [shown(answer, self._reader) for answer in run_now(desk.ask_many(requests, at_once))]

    def _desk(
        self,
        model: str | Models | ModelChoice = "similarity",
        base_url: str | None = None,
        *,
        cache: bool = True,
        agent: str | Variant | None = None,
    ) -> Desk:
        """Return the desk with these models, which shares the towers and vectors of all desks of this library."""
        from kinodex.desk import USUAL_AGENT, Desk

        models = _models(model, base_url, cache=cache)
        own = agent if agent is not None and not isinstance(agent, str) else USUAL_AGENT
        return Desk(self._reader, models, space=self.space, agent=own, finder=self._finder)


def _request(kind: type[R], arguments: Mapping[str, Any], **others: Any) -> R:
    """Make a request of those arguments of a method that are named as its fields, and of `others`.

    None leaves a field at its default. An agent is named: a `Variant` is the desk's own.
    """
    from kinodex.requests import flags, made

    values = {name: arguments[name] for name, _, _ in flags(kind) if arguments.get(name) is not None} | others
    agent = values.get("agent")
    named = {} if agent is None or isinstance(agent, str) else {"agent": agent.name}
    return made(kind, {**values, "videos": tuple(names_of(values["videos"])), **named})


def _text_of(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _models(
    model: str | Models | ModelChoice = "similarity",
    base_url: str | None = None,
    *,
    cache: bool = True,
) -> Models | ModelChoice:
    from kinodex.jobs.models import ModelChoice

    if isinstance(model, str):
        return ModelChoice(model, base_url, cache=cache)
    if base_url is not None:
        raise UsageError("got base_url beside a model object, which knows its own; give the model's name instead")
    return model
