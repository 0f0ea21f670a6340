"""LongVideoAgent (arXiv 2512.20618): Algorithm 1, section 3.1, Tables 1, 3 and 5.

A master that only reads takes one action a turn, K turns at most: it has a clip located, has frames of that clip
looked at, or answers. An `Episode` carries out its actions; `jobs.train.rewards` has the rewards that train it. Three
models: the roles "policy" (the master), "grounding" and "vision". `docs/papers.md` says what the paper leaves open,
what was decided, and where the published code departs.
"""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError, model_validator

from kinodex.agent.answer import Answer
from kinodex.agent.answer_rules import Declining
from kinodex.agent.environment import AnchorsFrom, Environment
from kinodex.agent.errors import BadSettings, InvalidReply
from kinodex.agent.models.rules import MIN_BEARING, cloze_statements, describe, rule, word_share
from kinodex.agent.protocol import (
    VIDEO_ID_LENGTH,
    Exchange,
    Note,
    Question,
    Reasoned,
    Reply,
    Request,
    ShownFrame,
    Turn,
    Video,
    described,
    read_alone,
    read_as,
)
from kinodex.agent.replies import Bounds, Numbers, flat_call, says_nothing
from kinodex.agent.requests.answer import (
    Answered,
    AnswerNotes,
    Conclusion,
    OfRun,
    check_answer,
    check_not_refused,
)
from kinodex.agent.session import Session
from kinodex.agent.trace import Acted
from kinodex.agent.tree import Form, show_chapters
from kinodex.agent.variants.base import (
    PAPER_FORM,
    QUOTED,
    THOUGHT,
    Step,
    Variant,
    check_at_least,
    for_query,
    joined,
    no_step,
    restore_paper,
    span,
)
from kinodex.index.kinds import LINE_KINDS
from kinodex.index.nesting import parse_json

if TYPE_CHECKING:
    from kinodex.index.rows import SegmentRow


# Clips of videos under tags, with the words of each, and the clip whose pictures match a text best.

CLIP_S = 60.0
"""TVQA's clips last 60 to 90 s, and the paper's agents work on them."""
SHORTEST_CLIP_S = 10.0
"""Captions of a video without pictures may be of a second each: a clip of them is at least so long."""
LARGEST_SHIFT = 1 / 3
"""The share of a clip's length by which its border moves to the border of a segment."""
SPOKEN_SHARE = 0.5
"""A caption fills a gap of the transcript if people speak for less than this share of its time."""


def tagged_clips(environment: Environment, clip_s: float = CLIP_S, *, subtitles_alone: bool = False) -> Iterator[Clip]:
    """Clips of about `clip_s` of all videos under consecutive numbers; 0: the library's segments.

    A line, spoken or on screen, belongs to the clip in which it begins. Captions stand in the place of a transcript
    where nobody speaks; with `subtitles_alone` neither they nor text on screen are read.
    """
    number = 0
    for video in environment.videos:
        spans = _spans(environment, video, clip_s)
        starts_s = [start_s for start_s, _ in spans]
        lines = environment.lines(video.video_id, ["speech"])
        silent = [] if subtitles_alone else _in_gaps(environment.captions(video.video_id), lines)
        said = _shared_out([(line.start_s, line.text) for line in lines], starts_s)
        shown = _shared_out([(note.start_s, note.text) for note in silent], starts_s)
        titles = (
            [] if subtitles_alone else environment.lines(video.video_id, ("screen_text",), video.start_s, video.end_s)
        )
        written = _shared_out([(row.start_s, row.text) for row in titles], starts_s, " / ")
        for range_s, heard, seen, text in zip(spans, said, shown, written, strict=True):
            number += 1
            if heard:
                yield Clip(number, video.video_id, *range_s, heard, "speech", seen, text)
            else:
                yield Clip(number, video.video_id, *range_s, seen, "captions" if seen else "", written=text)


def _spans(environment: Environment, video: Video, clip_s: float) -> list[tuple[float, float]]:
    rows: Sequence[SegmentRow | Note] = environment.segments(video.video_id)
    if not rows and not video.has_pictures:
        rows = environment.words(video.video_id)
    if not clip_s and video.has_pictures:
        return [(row.start_s, row.end_s) for row in rows] or [(video.start_s, video.end_s)]
    borders_s = [row.start_s for row in rows if video.start_s < row.start_s < video.end_s]
    cuts_s = [video.start_s, *_cuts(video, borders_s, max(clip_s, SHORTEST_CLIP_S)), video.end_s]
    return list(pairwise(cuts_s))


def _cuts(video: Video, borders_s: Sequence[float], clip_s: float) -> Iterator[float]:
    """The times between equal clips of about `clip_s`, each moved to the border of a segment that is near enough."""
    count = max(1, round(video.duration_s / clip_s))
    length_s = video.duration_s / count
    for number in range(1, count):
        equal_s = video.start_s + number * length_s
        near_s = min(borders_s, key=lambda border_s: abs(border_s - equal_s), default=equal_s)
        yield near_s if abs(near_s - equal_s) <= LARGEST_SHIFT * length_s else equal_s


def _in_gaps(captions: Sequence[Note], lines: Sequence[Note]) -> list[Note]:
    starts_s = np.array([line.start_s for line in lines])
    ends_s = np.array([line.end_s for line in lines])

    def spoken_s(note: Note) -> float:
        both_s = np.minimum(ends_s, note.end_s) - np.maximum(starts_s, note.start_s)
        return float(np.maximum(both_s, 0.0).sum())

    return [note for note in captions if spoken_s(note) < SPOKEN_SHARE * max(note.end_s - note.start_s, 1e-6)]


def _shared_out(words: Sequence[tuple[float, str]], starts_s: Sequence[float], between: str = " ") -> list[str]:
    """The words of each clip in one line; what comes before the first clip is the first one's."""
    texts: list[list[str]] = [[] for _ in starts_s]
    for start_s, text in words:
        texts[max(0, int(np.searchsorted(starts_s, start_s, side="right")) - 1)].append(" ".join(text.split()))
    return [between.join(filter(None, each)) for each in texts]


def best_matching_clips(
    environment: Environment,
    clips: Sequence[Clip],
    text: str,
    visited: Collection[int],
    window: int,
    anchors_from: AnchorsFrom = "all",
) -> list[Clip]:
    """The clip, not visited yet, with the frame that matches a text best, amid up to `window` consecutive ones.

    A frame matches by its picture or by a line at its time (`Environment.search`); with `anchors_from` "words" by its
    picture where no line matches. None if all were visited, or nothing is stored of the others. Where a video has no
    frames, its words are matched.
    """
    among = [each.video_id for each in environment.videos if each.has_pictures or environment.words(each.video_id)]
    matches = _matches(environment, text, among, anchors_from)
    if all(np.isneginf(each).all() for each in matches.values()):
        matches = _matches(environment, text, among, "frames")

    def match(clip: Clip) -> float:
        times_s = environment.times(clip.video_id)
        # the picture at the start of a clip may be stored at an earlier time
        low = max(0, int(np.searchsorted(times_s, clip.start_s, side="right")) - 1)
        high = max(low + 1, int(np.searchsorted(times_s, clip.end_s, side="left")))
        return float(matches[clip.video_id][low:high].max())

    left = [clip for clip in clips if clip.number not in visited and clip.video_id in matches]
    if not left:
        return []
    best = max(left, key=match)
    alongside = [clip for clip in clips if clip.video_id == best.video_id]
    first = min(alongside.index(best) - (window - 1) // 2, len(alongside) - window)
    return alongside[max(0, first) :][:window]


def _matches(
    environment: Environment, text: str, among: Sequence[str], anchors_from: AnchorsFrom
) -> dict[str, NDArray[np.float64]]:
    found = {video_id: environment.matches([text], video_id, among, anchors_from) for video_id in among}
    return {video_id: np.maximum(*both)[:, 0] for video_id, both in found.items()}


LARGEST_WINDOW = 3


@dataclass(frozen=True, slots=True)
class LongVideoAgentParameters:
    """The paper's settings (section 4.3): K is `rounds`, the evidence window is `window` clips (Table 4c)."""

    rounds: int = 5
    """Steps of the master, the last of which is the answer: K."""
    window: int = 1
    """Neighbouring clips that one grounding returns."""
    frames: int = 15
    """Frames of the located clips that a look shows."""
    clip_s: float = CLIP_S
    """The length of a clip in seconds, about; 0: the library's segments are the clips."""
    clips: int = 240
    """How many clips are read at most, of those videos that match the question best: four hours of 60 s."""
    videos: int = 4
    """So many videos are read even if they have more clips."""
    vision: bool = True
    """The master may have clips looked at; else it reads subtitles alone."""
    anchors_from: AnchorsFrom = "all"
    """Where clips and videos are found without the grounding agent: in pictures, in words, or in both."""
    chapters: bool = False
    """Prompts list the titles and times of the library's scenes or chapters."""
    form: Form = "ours"
    """"paper": the paper's rules where ours differ, that of `anchors_from` too."""

    def __post_init__(self) -> None:
        restore_paper(self, {"anchors_from": "frames"})
        check_at_least(self, rounds=1, window=1, frames=1, videos=1, clips=1, clip_s=0)
        if self.window > LARGEST_WINDOW:
            raise BadSettings(f"got window={self.window}; it is 1 to {LARGEST_WINDOW} clips")


async def longvideoagent(session: Session, parameters: LongVideoAgentParameters) -> Answer:
    """Answer by Algorithm 1. Raises `OutOfBudget` when a budget ends the run in the middle of a turn."""
    episode = begin_episode(session, parameters)
    session.last_resort = lambda: answer_now(episode) if episode.has_evidence else None
    while True:  # line 3
        session.account.begin_round()
        over = session.over()
        is_turn_k = episode.literal and over == "rounds" and not session.rules.force_choice
        if over and not is_turn_k:
            return await session.conclude(answer_now(episode), over)
        request = next_action(episode)
        exchange = await session.exchange(request)  # lines 4 to 11
        if exchange.reply is not None and exchange.reply.declines and request.declining != "allowed":
            session.account.count_declined()
            exchange = replace(exchange, reply=None, invalid=request.refusal())
        if exchange.reply is not None and not exchange.reply.acts:  # lines 20 to 23
            sufficient = exchange.reply.action == "answer"
            doubt = await session.doubt(exchange.reply, episode.basis) if sufficient else ""
            if not doubt:
                return session.accept(exchange.reply, episode.basis, sufficient=sufficient)
            exchange = replace(exchange, reply=None, invalid=doubt)
        episode = await take_step(session, episode, exchange)  # lines 12 to 19, 24 to 27
        if is_turn_k:  # line 29
            return session.answer(None, (), "budget_exhausted", "rounds")


def _searched(step: Step) -> str:
    found = joined([span(note) for note in step["notes"][:QUOTED]])
    return f"searched what is said and described{for_query(step)}" + (f", which led to {found}" if found else "")


def _assumed(request: Request[Any]) -> Mapping[str, Any] | str | None:
    """One clip after the other is located and looked at; the last turn is the answer."""
    match request:
        case ChooseAction():
            looks = request.vision and len(request.turns) // 2 % 2 == 1
            tag = "visual_query" if looks else "request_grounding"
            return f"<think>{THOUGHT}</think><{tag}>{request.question.text}</{tag}>"
        case AnswerNow():
            return f"<think>{THOUGHT}</think><answer>{'A' if request.question.options else THOUGHT}</answer>"
        case LocateClips():
            left = [clip.number for clip in request.clips if clip.number not in request.visited]
            return {**request.example(), "clips": left[:1]}
    return None


LONGVIDEOAGENT = Variant(
    "longvideoagent",
    "a master that only reads has clips located and looked at by two other models (arXiv 2512.20618)",
    longvideoagent,
    lambda longest_s: LongVideoAgentParameters(),
    roles=("policy", "grounding", "vision"),
    uses=LINE_KINDS,
    ablations={"no vision agent": {"vision": False}, "no agents": {"rounds": 1}, **PAPER_FORM},
    needs_language=True,
    plain=(
        "Reads what is said and described, and has the pictures looked at only where that helps. Good for films with "
        "speech."
    ),
    words={
        "request_grounding": _searched,
        "visual_query": lambda step: f"had the frames there searched{for_query(step)}",
        "malformed": no_step,
    },
    assumes=_assumed,
)


# The episode in which a LongVideoAgent master acts, whichever model it is: the agent's loop and training share it.
#
#     episode = begin_episode(session, LongVideoAgentParameters())
#     while len(episode.turns) < 2 * (episode.steps - 1):
#         request = next_action(episode)              # render(request) is the first message, request.turns the rest
#         exchange = await session.exchange(request)  # or any other master's; `reply` is None if it was malformed
#         if exchange.reply is not None and not exchange.reply.acts:
#             break                                   # it answered
#         episode = await take_step(session, episode, exchange)
#     request = answer_now(episode)                   # the last turn: an answer or nothing
#
# `take_step` appends two turns, the master's and the reply to it: the clip that was located with its words, what was
# seen, or what was wrong. It asks the models of the roles "grounding" and "vision" through the session, and raises
# `OutOfBudget` and `ModelError` as `Session.ask` does; the episode before it stays as it was.

TURN = "This is turn {turn} of {turns}."
LAST_TURN = "This is your last turn: answer now, as <answer>...</answer>."


@dataclass(frozen=True, slots=True)
class Episode:
    """The state of a master and a question; `current` are the clips located last, `visited` all so far."""

    question: Question
    videos: tuple[Video, ...]
    clips: tuple[Clip, ...]
    parameters: LongVideoAgentParameters
    steps: int
    vision: bool
    declining: Declining
    turns: tuple[Turn, ...] = ()
    current: tuple[Clip, ...] = ()
    visited: tuple[int, ...] = ()
    notes: tuple[Note, ...] = ()
    chapters: tuple[Note, ...] = ()

    @property
    def literal(self) -> bool:
        return self.parameters.form == "paper"

    @property
    def has_evidence(self) -> bool:
        return bool(self.notes) or any(clip.has_words for clip in self.clips)

    @property
    def basis(self) -> tuple[Note, ...]:
        """Notes about the current clips: an answer that nothing forced rests on them."""
        starts = {(clip.video_id, clip.start_s) for clip in self.current}
        return tuple(note for note in self.notes if (note.video_id, note.start_s) in starts)


def begin_episode(session: Session, parameters: LongVideoAgentParameters) -> Episode:
    """An episode about the session's question, in the videos that match it best; the session is narrowed to these.

    All videos are read if they have no more than `clips` clips of about `clip_s` seconds together, else those that
    match best: `videos` of them, and more while there are no more than `clips`. There is no vision agent where no video
    has pictures.
    """
    everything = session.environment.videos
    length_s = parameters.clip_s or CLIP_S
    clips_each = sum(max(1, round(video.duration_s / length_s)) for video in everything) / len(everything)
    count = max(parameters.videos, int(parameters.clips / clips_each))
    best = [session.question.text], count, session.known_videos, parameters.anchors_from
    session.environment = environment = session.environment.nearest(*best)
    literal = parameters.form == "paper"
    for video in environment.videos if not literal else ():
        session.account.count_screen_text(environment.quoted(video.video_id, video.start_s, video.end_s))
    if parameters.chapters:
        show_chapters(session, summaries=False)
    return Episode(
        session.question,
        environment.videos,
        tuple(tagged_clips(environment, parameters.clip_s, subtitles_alone=literal)),
        parameters,
        steps=session.account.budget.rounds or parameters.rounds,
        vision=parameters.vision and any(video.has_pictures for video in environment.videos),
        declining=session.rules.while_searching,
        chapters=session.chapters,
    )


def next_action(episode: Episode) -> ChooseAction:
    return ChooseAction(**_known(episode), turns=episode.turns, declining=episode.declining)


def answer_now(episode: Episode) -> AnswerNow:
    """The request for the master's last turn; its answer does not say on which of the visited clips it rests."""
    turns = episode.turns
    if turns:
        said = turns[-1].text.rpartition("\n\n")[0] or turns[-1].text  # without the number of the turn
        turns = (*turns[:-1], Turn("user", f"{said}\n\n{LAST_TURN}"))
    return AnswerNow(**_known(episode), notes=episode.notes, turns=turns)


def _known(episode: Episode) -> dict[str, Any]:
    return {
        "question": episode.question,
        "videos": episode.videos,
        "clips": tuple(clip for clip in episode.clips if clip.has_words),
        "steps": episode.steps,
        "vision": episode.vision,
        "chapters": episode.chapters,
        "counted": not episode.literal,
    }


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The reply to an action of the master; `located` are the clips that are current from now on, if any."""

    reply: str
    notes: tuple[Note, ...] = ()
    located: tuple[Clip, ...] = ()
    problem: str = ""


async def take_step(session: Session, episode: Episode, exchange: Exchange[Action]) -> Episode:
    """Carry out the master's action, and reply to it (Algorithm 1, lines 12 to 19, 24 to 26)."""
    action = exchange.reply
    if action is None:
        turn, invalid = exchange.raw.strip() or "(nothing)", exchange.invalid or ""
        said = f"That was not a correct action: {invalid}. Think again, and take one action."  # line 25
        outcome = _Outcome(said, problem=invalid)
    else:
        do = _look if action.action == "visual_query" else _ground
        turn, outcome = until_action(exchange.raw), await do(session, episode, action.query)
    name, arguments = (action.action, {"query": action.query}) if action else ("malformed", {})
    thoughts = thought(exchange.raw)
    session.emit(Acted(session.account.rounds, name, arguments, thoughts, outcome.notes, outcome.problem))
    due = "" if episode.literal else f"\n\n{TURN.format(turn=len(episode.turns) // 2 + 2, turns=episode.steps)}"
    return replace(
        episode,
        turns=(*episode.turns, Turn("assistant", turn), Turn("user", f"{outcome.reply}{due}")),
        current=outcome.located or episode.current,
        visited=tuple(dict.fromkeys((*episode.visited, *(clip.number for clip in outcome.located)))),
        notes=(*episode.notes, *outcome.notes),
    )


async def _look(session: Session, episode: Episode, query: str) -> _Outcome:
    """Have frames of the current clips read for the master's query: VISIONAGENT(q_vis, V), line 15."""
    if not episode.current:
        return _failed("No clip has been located yet, so nothing can be looked at; use <request_grounding> first.")
    first, last = episode.current[0], episode.current[-1]
    if not session.environment.pictured(first.video_id):
        return _failed("There are no frames of this clip, so nothing can be looked at; only its words are known.")
    left = session.account.frames_left
    most = episode.parameters.frames
    count = most if left is None else min(most, left)
    frames = session.environment.frames_between(first.video_id, first.start_s, last.end_s, count)
    reply = await session.ask(ReadFrames(query=query, clips=episode.current, frames=frames))
    if reply is None:
        return _failed("The assistant who looks gave no reply that can be used.")
    note = Note(first.video_id, first.start_s, last.end_s, "vision", reply.observation.strip())
    return _Outcome(f"Looked at {_tags(episode, episode.current)}: {note.text}", (note,))


async def _ground(session: Session, episode: Episode, wish: str) -> _Outcome:
    """Locate clips by the words of all, else by their pictures: GROUNDINGAGENT(q, S), line 18.

    By the paper it knows neither the master's `wish` nor what was located before.
    """
    located: Sequence[Clip] = ()
    wish, visited = ("", ()) if episode.literal else (wish, episode.visited)
    if any(clip.has_words for clip in episode.clips):
        request = LocateClips(
            question=episode.question,
            videos=episode.videos,
            clips=episode.clips,
            window=episode.parameters.window,
            wish=wish,
            visited=visited,
        )
        reply = await session.ask(request)
        if reply is None:
            return _failed("The assistant who locates clips gave no reply that can be used.")
        located = [episode.clips[number - 1] for number in reply.clips]
    if not located:
        text = wish or episode.question.text
        limits = visited, episode.parameters.window, episode.parameters.anchors_from
        located = best_matching_clips(session.environment, episode.clips, text, *limits)
    if not located:
        return _failed("Every clip has been located before; there is no other one.")
    notes = tuple(Note(clip.video_id, clip.start_s, clip.end_s, "grounding", clip.words) for clip in located)
    text = "\n".join(f"{_tags(episode, [clip])}: {clip.words}" for clip in located)
    return _Outcome(f"Located:\n{text}", notes, tuple(located))


def _failed(problem: str) -> _Outcome:
    return _Outcome(problem, problem=problem)


def _tags(episode: Episode, clips: Sequence[Clip]) -> str:
    tags = " ".join(f"<clip_{clip.number}>" for clip in clips)
    video = f" of video {clips[0].video_id[:VIDEO_ID_LENGTH]}" if len(episode.videos) > 1 else ""
    return f"{tags} ({clips[0].start_s:.1f} s to {clips[-1].end_s:.1f} s{video})"


# Parse the turns of a LongVideoAgent master: one action as a tag of Algorithm 1, after its thoughts.
#
#     <think>...</think><visual_query>what to look for</visual_query>
#     <think>...</think><request_grounding>what to find</request_grounding>
#     <think>...</think><answer>B</answer>
#
# Read besides: `<watch>` (section 3.1) and `<search>` (the published code) for a visual query, `<reasoning>` (the
# published code) for thinking, `<request_grounding>` without an end (Tables 1 and 3), and a JSON object that says the
# same, `{"action": "visual_query", "query": "..."}`. A turn ends with its action's closing tag, as Algorithm 1 ends it:
# what a model that cannot be stopped writes after it is not read. No action, or another one before that, is malformed,
# and so is thinking within an action. Where a chat template has opened the thinking, a turn begins inside it, without
# `<think>`.

ACTIONS = {
    "visual_query": "visual_query",
    "watch": "visual_query",
    "search": "visual_query",
    "request_grounding": "request_grounding",
    "answer": "answer",
    "insufficient_evidence": "insufficient_evidence",
}
ENDS = ("</visual_query>", "</request_grounding>", "</answer>")
AROUND = " \t\r\n.,;:!?\"'"
NOT_ONE = (
    "it does not hold exactly one action; write one <visual_query>...</visual_query>, "
    "<request_grounding>...</request_grounding> or <answer>...</answer>"
)

_OPENING = re.compile(r"<(visual_query|watch|search|request_grounding|answer)\s*/?>", re.IGNORECASE)
_ENDING = re.compile(r"</(visual_query|watch|search|request_grounding|answer)>", re.IGNORECASE)
_THINKING = re.compile(r"<(?:think|reasoning)>", re.IGNORECASE)
_ALOUD = r"(?:(?!<(?:think|reasoning)>).)*?</(?:think|reasoning)>"
_OPEN = r"<(?:think|reasoning)>"
_THOUGHT = re.compile(rf"\s*(?:{_OPEN})?{_ALOUD}(?:\s*{_OPEN}{_ALOUD})*", re.IGNORECASE | re.DOTALL)
_BARE_INDEX = re.compile(r"^a(\d)$", re.IGNORECASE)
_INDEX = re.compile(r"^a\d+\s*[:.)]\s*(?=\S)", re.IGNORECASE)


def thought(text: str) -> str:
    thoughts = _aloud(text)
    opening = _OPENING.search(text, len(thoughts))
    thoughts += text[len(thoughts) : opening.start() if opening else len(text)]
    return re.sub(r"</?(?:think|reasoning)>", "", thoughts, flags=re.IGNORECASE).strip()


def until_action(text: str) -> str:
    """A turn up to the end of its action: there Algorithm 1 stops generating (line 8), which not every model can."""
    end = _ENDING.search(text, len(_aloud(text)))
    return text[: end.end()] if end else text


def action_values(value: object) -> object:
    """An action as JSON values, `{"action", "query", "option", "answer", "evidence"}`, from a turn's text or from JSON.

    Raises `ValueError` saying in one line what is wrong; what is no object comes back as it is.
    """
    if isinstance(value, str):
        text = value[len(_aloud(value)) :].strip()
        value = _object(text) or _tagged(until_action(text))
    value = flat_call(value)
    if not isinstance(value, Mapping):
        return value
    values = {str(name).casefold(): each for name, each in value.items() if each is not None}
    if "action" not in values and "tool" in values:
        values["action"] = values["tool"]
    if "action" not in values:
        named = [name for name in values if name in ACTIONS]
        values = {"query": values[named[0]], **values, "action": named[0]} if len(named) == 1 else values
    if (name := str(values.get("action", "")).casefold()) not in ACTIONS:
        raise ValueError(NOT_ONE)
    values["action"] = ACTIONS[name]
    if values["action"] == "answer":
        values |= _answer(str(values.get("answer", values.get("option", ""))), values.get("option"))
    return {"query": "", "option": None, "answer": None, **values, "evidence": []}


def _aloud(text: str) -> str:
    found = _THOUGHT.match(text)
    return found[0] if found else ""


def _object(text: str) -> Mapping[str, object] | None:
    try:
        value = parse_json(text.removeprefix("```json").strip("`").strip())
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _tagged(text: str) -> dict[str, object]:
    if _THINKING.match(text):
        raise ValueError("the thinking has no end; close it with </think> before the action")
    if _THINKING.search(text):
        raise ValueError("it thinks within an action; think before the action, and take one")
    openings = list(_OPENING.finditer(text))
    if len(openings) != 1:
        raise ValueError(NOT_ONE)
    name = openings[0][1].casefold()
    if re.match(r"\s*(?:\.\.\.|…)\s*</", text[openings[0].end() :]):
        raise ValueError("it repeats the form; write your own words in the place of the dots")
    inside, end, _ = text[openings[0].end() :].partition(f"</{openings[0][1]}>")
    if name == "request_grounding":
        return {"action": name, "query": inside if end else ""}
    if not end:
        raise ValueError(f"<{name}> has no end; close it with </{name}>")
    return {"action": name, "answer" if name == "answer" else "query": inside}


def _answer(text: str, option: object) -> dict[str, object]:
    """The answer without spaces and punctuation around it (line 21), and the option that it names.

    The options of TVQA are a0 to a4. In "a3: a bus stop" the words after the index name the option; "a3" alone is
    the fourth, D.
    """
    text = text.strip(AROUND)
    if re.sub(r"[\s_-]+", " ", text.casefold()) == "insufficient evidence":
        return {"action": "insufficient_evidence", "query": ""}
    if bare := _BARE_INDEX.match(text):
        letter = string.ascii_uppercase[int(bare[1])]
        if not says_nothing(option) and str(option).strip(AROUND).upper() not in (letter, text.upper()):
            raise ValueError(f"option {option!r} and answer {text!r} do not say the same")
        return {"answer": text, "option": letter, "query": ""}
    return {"answer": text, "option": option or _INDEX.sub("", text), "query": ""}


@dataclass(frozen=True, slots=True)
class Clip:
    """The range [start_s, end_s) of a video under a tag, <clip_N>, and its words.

    `number` counts from 1 through all videos of a question; `source` of `text` is "speech" or "captions".
    """

    number: int
    video_id: str
    start_s: float
    end_s: float
    text: str = ""
    source: str = ""
    seen: str = ""
    """Captions of the times in which nobody speaks."""
    written: str = ""
    """Text that stands on screen."""

    @property
    def has_words(self) -> bool:
        return bool(self.text or self.written)

    @property
    def words(self) -> str:
        """Its words with their source: said, on screen or seen."""
        said = f'said: "{self.text}"' if self.text and self.source == "speech" else ""
        seen = self.seen if said else self.text
        kinds = (said, f'on screen: "{self.written}"' if self.written else "", f"seen: {seen}" if seen else "")
        return " ".join(filter(None, kinds)) or "no words are known of it"


class _Text(Reply):
    @classmethod
    def from_text(cls, text: str) -> Self:
        try:
            return cls.model_validate(text)
        except ValidationError as error:
            raise InvalidReply(error.errors()[0]["msg"].removeprefix("Value error, ")) from error


class _Turn(Reasoned):
    action: Literal["visual_query", "request_grounding", "answer", "insufficient_evidence"]
    query: str


class Action(Answered, _Turn, _Text):
    """One turn of the master; `query` is what to look for, or what to find."""

    _accept = read_as(action_values)

    @property
    def acts(self) -> bool:
        return self.action in ("visual_query", "request_grounding")


class LastAction(Conclusion, _Text):
    """The master's last turn, which can only be an answer."""

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        values = action_values(value)
        if isinstance(values, Mapping) and values["action"] in ("visual_query", "request_grounding"):
            raise ValueError("the turns are used up; answer now, as <answer>...</answer>")
        return values


@dataclass(frozen=True, kw_only=True)
class ChooseAction(OfRun[Action]):
    """The next action of the master, who reads and never sees: the words of `clips`, then `turns`."""

    Reply = Action
    template: ClassVar[str] = "choose_action"
    temperature: ClassVar[float] = 0.6
    form: ClassVar[Literal["json", "text", "tools"]] = "text"
    stop: ClassVar[tuple[str, ...]] = ENDS
    clips: tuple[Clip, ...]
    steps: int
    """Turns in all: K."""
    vision: bool = True
    """True if there is a vision agent (Table 4a)."""
    turns: tuple[Turn, ...] = ()
    declining: Declining = "allowed"
    counted: bool = True
    """The number of each turn is said."""

    @property
    def instead(self) -> str:
        return "have another clip located, have the present one looked at, or answer"

    def pattern(self) -> str:
        looks = ("visual_query", "request_grounding") if self.vision else ("request_grounding",)
        return turn_pattern(self.question, looks)

    def check(self, reply: Action) -> None:
        if reply.action == "answer":
            check_answer(self.question, reply)
        elif reply.action == "visual_query" and not self.vision:
            raise InvalidReply("nobody can look here; use <request_grounding> or <answer>")
        elif reply.action == "visual_query" and not reply.query.strip():
            raise InvalidReply("the visual query is empty; say in it what to look for")


@dataclass(frozen=True, kw_only=True)
class AnswerNow(AnswerNotes):
    """The master's last turn: the same conversation, ended by an answer, which rests on `notes`."""

    Reply = LastAction
    template: ClassVar[str] = "choose_action"
    temperature: ClassVar[float] = 0.6
    form: ClassVar[Literal["json", "text", "tools"]] = "text"
    stop: ClassVar[tuple[str, ...]] = ENDS
    clips: tuple[Clip, ...]
    steps: int
    vision: bool = True
    turns: tuple[Turn, ...] = ()
    counted: bool = True

    def pattern(self) -> str:
        return turn_pattern(self.question, ())


MASTER_REQUESTS = (ChooseAction.__name__, AnswerNow.__name__)


def turn_pattern(question: Question, looks: Sequence[str]) -> str:
    """A regular expression of a turn: its thoughts, then one of the actions `looks`, or an answer."""
    letters = string.ascii_uppercase[: len(question.options)]
    answer = f"[{letters}]" if letters else "[^<>]{1,160}"
    actions = [*(f"<{name}>[^<>]{{1,160}}</{name}>" for name in looks), f"<answer>{answer}</answer>"]
    return rf"<think>[^<>]{{1,240}}</think>\n?({'|'.join(actions)})"


class Located(Reasoned):
    """The clips that a question is about, in order; none if the words do not tell."""

    clips: Numbers = Field(description="numbers of the chosen clips")
    _accept = read_alone("clips")


@dataclass(frozen=True, kw_only=True)
class LocateClips(Request[Located]):
    """Locate the clips that the question is about: at most `window` consecutive ones of `clips`, by their words.

    `wish` is what the master asked for; `visited` are the numbers of clips located before.
    """

    Reply = Located
    template: ClassVar[str] = "locate_clips"
    role: ClassVar[str] = "grounding"
    temperature: ClassVar[float] = 0.6
    question: Question
    videos: tuple[Video, ...]
    clips: tuple[Clip, ...]
    window: int
    wish: str = ""
    visited: tuple[int, ...] = ()

    def bounds(self) -> Bounds:
        return {"clips": {"maxItems": self.window}}

    def check(self, reply: Located) -> None:
        known = {clip.number: clip.video_id for clip in self.clips}
        for number in reply.clips:
            if number not in known:
                raise InvalidReply(f"there is no <clip_{number}>; the clips are <clip_1> to <clip_{len(known)}>")
        if len(reply.clips) > self.window:
            raise InvalidReply(f"{len(reply.clips)} clips are too many; give at most {self.window}")
        following = all(number == reply.clips[0] + at for at, number in enumerate(reply.clips))
        if not following or len({known[number] for number in reply.clips}) > 1:
            raise InvalidReply(f"{reply.clips} do not follow each other in one video; give consecutive clips")


class Observation(Reply):
    """The findings of a look, as far as the frames show them."""

    model_config = described("What was looked for, as far as the frames show it.")

    observation: str = Field(description="the sentences")
    _accept = read_alone("observation", str)


@dataclass(frozen=True, kw_only=True)
class ReadFrames(Request[Observation]):
    """Describe what the master looks for in `frames` of consecutive `clips`."""

    Reply = Observation
    template: ClassVar[str] = "read_frames"
    role: ClassVar[str] = "vision"
    temperature: ClassVar[float] = 0.0
    query: str
    clips: tuple[Clip, ...]
    frames: tuple[ShownFrame, ...]

    def check(self, reply: Observation) -> None:
        if not reply.observation.strip():
            raise InvalidReply("the observation is empty; say what the frames show of what is asked")
        check_not_refused(reply.observation)


@rule.register(LocateClips)
def _locate_by_rule(request: LocateClips, environment: Environment) -> dict[str, Any]:
    """Find the unvisited clip whose words hold most of the wish or question; none if they hold too little."""
    queries = [request.wish] if request.wish else list(cloze_statements(request.question).queries)
    left = [clip for clip in request.clips if clip.number not in request.visited]
    words = {clip.number: f"{clip.text} {clip.seen} {clip.written}" for clip in left}
    shares = [(max((word_share(text, words[at]) for text in queries), default=0.0), -at) for at in words]
    best, number = max(shares, default=(0.0, 0))
    return {"clips": [-number] if best >= MIN_BEARING else []}


@rule.register(ReadFrames)
def _read_by_rule(request: ReadFrames, environment: Environment) -> dict[str, Any]:
    return {"observation": describe(environment, request.frames).text}
