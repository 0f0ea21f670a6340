"""Tools of the MCP server that read a library: lists, searches, frames and texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

from mcp.types import CallToolResult, ContentBlock
from pydantic import Field

from kinodex.desk import Desk
from kinodex.index.kinds import KINDS, QUOTED_KINDS, WORDED_KINDS
from kinodex.index.library import LibraryReader
from kinodex.index.metadata import plain
from kinodex.index.rows import CaptionRow, ChapterRow, Hit, SegmentRow, VideoRow
from kinodex.jobs.errors import UsageError
from kinodex.jobs.library import frames_between
from kinodex.jobs.verdicts import Judged, basis_of, claim
from kinodex.mcp import replies
from kinodex.mcp.pictures import image_blocks
from kinodex.mcp.replies import first_fitting, lines_of, page, spread, tool_result
from kinodex.mcp.tool_schemas import takes
from kinodex.requests import Find, Ground, made

VideoName = Annotated[str, Field(description="Id, its first digits, title or file name.")]
Condition = Annotated[
    str | None, Field(description="SQL on columns of `videos`: \"camera = 'front' AND day >= '2026-03-01'\".")
]
FromS = Annotated[float | None, Field(description="From this time on.")]
ToS = Annotated[float | None, Field(description="Before this time.")]
Offset = Annotated[int, Field(ge=0, description="Rows to leave out, as `cut` says.")]


class LibraryTools:
    """Tools over one library, by its desk, to be called one at a time: its caches are made for one thread."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    @property
    def library(self) -> LibraryReader:
        """The library that is read."""
        return self.desk.library

    def videos(
        self,
        title: Annotated[str, Field(description="Part of titles.")] = "",
        where: Condition = None,
        offset: Offset = 0,
    ) -> Annotated[CallToolResult, replies.Videos]:
        """List the videos by title, after counts, what models added, and `columns` for conditions."""
        library = self.library.where(where)
        facts, rows = library.info(), library.videos()
        found = [row for row in rows if title.casefold() in row.title.casefold()]
        lines, cut = page(found, replies.VideoLine, "videos", offset, replies.VIDEOS)
        return tool_result(
            replies.Videos(
                library_videos=len(rows),
                library_hours=facts.hours,
                stages=lines_of(facts.added, replies.Stage),
                found=len(found),
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
        lines = self.library.lines.rows(row.video_id)
        said = self.library.speech(row.video_id)
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
                captions_by=next((each.model for each in lines if each.source == "captions"), None),
                columns={name: plain(value) for name, value in values.items()},
                lines=Counter(each.source for each in lines),
                speech_from=sorted({each.source for each in said}),
                speech_languages=sorted({each.language for each in said if each.language}),
                detected=dict(labels.most_common(replies.LABELS)),
                segments=shown,
                never_added=[stage for stage in WORDED_KINDS if self._missing(stage, [row.video_id])],
                cut="; ".join(cuts) or None,
            )
        )

    @takes(Find)
    def search(self, **values: Any) -> Annotated[CallToolResult, replies.Hits]:
        """Find moments that match a query, best first: seen, said, shown, described or detected.

        Look at a hit with `frames` at its start_s. Scores mean nothing across searches; `claim` says what the `basis`
        allows.
        """
        request = made(Find, values)
        most = min(request.k, replies.HITS)
        found = self.desk.find(request.model_copy(update={"k": most}))
        lines = first_fitting([_hit_line(hit) for hit in found.hits])
        is_cut = len(lines) < len(found.hits) or len(found.hits) == replies.HITS < request.k
        cut = f"only {len(lines)} hits fit in a reply; search a part, by videos or by time, for more"
        ids = [row.video_id for row in self.desk.videos(request)] if request.videos or request.where else None
        missing = self._missing(request.in_, ids) if request.in_ in KINDS and KINDS[request.in_].is_added else None
        reply = replies.Hits(
            basis=basis_of(found.hits),
            claim=claim(found.hits),
            hits=lines,
            notes=list(found.notes) or None,
            missing=missing,
            cut=cut if is_cut else None,
        )
        return tool_result(reply)

    @takes(Ground, without=("agent", "budget", "pad_s", "join_s", "snap"))
    def ground(self, **values: Any) -> Annotated[CallToolResult, replies.Ranges]:
        """Find the ranges of time that fit an event best, seen or spoken of; the nearest exist though it is nowhere.

        `claim` says what the `basis` allows: look at ranges with `frames` before you rely on them.
        """
        request = made(Ground, values)
        found = self.desk.ground(request.model_copy(update={"k": min(request.k, replies.HITS)}))
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
                ranges=first_fitting(lines),
            )
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
                left_out = f"only the frames of the first {most} times, of {len(times_s):,} given"
            stored = self.library.frames_at(row.video_id, times_s[:most], mode="shown")
            return image_blocks(row, stored, side_px, left_out)
        count = 4 if count is None else count
        if count > most:
            left_out = f"{most} frames spread over the part, which are as many as a reply holds"
        stored = frames_between(self.library, row, [_part(row, start_s, end_s)], min(count, most))[0]
        return image_blocks(row, stored, side_px, left_out)

    def lines(
        self, video: VideoName, start_s: FromS = None, end_s: ToS = None, offset: Offset = 0
    ) -> Annotated[CallToolResult, replies.Lines]:
        """Read what is said, line by line, and text on screen, as `found_in` says."""
        row = self._video(video, start_s, end_s)
        found = self.library.lines.rows(row.video_id, QUOTED_KINDS, start_s, end_s)
        rows = sorted(map(replies.Line.of, found), key=lambda line: line.start_s)
        lines, cut = page(rows, replies.Line, "lines", offset)
        missing = None if self.library.speech(row.video_id) else self._missing("speech", [row.video_id])
        return _reply_of(replies.Lines, row, lines=lines, cut=cut, missing=missing)

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
        held = self.library.chapters.rows(row.video_id, "scene" if scenes else "chapter")
        rows = [each for each in held if _in_part(each, start_s, end_s)]
        lines, cut = page(rows, replies.Part, "scenes" if scenes else "chapters", offset)
        missing = self._missing("chapters", [row.video_id])
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
            held |= {row.video_id for row in visible.videos(video_ids).values() if row.speech_lines}
        if len(held) == every:
            return None
        lacking = "this video has" if every == 1 else f"{every - len(held):,} of {every:,} videos have"
        return f"{lacking} no {KINDS[stage].label} yet: run `kinodex add {stage}`"

    def _video(self, name: str, start_s: float | None, end_s: float | None) -> VideoRow:
        if start_s is not None and end_s is not None and not start_s < end_s:
            raise UsageError(f"got times from {start_s} to {end_s} s; the end must be after the start")
        video = self.library.video(name)
        _part(video, start_s, end_s)  # an empty reply would read as if nothing were said or seen there
        return video


def _reply_of(reply: type[replies.Rows], video: VideoRow, **values: Any) -> CallToolResult:
    return tool_result(reply(video_id=video.video_id, title=video.title, **values))


def _part(video: VideoRow, start_s: float | None, end_s: float | None) -> tuple[float, float]:
    """Return the part of [start_s, end_s) that the video covers; raises UsageError if there is none."""
    first_s = video.start_s if start_s is None else start_s
    last_s = video.end_s if end_s is None else end_s
    if not (first_s < video.end_s and last_s > video.start_s):
        covers = f"{video.title}, which covers [{video.start_s:.3f}, {video.end_s:.3f}) s"
        raise UsageError(f"got times from {first_s:g} to {last_s:g} s of {covers}; give times in there")
    return max(first_s, video.start_s), min(last_s, video.end_s)


def _in_part(row: SegmentRow | CaptionRow | ChapterRow, start_s: float | None, end_s: float | None) -> bool:
    return (start_s is None or row.end_s > start_s) and (end_s is None or row.start_s < end_s)


def _judged(each: Judged) -> dict[str, Any]:
    return {name: getattr(each, name) for name in replies.Judged.model_fields}


def _hit_line(hit: Hit) -> replies.HitLine:
    return replies.HitLine(
        video_id=hit.video_id,
        title=hit.title,
        start_s=hit.time_s,
        end_s=hit.end_s,
        score=hit.score,
        cosine=hit.cosine,
        bm25=hit.bm25,
        found_in=hit.found_in,
        text=hit.text,
        speaker=hit.speaker,
        query=hit.query or None,
        **_judged(hit),
    )
