"""The episode in which a LongVideoAgent master acts, whichever model it is: the agent's loop and training share it.

    episode = begin_episode(session, LongVideoAgentParameters())
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
from typing import Any

from kinodex.agent.answer_rules import Declining
from kinodex.agent.attempts import ATTEMPTS
from kinodex.agent.protocol.exchange import Exchange
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.request import Turn
from kinodex.agent.protocol.videos import VIDEO_ID_LENGTH, Video
from kinodex.agent.session import Session
from kinodex.agent.traces.events import Acted
from kinodex.agent.variants.longvideoagent.clips import CLIP_S, Clip, best_matching_clips, tagged_clips
from kinodex.agent.variants.longvideoagent.parameters import LongVideoAgentParameters
from kinodex.agent.variants.longvideoagent.requests import Action, AnswerNow, ChooseAction, LocateClips, ReadFrames
from kinodex.agent.variants.longvideoagent.turns import thought, until_action

LAST_TURN = "This is your last turn: answer now, between <answer> and </answer>."


@dataclass(frozen=True, slots=True)
class Episode:
    """The state of a master and a question; `current` are the clips located last, of `located` requests so far."""

    question: Question
    videos: tuple[Video, ...]
    clips: tuple[Clip, ...]
    parameters: LongVideoAgentParameters
    steps: int
    vision: bool
    declining: Declining
    turns: tuple[Turn, ...] = ()
    current: tuple[Clip, ...] = ()
    located: int = 0
    notes: tuple[Note, ...] = ()

    @property
    def has_evidence(self) -> bool:
        return bool(self.notes) or any(clip.text for clip in self.clips)

    @property
    def basis(self) -> tuple[Note, ...]:
        """Notes about the current clips: an answer that nothing forced rests on them."""
        if not self.current:
            return self.notes
        starts = {(clip.video_id, clip.start_s) for clip in self.current}
        return tuple(note for note in self.notes if (note.video_id, note.start_s) in starts)


def begin_episode(session: Session, parameters: LongVideoAgentParameters) -> Episode:
    """Return an episode about the session's question, in the videos that match it best.

    The session is narrowed to these videos.

    All videos are read if they have no more than `clips` clips of about `clip_s` seconds together, else those that
    match best: `videos` of them, and more while there are no more than `clips`. There is no vision agent where no video
    has pictures.
    """
    everything = session.environment.videos
    length_s = parameters.clip_s or CLIP_S
    clips_each = sum(max(1, round(video.duration_s / length_s)) for video in everything) / len(everything)
    count = max(parameters.videos, int(parameters.clips / clips_each))
    environment = session.environment.nearest([session.question.text], count, session.known_videos)
    session.environment = environment
    return Episode(
        session.question,
        environment.videos,
        tuple(tagged_clips(environment, parameters.clip_s)),
        parameters,
        steps=session.account.budget.rounds or parameters.rounds,
        vision=parameters.vision and any(video.has_pictures for video in environment.videos),
        declining=session.rules.while_searching,
    )


def next_action(episode: Episode) -> ChooseAction:
    return ChooseAction(**_known(episode), turns=episode.turns, declining=episode.declining)


def answer_now(episode: Episode) -> AnswerNow:
    """Return the request for the master's last turn; its answer does not say on which of the visited clips it rests."""
    turns = episode.turns
    if turns:
        turns = (*turns[:-1], Turn("user", f"{turns[-1].text}\n\n{LAST_TURN}"))
    return AnswerNow(**_known(episode), notes=episode.notes, turns=turns)


def _known(episode: Episode) -> dict[str, Any]:
    return {
        "question": episode.question,
        "videos": episode.videos,
        "clips": tuple(clip for clip in episode.clips if clip.text),
        "steps": episode.steps,
        "vision": episode.vision,
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
        looks = action.action == "visual_query"
        turn = until_action(exchange.raw)
        outcome = await (_look(session, episode, action.query) if looks else _ground(session, episode))
    name, arguments = (action.action, {"query": action.query}) if action else ("malformed", {})
    thoughts = thought(exchange.raw)
    session.emit(Acted(session.account.rounds, name, arguments, thoughts, outcome.notes, outcome.problem))
    return replace(
        episode,
        turns=(*episode.turns, Turn("assistant", turn), Turn("user", outcome.reply)),
        current=outcome.located or episode.current,
        located=episode.located + (action is not None and action.action == "request_grounding"),
        notes=(*episode.notes, *outcome.notes),
    )


async def _look(session: Session, episode: Episode, query: str) -> _Outcome:
    """Have frames read for the master's query, of the current clips, else of all of V (line 15)."""
    environment = session.environment
    if not episode.current:
        environment = environment.nearest([episode.question.text], 1)
    parts = episode.current or environment.videos
    video_id, start_s, end_s = parts[0].video_id, parts[0].start_s, parts[-1].end_s
    if not environment.pictured(video_id):
        return _failed("There are no frames to look at; only words are known.")
    left = session.account.frames_left
    most = episode.parameters.frames
    frames = environment.frames_between(video_id, start_s, end_s, most if left is None else min(most, left))
    reply = await session.ask(ReadFrames(query=query, start_s=start_s, end_s=end_s, frames=frames))
    if reply is None:
        return _failed("The assistant who looks gave no reply that can be used.")
    note = Note(video_id, start_s, end_s, "vision", reply.observation.strip())
    where = _tags(episode, episode.current) if episode.current else "the whole video"
    return _Outcome(f"Looked at {where}: {note.text}", (note,))


async def _ground(session: Session, episode: Episode) -> _Outcome:
    """Locate clips by the question and the subtitles: GROUNDINGAGENT(q, S), line 18; without subtitles by pictures."""
    window = episode.parameters.window
    if any(clip.text for clip in episode.clips):
        request = LocateClips(
            question=episode.question,
            videos=episode.videos,
            clips=episode.clips,
            window=window,
            attempt=ATTEMPTS * episode.located,  # no cache answers it with the reply to the one before
        )
        reply = await session.ask(request)
        if reply is None:
            return _failed("The assistant who locates clips gave no reply that can be used.")
        located = [episode.clips[number - 1] for number in reply.clips]
    else:
        located = best_matching_clips(session.environment, episode.clips, episode.question.text, window)
    if not located:
        return _failed("No clip can be located: nothing is known of any.")
    notes = tuple(Note(clip.video_id, clip.start_s, clip.end_s, "grounding", clip.words) for clip in located)
    text = "\n".join(f"{_tags(episode, [clip])}: {clip.words}" for clip in located)
    return _Outcome(f"Located:\n{text}", notes, tuple(located))


def _failed(problem: str) -> _Outcome:
    return _Outcome(problem, problem=problem)


def _tags(episode: Episode, clips: Sequence[Clip]) -> str:
    tags = " ".join(f"<clip_{clip.number}>" for clip in clips)
    video = f" of video {clips[0].video_id[:VIDEO_ID_LENGTH]}" if len(episode.videos) > 1 else ""
    return f"{tags} ({clips[0].start_s:.1f} s to {clips[-1].end_s:.1f} s{video})"
