"""LongVideoAgent (arXiv 2512.20618): Algorithm 1, section 3.1, Tables 1, 3 and 5.

A master that only reads takes one action a turn, K turns at most: it has a clip located, has frames of that clip
looked at, or answers. `episode` carries out its actions, `action_parser` reads them, and `rewards` train it. Three
models: the roles "policy" (the master), "grounding" and "vision".

What the paper leaves open, and what was decided:

- Its clips are TVQA's, of 60 to 90 s; here videos are cut into clips of about 60 s, where a segment of the library
  ends if one does near by, and numbered through all videos.
- Where nobody speaks, captions are the subtitles, for the master and for the grounding agent. Where words give no
  hint, or there are none, the clip whose frames match what is wanted best is located.
- What stands inside <request_grounding> (Table 5) is passed on, and which clips were located before, since the same
  question over the same subtitles would be answered with the same clip again.
- A visual query before any clip was located is not done; the master reads why. It counts as a turn.
- The turn K can only be an answer: the master reads so and has, as everywhere, a second attempt. Then it is over.
- Frames a look: 15, spread over the located clips (the published evaluation's number). Temperature 0.6 for master
  and grounding agent (as published), 0 for the vision agent. Subtitles of a clip do not go to the vision agent.
- "insufficient_evidence" is an answer, so that an open question need not be guessed; before the last turn it costs the
  turn, and the master is asked to go on.
- The master cites nothing. It goes on to another clip where the last one did not settle the question, so the evidence
  of its answer is what it has read of the clips located last; of an answer that it had to give, of all of them.
- An episode is read whole, also where each of its clips is a video of its own. Of more than `clips` clips, the videos
  are read whose lines and frames match the question best.
- A prompt that is too long for a model is shortened by the rule of `agent.models.context_fit`.

Where the published code (commit 3a80ba8) departs from the paper, the paper is followed: there the grounding agent runs
once before the master begins, the master reads the subtitles of that clip alone, and what the master wrote is not kept
in its history; tags are <reasoning> and <search>; of several actions in one turn the first kind in a fixed order
counts. Nor is anything taken over of its leaks: for TVQA the grounding agent reads the subtitles of the clip that the
label names, and nothing else; where grounding fails, that clip is used; for TVQA+ the annotated boxes go into the
vision agent's prompt; grounding results are stored under the question's words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from agent.answer import Answer
from agent.errors import BadSettings
from agent.retrieval.line_matches import AnchorsFrom
from agent.session import Session
from agent.variants.base import Variant, check_at_least
from agent.variants.longvideoagent.clips import CLIP_S
from agent.variants.longvideoagent.episode import answer_now, begin_episode, next_action, take_step

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
    anchors_from: AnchorsFrom = "both"
    """Where clips and videos are found without the grounding agent: in pictures, in words, or in both."""
    chapters: bool = False
    """Prompts list the titles and times of the library's scenes or chapters."""

    def __post_init__(self) -> None:
        check_at_least(self, rounds=1, window=1, frames=1, videos=1, clips=1, clip_s=0)
        if self.window > LARGEST_WINDOW:
            raise BadSettings(f"got window={self.window}; it is 1 to {LARGEST_WINDOW} clips")


async def longvideoagent(session: Session, parameters: LongVideoAgentParameters) -> Answer:
    """Answer by Algorithm 1. Raises `OutOfBudget` when a budget ends the run in the middle of a turn."""
    episode = begin_episode(
        session,
        steps=session.account.budget.rounds or parameters.rounds,
        window=parameters.window,
        frames=parameters.frames,
        videos=parameters.videos,
        clips=parameters.clips,
        clip_s=parameters.clip_s,
        vision=parameters.vision,
        anchors_from=parameters.anchors_from,
        chapters=parameters.chapters,
    )
    session.last_resort = lambda: answer_now(episode) if episode.has_evidence else None
    while True:  # line 3
        session.account.begin_round()
        if over := session.over():
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


LONGVIDEOAGENT = Variant(
    "longvideoagent",
    "a master that only reads has clips located and looked at by two other models (arXiv 2512.20618)",
    longvideoagent,
    lambda longest_s: LongVideoAgentParameters(),
    roles=("policy", "grounding", "vision"),
    uses=("transcript", "screen text", "captions"),
    ablations={"no vision agent": {"vision": False}, "no agents": {"rounds": 1}},
    needs_language=True,
)
