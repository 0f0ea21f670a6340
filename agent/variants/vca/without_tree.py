"""VCA's ablation "w/o tree search" (section 4.3): the policy names the frames that it wants to see, without segments.

The paper says no more than that. Decided here: the first frames are equally spaced, as in VCA; each later round
shows the unseen frames nearest to the times that the policy names; the oldest frames leave the memory, since without
segments there are no rewards. A model that twice gives up while frames are unseen is shown frames spread over the
rest.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kinodex.agent.answer import Answer
from kinodex.agent.protocol.videos import Segment
from kinodex.agent.search.chapters import show_chapters
from kinodex.agent.search.coverage import Times, nearest, spread
from kinodex.agent.search.memory import Memory, final_request, remember, start_memory
from kinodex.agent.search.tree import Tree, affordable, unseen_times
from kinodex.agent.search.video_choice import start_multi_video
from kinodex.agent.session import NO_DECISION, Session
from kinodex.agent.traces.events import Acted, Decided
from kinodex.agent.variants.vca.frame_choice import ChooseFrames
from kinodex.agent.variants.vca.parameters import VCAParameters


async def without_tree(session: Session, parameters: VCAParameters) -> Answer:
    """Answer from frames chosen one by one; raises `OutOfBudget` as VCA does."""
    videos, memory = Tree(), start_memory(session, parameters.memory)
    session.last_resort = lambda: final_request(session, memory) if memory.frames else None
    first = videos.candidates[
        await start_multi_video(session, videos, parameters.videos, parameters.anchors_from)
    ].segment
    if parameters.chapters:
        show_chapters(session, summaries=True)
    environment, account = session.environment, session.account
    count = affordable(account, parameters.frames)
    video_id = first.video_id
    chosen_s = spread(first.start_s, first.end_s, unseen_times(videos, environment, account, first), count)
    seen: list[tuple[str, float]] = []
    while True:
        account.begin_round()
        evicted = memory.make_room(len(chosen_s))
        frames = session.label(environment.frames(video_id, chosen_s))
        videos.sampled |= {(video_id, frame.frame_no) for frame in frames}
        seen += [(video_id, frame.time_s) for frame in frames]
        session.emit(Acted(account.rounds, "look", {"video": video_id, "times_s": tuple(chosen_s.tolist())}))
        remember(session, memory, frames, [None] * len(frames), evicted)
        choice = await _choose(session, videos, memory, tuple(seen), affordable(account, parameters.frames))
        if isinstance(choice, Answer):
            return choice
        video_id, chosen_s = choice


async def _choose(
    session: Session, videos: Tree, memory: Memory, seen: tuple[tuple[str, float], ...], count: int
) -> tuple[str, Times] | Answer:
    """Return the video to look at next and the times of its unseen frames nearest to those requested, or the answer."""
    environment, frames = session.environment, memory.frames
    wholes = (Segment(0, each.video_id, each.start_s, each.end_s) for each in environment.videos)
    unseen_s = {each.video_id: unseen_times(videos, environment, session.account, each) for each in wholes}
    over = session.over()
    if over or not any(len(times_s) for times_s in unseen_s.values()):
        return await session.conclude(final_request(session, memory), over or "")
    request = ChooseFrames(question=session.question, videos=environment.videos, frames=frames, seen=seen, count=count)
    exhausted = tuple(video_id for video_id, times_s in unseen_s.items() if not len(times_s))
    request = replace(request, declining=session.rules.while_searching, exhausted=exhausted, chapters=session.chapters)
    reply = await session.ask_to_search(request)
    if reply is None:
        return await session.conclude(final_request(session, memory), reason=NO_DECISION)
    doubt = await session.doubt(reply, frames) if reply.action == "answer" else ""
    if doubt or (reply.declines and request.declining != "allowed"):
        video_id = max(unseen_s, key=lambda each: len(unseen_s[each]))
        left_s = unseen_s[video_id]
        return video_id, spread(float(left_s[0]), float(left_s[-1]), left_s, count)
    if reply.action == "look":
        session.emit(Decided(session.account.rounds, reply.action, None, forced=False))
        video_id = environment.video(reply.video).video_id
        return video_id, nearest(np.asarray(reply.times_s), unseen_s[video_id])
    return session.accept(reply, frames, sufficient=reply.action == "answer")
