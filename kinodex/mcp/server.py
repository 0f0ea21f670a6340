"""The MCP server over one library: its tools, its instructions for assistants, and its errors.

Speaks the Model Context Protocol (https://modelcontextprotocol.io) by its official Python SDK, over stdio or
streamable HTTP.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import itertools
import math
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial, wraps
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import numpy as np
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, ContentBlock, ImageContent, ToolAnnotations
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, ValidationError, create_model
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from kinodex.agent.answer import Answer
from kinodex.agent.ask import VARIANTS, variant_named
from kinodex.agent.ask import ask as run
from kinodex.agent.environment import Environment
from kinodex.agent.limits import Budget
from kinodex.agent.protocol import Question
from kinodex.agent.trace import Acted, Event, Exchanged
from kinodex.agent.variants.base import Variant
from kinodex.answers import AskRequest, videos_left_out
from kinodex.collection import ALL, answer_all
from kinodex.find import ADDED_BY, FOUND_IN, LONGEST_QUESTION, LONGEST_TEXT, MOST_VIDEOS, Finder, Query
from kinodex.guards import LOOPBACK, http_protocol
from kinodex.index.errors import KinodexError
from kinodex.index.library import Library
from kinodex.index.metadata import plain
from kinodex.index.rows import CaptionRow, Hit, SceneRow, SegmentRow, StoredFrame, VideoRow
from kinodex.jobs.errors import UsageError
from kinodex.jobs.library import frames_between, shrunk_jpeg
from kinodex.jobs.models import ModelChoice, ModelsFor
from kinodex.jobs.open import find_space, open_environment
from kinodex.jobs.verdicts import Judged, basis_of, claim
from kinodex.mcp import replies
from kinodex.mcp.replies import (
    EVIDENCE,
    IMAGE_BYTES,
    SIDE_PX,
    AskReply,
    EvidenceLine,
    FrameLabel,
    FramesHeading,
    as_json,
    clipped,
    first_fitting,
    lines_of,
    page,
    spread,
    tool_result,
)
from kinodex.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from kinodex.jobs.verify import Look

GRACE_S = 3
"""Seconds that the server waits at its end for clients that stay connected."""
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ASKS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
"""Captions and verdicts that a model has made may be kept in the library, and the model may be elsewhere."""


def make_server(tools: LibraryTools, options: AskOptions | None, answering: Answering | None = None) -> MCPServer:
    """Make a server with all tools over one library; run it in the event loop of the models of `options`.

    `answering` answers in the place of those models. Without `options` there is no tool `ask`.
    """
    turn = anyio.Lock()
    searches = tools.search, tools.ground
    reads = (
        tools.videos,
        tools.overview,
        tools.frames,
        tools.transcript,
        tools.captions,
        tools.chapters,
        tools.detections,
    )
    offered = [_tool(_in_turn(search, turn), READS if tools.look is None else ASKS) for search in searches]
    offered += [_tool(_in_turn(read, turn), READS) for read in reads]
    if options is not None:
        if answering is None:
            if options.models is None:
                raise ValueError("got neither models nor something that answers")
            answering = answer_here(
                _in_turn(tools.environment_of, turn), options.models, tools.library.uri, options.choice
            )
        offered.append(_tool(ask_tool(answering, options), ASKS))
    instructions = _instructions(options)
    return MCPServer(
        "kinodex", version=version("kinodex"), instructions=instructions, tools=offered, log_level="WARNING"
    )


def _instructions(options: AskOptions | None) -> str:
    from jinja2 import StrictUndefined, Template

    text = Path(__file__).with_name("instructions.jinja").read_text(encoding="utf-8")
    template = Template(text, undefined=StrictUndefined, keep_trailing_newline=True)
    if options is None:
        return str(template.render(agent=None))
    agents = ", ".join(dict.fromkeys(each.name for each in (*VARIANTS, options.agent)))
    models = ", ".join(f"{role} {name}" for role, name in options.model_names.items())
    return str(template.render(agent=options.agent.name, agents=agents, models=models))


class _PlainTool(Tool):
    """A tool that says in one line which arguments are wrong: pydantic's own text has several, and links."""

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
        try:
            return await super().run(arguments, context, convert_result)
        except UnexpectedToolError:
            raise
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            wrong = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.__cause__.errors())
            taken = ", ".join(self.fn_metadata.arg_model.model_fields)
            raise ToolError(clipped(f"{self.name} cannot be called so: {wrong}; it takes {taken}")) from error


def _tool(function: Callable[..., Any], hints: ToolAnnotations) -> Tool:
    """Make a tool of a function. An unknown argument is an error here, as is NaN; the SDK would take both."""
    tool = _PlainTool.from_function(
        _with_tool_errors(function), description=" ".join((inspect.getdoc(function) or "").split()), annotations=hints
    )
    lenient = tool.fn_metadata.arg_model
    settings = {"extra": "forbid", "allow_inf_nan": False}
    strict = create_model(lenient.__name__, __base__=lenient, __cls_kwargs__=settings)
    tool.fn_metadata.arg_model = strict
    tool.parameters = _short(strict.model_json_schema(by_alias=True))
    if tool.fn_metadata.output_schema is not None:
        replies_with = _short(tool.fn_metadata.output_schema, without=("title", "default", "required", "description"))
        tool.fn_metadata.output_schema = replies_with
    return tool


def _short(schema: dict[str, Any], without: Sequence[str] = ("title",)) -> dict[str, Any]:
    """Write a schema without what says nothing: an assistant pays for every word of it in each conversation.

    Pydantic repeats names as titles, and describes what may be left out as null besides: replies leave it out, and so
    do calls, though null is still taken for it. Of a docstring the first paragraph stays; parts stand where they are
    used, for each is used once.
    """
    parts = {f"#/$defs/{name}": part for name, part in schema.get("$defs", {}).items()}
    return _shortened(schema, parts, {*without, "$defs"})


def _shortened(schema: dict[str, Any], parts: Mapping[str, dict[str, Any]], without: Collection[str]) -> dict[str, Any]:
    schema = parts.get(schema.get("$ref", ""), schema)
    kept = {name: value for name, value in schema.items() if name not in without}
    either = [each for each in kept.get("anyOf", ()) if each != {"type": "null"}]
    if len(either) == 1:
        kept = {**either[0], **{name: value for name, value in kept.items() if name != "anyOf"}}
    if kept.get("default", "") in (None, ""):
        kept.pop("default", None)
    for name, value in kept.items():
        if name == "properties":
            kept[name] = {key: _shortened(each, parts, without) for key, each in value.items()}
        elif name == "description":
            kept[name] = " ".join(value.split("\n\n")[0].split())
        elif isinstance(value, dict):
            kept[name] = _shortened(value, parts, without)
        elif isinstance(value, list):
            kept[name] = [_shortened(each, parts, without) if isinstance(each, dict) else each for each in value]
    return kept


def _in_turn(function: Callable[..., Any], turn: anyio.Lock) -> Callable[..., Any]:
    """Run the function in a thread, one call at a time, so that reading a library does not hold up the protocol."""

    @wraps(function)
    async def waiting(*args: Any, **arguments: Any) -> Any:
        async with turn:
            return await anyio.to_thread.run_sync(partial(function, *args, **arguments))

    return waiting


def _with_tool_errors(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Turn errors of the tree into tool errors, whose one line the client gets; other exceptions are logged."""

    @wraps(tool)
    async def guarded(**arguments: Any) -> Any:
        try:
            return await tool(**arguments)
        except (KinodexError, PipelineError) as error:
            raise ToolError(clipped(str(error))) from error  # its message repeats the argument, however long that is

    return guarded


def _without_browsers(app: ASGIApp) -> ASGIApp:
    """Refuse pages in browsers: where the server accepts any name, a site can point its own name here."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and "origin" in Headers(scope=scope):
            refusal = PlainTextResponse("a page in a browser cannot use this server", status_code=403)
            await refusal(scope, receive, send)
        else:
            await app(scope, receive, send)

    return guarded


async def serve_http(server: MCPServer, listener: socket.socket, host: str) -> None:
    """Serve at `/mcp` until interrupted, to no page of a site; on loopback, under no other host name."""
    import uvicorn

    app: ASGIApp = server.streamable_http_app(host=host)
    app = app if host in LOOPBACK else _without_browsers(app)
    config = uvicorn.Config(app, http=http_protocol(), log_level="warning", timeout_graceful_shutdown=GRACE_S)
    await uvicorn.Server(config).serve(sockets=[listener])


# Tools of the MCP server that read a library: lists, searches, frames and texts.
#
# Models read the docstrings of tools: they describe a tool and its limits, which are those of `kinodex.mcp.replies`.


def _at_most(limit: int, what: str) -> AfterValidator:
    """Refuse what is longer; not by the schema of a tool, which each conversation pays for."""

    def check(value: Any) -> Any:
        if value is not None and len(value) > limit:
            raise ValueError(f"got {len(value):,} {what}; give at most {limit:,}")
        return value

    return AfterValidator(check)


Words = Annotated[str, _at_most(LONGEST_TEXT, "characters"), Field(description="In words.")]
VideoName = Annotated[str, Field(description="Id, its first digits, title or file name.")]
VideoNames = Annotated[
    list[str] | None,
    Field(min_length=1, description="Only these videos."),
    _at_most(MOST_VIDEOS, "videos"),
]
VideosWhere = Annotated[
    str | None,
    Field(description="SQL on columns of `videos`: \"camera = 'front' AND day >= '2026-03-01'\"."),
    _at_most(LONGEST_TEXT, "characters"),
]
FromS = Annotated[float | None, Field(description="From this time on.")]
ToS = Annotated[float | None, Field(description="Before this time.")]
Offset = Annotated[int, Field(ge=0, description="Rows to leave out, as `cut` says.")]
LookIn = Annotated[
    str,
    Field(
        description="pictures: by meaning; clips: by movement; words: speech, screen-text and captions, perhaps by "
        "meaning; chapters: titles and summaries; detections: the query is a label; all: the first three; or an "
        "extract: the name among `stages`, before its @."
    ),
]


Verify = Annotated[
    int,
    Field(ge=0, le=20, description="A model looks at the first so many: yes or no, why."),
]
DESCRIBED = ("captions", "speech", "text", "detections", "summaries")
"""Stages whose rows an overview counts."""


class LibraryTools:
    """Tools over one open library, to be called one at a time: its caches are made for one thread.

    Frames are searched in `space`, by name or digest; None is the library's own. Raises UsageError if the library does
    not have it.
    """

    def __init__(
        self, library: Library, detector: str | None = None, space: str | None = None, look: Look | None = None
    ) -> None:
        """`look` has a model look at moments; None: this server has none."""
        self.library = library
        self.look = look
        self._detector = detector
        self._space = space
        find_space(library, space)
        self._finder = Finder(library, space, embed_text=lambda text: self.environment.embed_text(text))

    @cached_property
    def _agents_library(self) -> Library:
        """The library, opened once more: agents and these tools run in different threads."""
        return Library.open(self.library.uri)

    @cached_property
    def environment(self) -> Environment:
        """Open all videos with the text tower of the space, which takes seconds and which not all tools need.

        Raises SpaceError or SpaceMismatch.
        """
        return open_environment(self._agents_library, detector=self._detector, space=self._space)

    def environment_of(self, videos: Sequence[str] | None, where: str | None = None) -> Environment:
        """Environment of these videos, or of all that the library has now, for which a condition holds."""
        whole, library = self.environment, self._agents_library.where(where)
        return Environment.of(
            library, library.chosen(videos or ()), whole.source.embed_texts, whole.detect, space=self._space
        )

    def videos(
        self,
        title: Annotated[str, Field(description="Part of titles.")] = "",
        videos_where: VideosWhere = None,
        offset: Offset = 0,
    ) -> Annotated[CallToolResult, replies.Videos]:
        """List the videos by title, after counts, what models added, and `columns` for conditions."""
        library = self.library.where(videos_where)
        facts, rows = library.info(), library.videos()
        found = [row for row in rows if title.casefold() in row.title.casefold()]
        lines, cut = page(found, replies.VideoLine, "videos", offset, replies.VIDEOS)
        return tool_result(
            replies.Videos(
                library_videos=len(rows),
                library_hours=facts.hours,
                stages=lines_of(facts.added, replies.Stage),
                found=len(found),
                noise=facts.noise,
                columns=replies.columns_of(library.metadata.facets(library.video_ids())),
                videos=lines,
                cut=cut,
            )
        )

    def overview(
        self, video: VideoName, start_s: FromS = None, end_s: ToS = None
    ) -> Annotated[CallToolResult, replies.Overview]:
        """Describe one video: facts, shots or other segments with captions, counts of lines, labels detected.

        At most 60 segments, spread evenly over the part, and 30 labels.
        """
        row = self._video(video, start_s, end_s)
        captions, lines = self.library.captions(row.video_id), self.library.transcript(row.video_id)
        labels = Counter(each.label for each in self.library.detections(row.video_id))
        values = self.library.metadata.of([row.video_id]).get(row.video_id, {})
        segments = [each for each in self.library.segments(row.video_id) if _in_part(each, start_s, end_s)]
        shown = spread(segments, replies.SegmentLine, replies.SEGMENTS)
        cuts = []
        if len(shown) < len(segments):
            cuts += [f"{len(shown)} of {len(segments):,} segments, spread evenly; start_s and end_s give a part"]
        if len(labels) > replies.LABELS:
            cuts += [f"the {replies.LABELS} most frequent of {len(labels):,} labels"]
        return tool_result(
            replies.Overview(
                video=replies.VideoFacts.model_validate(row, from_attributes=True),
                captions=len(captions),
                captions_by=captions[0].model if captions else None,
                columns={name: plain(value) for name, value in values.items()},
                transcript_lines=len(lines),
                transcript_from=sorted({each.source for each in lines}),
                transcript_languages=sorted({each.language for each in lines if each.language}),
                screen_text_lines=len(self.library.screen_text.rows(row.video_id)),
                detected=dict(labels.most_common(replies.LABELS)),
                segments=shown,
                never_added=[stage for stage in DESCRIBED if self._missing(stage, [row.video_id])],
                cut="; ".join(cuts) or None,
            )
        )

    def search(
        self,
        query: Words,
        where: LookIn = "all",
        videos: VideoNames = None,
        videos_where: VideosWhere = None,
        start_s: FromS = None,
        end_s: ToS = None,
        k: Annotated[int, Field(description="Hits, 1 to 50.")] = 10,
        min_gap_s: Annotated[float, Field(ge=0, description="Least seconds between hits of one video.")] = 2.0,
        verify: Verify = 0,
        like: Annotated[str | None, Field(description="Also like this frame: VIDEO@SECONDS.")] = None,
    ) -> Annotated[CallToolResult, replies.Hits]:
        """Find moments that match a query, best first: seen, said, shown, described or detected.

        Look at a hit with `frames` at its start_s. Scores mean nothing across searches; `claim` says what the `basis`
        allows.
        """
        if k < 1:
            raise UsageError(f"got k={k}; ask for at least 1 hit")
        limits = start_s, end_s, min(k, replies.HITS), min_gap_s
        picture: NDArray[np.float16] | None = None
        if like is not None:
            picture, where = self._vector_at(like), "pictures"
        hits = self._finder.find(Query(query, picture, where, videos or (), *limits, condition=videos_where))
        if verify:
            hits = self._look(self.library, query, hits, verify)[0]
        lines = first_fitting([self._found(hit) for hit in hits])
        is_cut = len(lines) < len(hits) or len(hits) == replies.HITS < k
        cut = f"only {len(lines)} hits fit in a reply; search a part, by videos or by time, for more"
        among = self.library.where(videos_where)
        ids = [row.video_id for row in among.chosen(videos or ())] if videos or videos_where else None
        missing = self._missing(ADDED_BY[where], ids) if where in ADDED_BY else None
        noise = hits[0].noise if hits else None
        found = replies.Hits(basis=basis_of(hits), claim=claim(hits), hits=lines, noise=noise, missing=missing)
        return tool_result(found.model_copy(update={"cut": cut if is_cut else None}))

    def ground(
        self,
        event: Words,
        videos: VideoNames = None,
        videos_where: VideosWhere = None,
        most: Annotated[int, Field(ge=1, le=replies.HITS, description="Number of ranges.")] = 5,
        verify: Verify = 0,
    ) -> Annotated[CallToolResult, replies.Ranges]:
        """Find the ranges of time that fit an event best, seen or spoken of; the nearest exist though it is nowhere.

        `claim` says what the `basis` allows: look at ranges with `frames` before you rely on them.
        """
        from kinodex.jobs.ground import ground, with_verdicts

        library = self.library.where(videos_where)
        rows = library.videos_named(videos or ())
        found = ground(library, self.environment_of(None, videos_where), event, rows, most=most)
        if verify:
            found = with_verdicts(found, self._look(self.library, event, found.candidates, verify)[0])
        lines = [
            replies.RangeLine(
                video_id=each.video.video_id,
                title=each.video.title,
                start_s=each.start_s,
                end_s=each.end_s,
                score=each.score,
                found_in=each.source,
                **_judged(each),
            )
            for each in found.candidates
        ]
        return tool_result(
            replies.Ranges(
                basis=found.basis,
                claim=found.claim,
                present=found.present,
                noise=found.noise,
                ranges=first_fitting(lines),
            )
        )

    @property
    def _look(self) -> Look:
        if self.look is None:
            raise UsageError("got verify, and this server has no model that sees; start it with --model and --base-url")
        return self.look

    def _vector_at(self, named: str) -> NDArray[np.float16]:
        """The vector of the frame on screen at `VIDEO@SECONDS`, in the space that is searched."""
        video, _, at = named.rpartition("@")
        try:
            time_s = float(at)
        except ValueError:
            time_s = math.nan
        if not video or not math.isfinite(time_s):
            raise UsageError(f"got like={named[:40]!r}; give a video and seconds, such as film-01@12.5")
        row = self.library.video(video)
        (frame,) = self.library.frames_at(row.video_id, [time_s], mode="shown")
        held = self.library.vectors(row.video_id, self._space)
        vector: NDArray[np.float16] = held.vectors[held.frame_no == frame.frame_no][0]
        return vector

    def _found(self, hit: Hit) -> replies.HitLine:
        return replies.HitLine(
            video_id=hit.video_id,
            title=hit.title,
            start_s=hit.time_s,
            end_s=hit.end_s,
            score=hit.score,
            cosine=hit.cosine,
            bm25=hit.bm25,
            found_in=FOUND_IN[hit.source],
            text=hit.text,
            speaker=hit.speaker,
            query=hit.query or None,
            **_judged(hit),
        )

    def frames(
        self,
        video: VideoName,
        times_s: Annotated[
            list[float] | None, Field(description="Times in seconds: the frames that are on screen then.")
        ] = None,
        start_s: FromS = None,
        end_s: ToS = None,
        count: Annotated[
            int | None, Field(ge=1, description="Without times_s: how many frames, spread from start_s to end_s; 4.")
        ] = None,
        side_px: Annotated[int, Field(ge=16, description="Longest side of a picture, in pixels.")] = 512,
    ) -> list[ContentBlock]:
        """Show frames of a video as pictures, each after its number and time: at given times, or spread over a part.

        At most 8 frames of 1,024 pixels a side. Each comes once, with the time when it appears: fewer where the
        picture stands still or was sampled more rarely.
        """
        row = self._video(video, start_s, end_s)
        most, left_out = replies.FRAMES, None
        if times_s is not None:
            if not times_s or not start_s == end_s == count is None:
                raise UsageError(
                    "give times_s with a time or more, or else start_s, end_s and count, which spread frames"
                )
            if len(times_s) > most:
                left_out = f"the frames of the first {most} times alone, of {len(times_s):,} given"
            stored = self.library.frames_at(row.video_id, times_s[:most], mode="shown")
            return image_blocks(row, stored, side_px, left_out)
        count = 4 if count is None else count
        if count > most:
            left_out = f"{most} frames spread over the part, which are as many as a reply holds"
        stored = frames_between(self.library, row, [_part(row, start_s, end_s)], min(count, most))[0]
        return image_blocks(row, stored, side_px, left_out)

    def transcript(
        self, video: VideoName, start_s: FromS = None, end_s: ToS = None, offset: Offset = 0
    ) -> Annotated[CallToolResult, replies.Transcript]:
        """Read what is said, line by line: subtitles, speech; and text that the picture shows, marked `on_screen`."""
        row = self._video(video, start_s, end_s)
        said = lines_of(self.library.transcript(row.video_id, start_s, end_s), replies.TranscriptLine)
        shown = map(replies.TranscriptLine.shown, self.library.screen_text.rows(row.video_id, start_s, end_s))
        rows = sorted([*said, *shown], key=lambda line: line.start_s)
        lines, cut = page(rows, replies.TranscriptLine, "lines", offset)
        is_heard = bool(rows or self.library.transcript(row.video_id))
        missing = None if is_heard else self._missing("speech", [row.video_id])
        return _reply_of(replies.Transcript, row, lines=lines, cut=cut, missing=missing)

    def captions(
        self, video: VideoName, start_s: FromS = None, end_s: ToS = None, offset: Offset = 0
    ) -> Annotated[CallToolResult, replies.Captions]:
        """Read the captions, written by a model or by people; there may be none."""
        row = self._video(video, start_s, end_s)
        rows = [each for each in self.library.captions(row.video_id) if _in_part(each, start_s, end_s)]
        lines, cut = page(rows, replies.Caption, "captions", offset)
        missing = self._missing("captions", [row.video_id])
        by = rows[0].model if rows else None
        return _reply_of(replies.Captions, row, captions_by=by, captions=lines, cut=cut, missing=missing)

    def chapters(
        self,
        video: VideoName,
        start_s: FromS = None,
        end_s: ToS = None,
        scenes: Annotated[bool, Field(description="The scenes of the chapters instead: finer, and more.")] = False,
        offset: Offset = 0,
    ) -> Annotated[CallToolResult, replies.Contents]:
        """Read the table of contents, the quickest way into a long video: titles and summaries, or none."""
        row = self._video(video, start_s, end_s)
        held = self.library.scenes.rows(row.video_id, "scene" if scenes else "chapter")
        rows = [each for each in held if _in_part(each, start_s, end_s)]
        lines, cut = page(rows, replies.Part, "scenes" if scenes else "chapters", offset)
        missing = self._missing("summaries", [row.video_id])
        by = rows[0].model if rows else None
        return _reply_of(replies.Contents, row, written_by=by, parts=lines, cut=cut, missing=missing)

    def detections(
        self,
        video: VideoName,
        label: Annotated[str | None, Field(description="Only of this label; `overview` lists the labels.")] = None,
        min_score: Annotated[float, Field(ge=0, le=1, description="Least score, 0 to 1.")] = 0.0,
        start_s: FromS = None,
        end_s: ToS = None,
        offset: Offset = 0,
    ) -> Annotated[CallToolResult, replies.Detections]:
        """List the detections, with scores, boxes and tracks; there may be none."""
        row = self._video(video, start_s, end_s)
        rows = self.library.detections(row.video_id, start_s, end_s, label, min_score)
        lines, cut = page(rows, replies.Detection, "detections", offset)
        missing = self._missing("detections", [row.video_id])
        return _reply_of(replies.Detections, row, detections=lines, cut=cut, missing=missing)

    def _missing(self, stage: str, video_ids: Sequence[str] | None) -> str | None:
        """Say which of these videos (None: of all) never had a stage: an empty list reads as if nothing were there.

        Subtitles are as good as speech.
        """
        visible = self.library.visible
        held, every = set(visible.models(stage, video_ids)), len(video_ids or self.library.video_ids())
        if stage == "speech":
            held |= {row.video_id for row in visible.videos(video_ids).values() if row.transcript_lines}
        if len(held) == every:
            return None
        where = "this video" if every == 1 else f"{every - len(held):,} of {every:,} videos"
        word = next((word for word, name in ADDED_BY.items() if name == stage), stage)
        return f"{word} were never added to {where}: `kinodex add {word}` does that"

    def _video(self, name: str, start_s: float | None, end_s: float | None) -> VideoRow:
        if start_s is not None and end_s is not None and not start_s < end_s:
            raise UsageError(f"got times from {start_s} to {end_s} s; the end must be after the start")
        video = self.library.video(name)
        _part(video, start_s, end_s)  # an empty reply would read as if nothing were said or seen there
        return video


def _reply_of(reply: type[replies.Rows], video: VideoRow, **values: Any) -> CallToolResult:
    return tool_result(reply(video_id=video.video_id, title=video.title, **values))


def _part(video: VideoRow, start_s: float | None, end_s: float | None) -> tuple[float, float]:
    """Part of [start_s, end_s) that the video covers; raises UsageError if there is none."""
    first_s = video.start_s if start_s is None else start_s
    last_s = video.end_s if end_s is None else end_s
    if not (first_s < video.end_s and last_s > video.start_s):
        covers = f"{video.title}, which covers [{video.start_s:.3f}, {video.end_s:.3f}) s"
        raise UsageError(f"got times from {first_s:g} to {last_s:g} s of {covers}; give times in there")
    return max(first_s, video.start_s), min(last_s, video.end_s)


def _in_part(row: SegmentRow | CaptionRow | SceneRow, start_s: float | None, end_s: float | None) -> bool:
    return (start_s is None or row.end_s > start_s) and (end_s is None or row.start_s < end_s)


# Stored frames as content of an MCP reply: each picture after its number and time.

JPEG_QUALITY = 85


def image_blocks(
    video: VideoRow, stored: Sequence[StoredFrame], side_px: int, left_out: str | None = None
) -> list[ContentBlock]:
    frames = list({frame.frame_no: frame for frame in stored}.values())
    side = min(side_px, SIDE_PX)
    shown: list[ContentBlock] = []
    left = IMAGE_BYTES
    for frame in frames:
        jpeg = shrunk_jpeg(frame, side, JPEG_QUALITY)
        left -= len(jpeg)
        if left < 0:
            break
        data = base64.b64encode(jpeg).decode("ascii")
        shown += [as_json(FrameLabel(frame_no=frame.frame_no, time_s=frame.time_s))]
        shown += [ImageContent(type="image", data=data, mime_type="image/jpeg")]
    cuts = [left_out] if left_out else []
    cuts += [f"pictures are at most {SIDE_PX} pixels a side"] if side_px > SIDE_PX else []
    fit = len(shown) // 2
    cuts += [f"{fit} of {len(frames)} pictures fit; ask with a smaller side_px"] if fit < len(frames) else []
    heading = FramesHeading(video_id=video.video_id, title=video.title, frames=fit, cut="; ".join(cuts) or None)
    return [as_json(heading), *shown]


# The tool `ask` of the MCP server: an agent answers a question, with evidence and costs.
#
# The command that starts the server names the models: a client that could name an endpoint could have frames and keys
# sent there.

EnvironmentOf = Callable[[Sequence[str] | None, str | None], Awaitable[Environment]]
"""An environment of some videos by name, or of all, for which a condition holds."""
Watch = Callable[[int, bool], None]
"""Takes each event of a run: its round, and if it is a model's reply."""
Titles = Mapping[str, str]
BEAT_S = 10.0
"""Seconds between reports of progress: some clients give up after a minute without one."""
AGENTS = ", ".join(each.name for each in VARIANTS)


@dataclass(frozen=True, slots=True)
class AskCall:
    """One question of a client, within the limits of the server; no `videos` are all of them."""

    question: Question
    videos: Sequence[str]
    agent: Variant
    settings: Mapping[str, str | int | float | bool]
    budget: Budget
    where: str | None = None


Answering = Callable[[AskCall, Watch], Awaitable[tuple[Answer, Titles]]]
"""Answers a call; gives the titles of the answer's videos too."""


@dataclass(frozen=True, slots=True)
class AskOptions:
    """Models, agent and limits of answers; a call may choose another agent, and spend less than `budget`, not more.

    Without `models` the server has to be made with something that answers (`Answering`).
    """

    models: ModelsFor | None
    model_names: Mapping[str, str]
    agent: Variant
    budget: Budget
    beat_s: float = BEAT_S
    choice: ModelChoice | None = None
    """The same models as a choice, which the agent `all` opens for itself; without endpoints there is none."""


def answer_here(environment_of: EnvironmentOf, models: ModelsFor, uri: str, choice: ModelChoice | None) -> Answering:
    async def answer(call: AskCall, watch: Watch) -> tuple[Answer, Titles]:
        if call.agent is ALL and choice is not None:
            library = Library.open(uri).where(call.where)
            loop = asyncio.get_running_loop()

            def tell(event: Event) -> None:
                loop.call_soon_threadsafe(watch, getattr(event, "round", 0), isinstance(event, Acted))

            asked = AskRequest(choice, settings=call.settings, budget=call.budget, on_event=tell)
            whole = partial(answer_all, library, call.question, asked, videos=call.videos)
            found = await anyio.to_thread.run_sync(whole)
            return found, {row.video_id: row.title for row in library.videos()}
        environment = await environment_of(call.videos, call.where)
        answered = await run(
            call.question,
            environment,
            models(environment),
            agent=call.agent,
            parameters=call.settings,
            budget=call.budget,
            on_event=lambda event: watch(getattr(event, "round", 0), isinstance(event, Exchanged)),
        )
        return answered, {video.video_id: video.title for video in environment.videos}

    return answer


def _judged(each: Judged) -> dict[str, Any]:
    return {name: getattr(each, name) for name in replies.Judged.model_fields}


def ask_tool(answering: Answering, defaults: AskOptions) -> Callable[..., Awaitable[CallToolResult]]:
    async def ask(
        question: Annotated[str, _at_most(LONGEST_QUESTION, "characters"), Field(description="In words.")],
        context: Context,
        options: Annotated[list[str] | None, Field(description="2 to 26 choices, of which one is the answer.")] = None,
        videos: VideoNames = None,
        videos_where: VideosWhere = None,
        agent: Annotated[
            str | None,
            Field(description=f"{AGENTS}; all: each film alone, for which and how many."),
        ] = None,
        settings: Annotated[
            dict[str, str | int | float | bool] | None,
            Field(description="Parameters of the agent by name; an error lists them."),
        ] = None,
        max_frames: Annotated[int | None, Field(description="Most different frames that a model is shown.")] = None,
        max_seconds: Annotated[float | None, Field(description="Most seconds that it works.")] = None,
    ) -> Annotated[CallToolResult, AskReply]:
        """Have an agent search the videos for the answer to a question, and name the time ranges of its evidence.

        Its status is answered, insufficient_evidence, budget_exhausted (the best answer so far) or invalid. Look at
        the evidence with `frames` or `transcript` before you rely on it. Takes seconds to minutes, within the server's
        limits.
        """
        # a client can name an agent of kinodex, never a file, whose code would run here
        chosen = defaults.agent if agent in (None, defaults.agent.name) else _agent(agent)
        asked = Question(question, tuple(options or ()))
        budget = _within(defaults.budget, max_frames, max_seconds)
        call = AskCall(asked, videos or (), chosen, settings or {}, budget, videos_where)
        async with _progress(context, defaults.beat_s) as watch:
            answer, titles = await answering(call, watch)
        reply = _reply(answer, chosen.name, titles, defaults.model_names)
        some = videos_left_out(chosen, settings or {}, len(titles))
        cuts = [reply.cut, some and f"{some}; the agent {ALL.name} asks about each"]
        return tool_result(reply.model_copy(update={"cut": "; ".join(filter(None, cuts)) or None}))

    return ask


def _agent(name: str) -> Variant:
    return ALL if name == ALL.name else variant_named(name)


def _within(budget: Budget, frames: int | None, seconds: float | None) -> Budget:
    limits = [each for each in (budget.frames, frames) if each is not None]
    spans_s = [each for each in (budget.seconds, seconds) if each is not None]
    return replace(budget, frames=min(limits, default=None), seconds=min(spans_s, default=None))


@asynccontextmanager
async def _progress(context: Context, beat_s: float) -> AsyncIterator[Watch]:
    """Yield a function that watches a run; the client gets a report at the start of each round, and every `beat_s`."""
    reported, replies = 0, 0
    numbers = itertools.count(1)  # a client may refuse progress that does not grow
    reports: set[asyncio.Task[None]] = set()

    def report() -> None:
        message = f"round {reported}, {replies} replies of models"
        task = asyncio.create_task(context.report_progress(next(numbers), None, message))
        reports.add(task)
        task.add_done_callback(reports.discard)

    def watch(number: int, is_reply: bool) -> None:
        nonlocal reported, replies
        replies += is_reply
        if number > reported:
            reported = number
            report()

    async def beat() -> None:
        while True:
            await asyncio.sleep(beat_s)
            report()

    beating = asyncio.create_task(beat())
    try:
        yield watch
    finally:
        beating.cancel()


def _reply(answer: Answer, agent: str, titles: Titles, models: Mapping[str, str]) -> AskReply:
    ranges = [
        EvidenceLine(video_id=each.video_id, title=titles[each.video_id], start_s=each.start_s, end_s=each.end_s)
        for each in answer.evidence
    ]
    evidence = first_fitting(ranges[:EVIDENCE])
    ledger = answer.ledger
    return AskReply(
        status=answer.status,
        answer=answer.text,
        letter=answer.letter,
        reason=answer.reason or None,
        noise=answer.noise,
        evidence=evidence,
        rounds=answer.rounds,
        agent=agent,
        models=dict(models),
        ledger=replace(
            ledger,
            cost=round(ledger.cost, 6),
            seconds=round(ledger.seconds, 3),
            model_seconds=round(ledger.model_seconds, 3),
        ),
        cut=f"{len(evidence)} of {len(ranges)} ranges of evidence" if len(evidence) < len(ranges) else None,
    )
