"""The search tree as text, printed while it grows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from rich.console import Console
from rich.markup import escape

from kinodex.agent.answer import Answer
from kinodex.agent.protocol.videos import Segment, Video
from kinodex.agent.traces import events
from kinodex.agent.traces.events import Event
from kinodex.index.durations import counted
from kinodex.index.terminal_text import visible, visible_lines
from kinodex.index.times import clock

SHOWN_NOTES = 5
SHOWN_VIDEOS = 5
CLIPPED = 160


class TreeView:
    """Print events as they come, with the depth of each segment and a mark on those of this round."""

    def __init__(self, out: Console) -> None:
        self._out = out
        self._titles: dict[str, str] = {}
        self._segments: dict[int, Segment] = {}
        self._depth: dict[int, int] = {}
        self._new: set[int] = set()

    def __call__(self, event: Event) -> None:
        """Draw an event by the method of its name, if there is one."""
        draw = getattr(self, f"_{type(event).__name__.lower()}", None)
        if draw is not None:
            draw(event)

    def _say(self, text: str) -> None:
        self._out.print(text, soft_wrap=True, highlight=False)

    def _runstarted(self, event: events.RunStarted) -> None:
        self._titles = {video.video_id: video.title for video in event.videos}
        names = ", ".join(sorted(set(event.models.values())))
        what = f"{len(event.videos)} videos" if len(event.videos) > 1 else escape(visible(event.videos[0].title))
        self._say(f"[bold]{event.agent}[/] with {escape(names)} on {what}, {event.index_frames} frames in the index")

    def _queriesadded(self, event: events.QueriesAdded) -> None:
        if event.queries:
            found = f"; {len(event.anchors)} anchors"
            self._say("  looks for " + ", ".join(f'"{escape(query)}"' for query in event.queries) + found)

    def _ranked(self, event: events.Ranked) -> None:
        self._segments |= {segment.number: segment for segment in event.segments}
        for segment, similarity in zip(event.segments[:SHOWN_VIDEOS], event.similarities, strict=False):
            self._say(f"  {self._name(segment.number)}  best anchor {similarity:.2f}")
        if len(event.segments) > SHOWN_VIDEOS:
            self._say(f"  and {len(event.segments) - SHOWN_VIDEOS} videos more")

    def _expanded(self, event: events.Expanded) -> None:
        self._segments |= {segment.number: segment for segment in (event.parent, *event.children)}
        depth = self._depth.setdefault(event.parent.number, 0)
        self._depth |= {segment.number: depth + 1 for segment in event.children}
        self._new = {segment.number for segment in event.children}
        at = ", ".join(
            clock(frame.time_s) + ("*" if frame.frame_no in event.anchor_frame_nos else "") for frame in event.frames
        )
        legend = "   (* anchors)" if event.anchor_frame_nos else ""
        self._say(f"[bold]round {event.round}[/] opens {self._name(event.parent.number)}, sees {at}{legend}")

    def _scored(self, event: events.Scored) -> None:
        if event.entropy is not None:
            self._say(f"  entropy of rewards {event.entropy:.2f}")
        best = max(candidate.fused for candidate in event.candidates)
        for each in event.candidates:
            if each.number in self._new or each.fused == best:
                fusion = "" if event.entropy is None else f"  query {each.query_score:.2f}  fused {each.fused:.2f}"
                self._candidate(each.number, each.reward, fusion, best=each.fused == best)

    def _candidate(self, number: int, reward: float | None, fusion: str, *, best: bool) -> None:
        indent = "   " * self._depth.get(number, 0)
        points = "  --" if reward is None else f"{reward:4.0f}"
        line = f"{indent}{self._name(number):<28} reward {points}{fusion}"
        self._say(f"[green]{line}[/]" if best else line)

    def _acted(self, event: events.Acted) -> None:
        arguments = ", ".join(f"{name} {value}" for name, value in event.arguments.items() if value is not None)
        self._say(f"[bold]round {event.round}[/] {event.action} {escape(_clipped(arguments))}".rstrip())
        if event.thought:
            self._say(f"   thinks: {escape(_clipped(event.thought))}")
        if event.problem:
            self._say(f"   [yellow]{escape(_clipped(event.problem))}[/]")
        for note in event.notes[:SHOWN_NOTES]:
            sure = "" if note.confidence is None else f" ({note.confidence:.2f})"
            span = f"{self._title(note.video_id)}{clock(note.start_s)} to {clock(note.end_s)}"
            self._say(f"   {span}  {note.source}: {escape(_clipped(note.text))}{sure}")
        if len(event.notes) > SHOWN_NOTES:
            self._say(f"   and {len(event.notes) - SHOWN_NOTES} more")

    def _assessed(self, event: events.Assessed) -> None:
        self._say(f"  confidence {event.confidence:g} of {event.most:g}  {escape(_clipped(event.thought))}".rstrip())

    def _decided(self, event: events.Decided) -> None:
        if event.action == "explore" and event.segment is not None:
            self._say(f"  continues with {self._name(event.segment)}")
        else:
            self._say(f"  {event.action.replace('_', ' ')}" + (" (no further round allowed)" if event.forced else ""))

    def _exchanged(self, event: events.Exchanged) -> None:
        if event.exchange.reply is None:
            kind = type(event.request).__name__
            self._say(f"  [yellow]invalid reply[/] to {kind}: {escape(event.exchange.invalid or '')}")

    def _name(self, number: int) -> str:
        segment = self._segments.get(number)
        if segment is None:
            return f"segment {number}"
        return f"{number}: {self._title(segment.video_id)}{clock(segment.start_s)} to {clock(segment.end_s)}"

    def _title(self, video_id: str) -> str:
        return f"{escape(visible(self._titles[video_id]))} " if len(self._titles) > 1 else ""


def _clipped(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= CLIPPED else line[: CLIPPED - 1] + "…"


def show_answer(answer: Answer, videos: tuple[Video, ...], out: Console) -> None:
    say = partial(out.print, soft_wrap=True, highlight=False)
    titles = {video.video_id: video.title for video in videos}
    letter = f"{answer.letter}. " if answer.letter else ""
    say(f"[bold]answer[/]    {letter}{escape(visible_lines(answer.text or '(none)'))}")
    why = f" ({answer.reason})" if answer.reason else ""
    if answer.status == "evidence_only":
        why = ": the moments that fit best; for an answer in words give --model"
    say(f"[bold]status[/]    {answer.status}{why}")
    for each in answer.evidence:
        span = f"{clock(each.start_s)} to {clock(each.end_s)}"
        say(f"[bold]evidence[/]  {span}  {escape(visible(titles[each.video_id]))}")
    if answer.supported is not None:
        found = "comes" if answer.supported else "does not come"
        say(f"[bold]verified[/]  a second look at the evidence alone {found} to this answer")
    elif answer.unverified:
        say(f"[bold]verified[/]  no: {escape(visible(answer.unverified))}")
    say(f"[bold]ledger[/]    {', '.join(_ledger(answer))}")


def _ledger(answer: Answer) -> Iterator[str]:
    bill = answer.ledger
    behind = bill.frames_with_kept - bill.frames
    kept = f" (and {behind} behind captions from earlier runs)" if behind else ""
    yield f"{bill.frames} frames of {bill.index_frames}{kept}"
    yield f"{bill.frame_shows} shows"
    yield f"{answer.rounds} rounds"
    early = f", {bill.declined} gave up too early" if bill.declined else ""
    yield f"{bill.calls} calls ({bill.cached_calls} cached, {bill.invalid_replies} invalid{early})"
    unknown = f" and an estimated {bill.estimated_tokens} of {counted(bill.unknown_calls, 'call')} of unknown usage"
    yield f"{bill.input_tokens}+{bill.output_tokens} tokens{unknown if bill.unknown_calls else ''}"
    yield f"cost {bill.cost:.4f}"
    yield f"{bill.seconds:.1f} s"
    if bill.sheets:  # for a server that takes few pictures
        left = f" ({counted(bill.left_out_frames, 'frame')} left out)" if bill.left_out_frames else ""
        yield f"{counted(bill.sheets, 'contact sheet')}{left}"
    if bill.screen_lines:
        yield f"{counted(bill.screen_lines, 'line')} of text on screen"
    if bill.chapters:
        yield f"{bill.chapters} scenes or chapters listed"
    if bill.videos_without_chapters:  # though a setting asks for them
        yield f"{counted(bill.videos_without_chapters, 'video')} without scenes and chapters"
