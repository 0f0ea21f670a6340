"""The episode in which a LongVideoAgent master acts, whichever model it is: the agent's loop and training share it.

    episode = begin_episode(session, steps=5)
    while len(episode.turns) < 2 * (episode.steps - 1):
        request = next_action(episode)              # render(request) is the first message, request.turns the rest
        exchange = await session.exchange(request)  # or any other master's; `reply` is None if it was malformed
        if exchange.reply is not None and not exchange.reply.acts:
            break                                   # it answered
        episode = await take_step(session, episode, exchange)
    request = answer_now(episode)                   # the last turn: an answer or nothing

`take_step` appends two turns, the master's and the reply to it: the clip that was located with its words, what was
seen, or what was wrong. It asks the models of the roles "grounding" and "vision" through the session, and raises
`OutOfBudget` and `ModelError` as `Session.ask` does; the episode before it stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent.chapters import show_chapters
from agent.core.answer_rules import Declining
from agent.core.protocol import Exchange, Turn
from agent.core.question import VIDEO_ID_LENGTH, Note, Question, Video
from agent.environment import Environment
from agent.retrieval.line_matches import AnchorsFrom
from agent.session import Session
from agent.trace.events import Acted
from agent.variants.longvideoagent.action_parser import thought, until_action
from agent.variants.longvideoagent.clips import CLIP_S, best_matching_clips, tagged_clips
from agent.variants.longvideoagent.requests import Action, AnswerNow, ChooseAction, Clip, LocateClips, ReadFrames

LAST_TURN = "This is your last turn: answer now, as <answer>YOUR ANSWER</answer>."


@dataclass(frozen=True, slots=True)
class Episode:
    """The state of a master and a question; `current` are the clips located last, `visited` all so far."""

    question: Question
    videos: tuple[Video, ...]
    clips: tuple[Clip, ...]
    steps: int
    window: int
    frames: int
    vision: bool
    declining: Declining = "later"
    anchors_from: AnchorsFrom = "both"
    turns: tuple[Turn, ...] = ()
    current: tuple[Clip, ...] = ()
    visited: tuple[int, ...] = ()
    notes: tuple[Note, ...] = ()
    chapters: tuple[Note, ...] = ()

    @property
    def has_evidence(self) -> bool:
        """True if there is anything to answer from."""
        return bool(self.notes) or any(clip.has_words for clip in self.clips)

    @property
    def basis(self) -> tuple[Note, ...]:
        """Notes about the current clips: an answer that nothing forced rests on them."""
        starts = {(clip.video_id, clip.start_s) for clip in self.current}
        return tuple(note for note in self.notes if (note.video_id, note.start_s) in starts)


def begin_episode(
    session: Session,
    *,
    steps: int,
    window: int = 1,
    frames: int = 15,
    videos: int = 4,
    clips: int = 240,
    clip_s: float = CLIP_S,
    vision: bool = True,
    anchors_from: AnchorsFrom = "both",
    chapters: bool = False,
) -> Episode:
    """An episode of at most `steps` turns about the session's question, in the videos that match it best.

    All videos are read if they have no more than `clips` clips of about `clip_s` seconds together, else those that
    match best: `videos` of them, and more while there are no more than `clips`. At most `window` consecutive clips are
    located at a time, and `frames` of their frames looked at; without `vision` there is no vision agent, nor where no
    video has pictures. Videos, and clips of which the grounding agent finds none, are found by `anchors_from`. With
    `chapters` the master reads the titles of the library's scenes or chapters. The session is narrowed to these videos.
    """
    session.environment = environment = _narrowed(session, videos, clips, clip_s, anchors_from)
    vision = vision and any(video.has_pictures for video in environment.videos)
    tagged = tuple(tagged_clips(environment, clip_s))
    for video in environment.videos:
        session.account.count_screen_text(environment.quoted(video.video_id, video.start_s, video.end_s))
    if chapters:
        show_chapters(session, summaries=False)
    declining = session.rules.while_searching
    limits = steps, window, frames, vision, declining, anchors_from
    return Episode(session.question, environment.videos, tagged, *limits, chapters=session.chapters)


def _narrowed(session: Session, videos: int, clips: int, clip_s: float, anchors_from: AnchorsFrom) -> Environment:
    """Limit to the videos that match the question best, and those of prior evidence."""
    environment = session.environment
    count = _videos_read(environment.videos, videos, clips, clip_s)
    return environment.nearest([session.question.text], count, session.known_videos, anchors_from)


def _videos_read(among: Sequence[Video], videos: int, clips: int, clip_s: float) -> int:
    """The number of videos that are read: an episode may be one video, or one for each of its clips."""
    length_s = clip_s or CLIP_S
    clips_each = sum(max(1, round(video.duration_s / length_s)) for video in among) / len(among)
    return max(videos, int(clips / clips_each))


def next_action(episode: Episode) -> ChooseAction:
    """The request for the master's next turn."""
    return ChooseAction(
        question=episode.question,
        videos=episode.videos,
        clips=tuple(clip for clip in episode.clips if clip.has_words),
        steps=episode.steps,
        vision=episode.vision,
        turns=episode.turns,
        declining=episode.declining,
        chapters=episode.chapters,
    )


def answer_now(episode: Episode) -> AnswerNow:
    """The request for the master's last turn; its answer does not say on which of the visited clips it rests."""
    turns = episode.turns
    if turns:
        turns = (*turns[:-1], Turn("user", f"{turns[-1].text}\n\n{LAST_TURN}"))
    return AnswerNow(
        question=episode.question,
        videos=episode.videos,
        notes=episode.notes,
        clips=tuple(clip for clip in episode.clips if clip.has_words),
        steps=episode.steps,
        vision=episode.vision,
        turns=turns,
        chapters=episode.chapters,
    )


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
        turn, outcome = exchange.raw.strip() or "(nothing)", _malformed(exchange.invalid or "")
    else:
        do = _look if action.action == "visual_query" else _ground
        turn, outcome = until_action(exchange.raw), await do(session, episode, action.query)
    name, arguments = (action.action, {"query": action.query}) if action else ("malformed", {})
    thoughts = thought(exchange.raw)
    session.emit(Acted(session.account.rounds, name, arguments, thoughts, outcome.notes, outcome.problem))
    return replace(
        episode,
        turns=(*episode.turns, Turn("assistant", turn), Turn("user", outcome.reply)),
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
    count = episode.frames if left is None else min(episode.frames, left)
    frames = session.environment.frames_between(first.video_id, first.start_s, last.end_s, count)
    reply = await session.ask(ReadFrames(query=query, clips=episode.current, frames=frames))
    if reply is None:
        return _failed("The assistant who looks gave no reply that can be used.")
    note = Note(first.video_id, first.start_s, last.end_s, "vision", reply.observation.strip())
    return _Outcome(f"Looked at {_tags(episode, episode.current)}: {note.text}", (note,))


async def _ground(session: Session, episode: Episode, wish: str) -> _Outcome:
    """Locate clips by the words of all, else by their pictures: GROUNDINGAGENT(q, S), line 18."""
    located: Sequence[Clip] = ()
    if any(clip.has_words for clip in episode.clips):
        request = LocateClips(
            question=episode.question,
            videos=episode.videos,
            clips=episode.clips,
            window=episode.window,
            wish=wish,
            visited=episode.visited,
        )
        reply = await session.ask(request)
        if reply is None:
            return _failed("The assistant who locates clips gave no reply that can be used.")
        located = [episode.clips[number - 1] for number in reply.clips]
    if not located:
        text = wish or episode.question.text
        limits = episode.visited, episode.window, episode.anchors_from
        located = best_matching_clips(session.environment, episode.clips, text, *limits)
    if not located:
        return _failed("Every clip has been located before; there is no other one.")
    notes = tuple(Note(clip.video_id, clip.start_s, clip.end_s, "grounding", clip.words) for clip in located)
    text = "\n".join(f"{_tags(episode, [clip])}: {clip.words}" for clip in located)
    return _Outcome(f"Located:\n{text}", notes, tuple(located))


def _malformed(invalid: str) -> _Outcome:
    """The reply to a malformed action, with its fault (line 25)."""
    return _Outcome(f"That was not a correct action: {invalid}. Think again, and take one action.", problem=invalid)


def _failed(problem: str) -> _Outcome:
    return _Outcome(problem, problem=problem)


def _tags(episode: Episode, clips: Sequence[Clip]) -> str:
    """The tags of consecutive clips with their times."""
    tags = " ".join(f"<clip_{clip.number}>" for clip in clips)
    video = f" of video {clips[0].video_id[:VIDEO_ID_LENGTH]}" if len(episode.videos) > 1 else ""
    return f"{tags} ({clips[0].start_s:.1f} s to {clips[-1].end_s:.1f} s{video})"
