"""Choice of the videos to search: those that the question's queries match best.

The papers search one video. Decided here for all agents that search a tree: several videos, or a whole library, are
the children of one root. The question's queries are looked for in the index, and what they match are the anchors of
the videos. Search begins in the video with the best anchor, the others stay candidates. The best anchor ranks, not
the query score of a segment, which many weak anchors lower: of three drawn films of an hour the best anchor named the
right one for 62 questions of 100, the query score for 45. All matches are judged on one scale, that of the videos
together: on a scale of its own, a video that is about nothing else would seem to match nowhere. Of very many videos
the index chooses first, so that their vectors are never all read; videos that earlier answers of a conversation rest
on stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kinodex.agent.protocol.videos import Anchor
from kinodex.agent.requests.tree import DiscoverQueries
from kinodex.agent.search.anchors import find_matches, per_video
from kinodex.agent.search.tree import Tree
from kinodex.agent.session import Session
from kinodex.agent.traces.events import Ranked
from kinodex.agent.videos.library_videos import AnchorsFrom

MOST_QUERIES = 5
CLIP_S = 8.0


async def discover_queries(session: Session) -> list[str]:
    """Ask for the question's queries (EEA, Table 10); none if the model gave no valid ones."""
    reply = await session.ask(DiscoverQueries(question=session.question))
    return new_queries(reply.queries if reply else [], known=())


def new_queries(proposed: Iterable[str], known: Iterable[str]) -> list[str]:
    """Up to `MOST_QUERIES` of the proposed queries, each once, without those known; upper and lower case are one."""
    folded_known = {query.casefold() for query in known}
    fresh = {query.strip().casefold(): query.strip() for query in proposed}
    return [query for folded, query in fresh.items() if folded not in folded_known][:MOST_QUERIES]


async def start_multi_video(session: Session, tree: Tree, most: int, anchors_from: AnchorsFrom = "all") -> int:
    """Add the videos as candidates, best first, for agents without queries; returns the first one's number.

    Queries are discovered only to rank several videos; if that fails, the question's own words are looked for.
    """
    queries: list[str] = []
    if len(session.environment.videos) > 1:
        queries = await discover_queries(session) or [session.question.text]
    limit_videos(session, queries, most, anchors_from)
    environment = session.environment
    gaps_s = per_video(environment, lambda video: CLIP_S)
    found = find_matches(environment, queries, 1, gaps_s, anchors_from=anchors_from)
    return add_video_roots(session, tree, found)


async def choose_videos(session: Session, most: int, anchors_from: AnchorsFrom = "all") -> None:
    """Limit a session to `most` videos, for agents that do not rank them.

    The videos match discovered queries best, or, without a valid one, the question's own words.
    """
    if len(session.environment.videos) > most:
        queries = await discover_queries(session) or [session.question.text]
        limit_videos(session, queries, most, anchors_from)


def limit_videos(session: Session, queries: Sequence[str], most: int, anchors_from: AnchorsFrom = "all") -> None:
    """Limit a session to the `most` videos that match the queries best, and those with prior evidence."""
    session.environment = session.environment.nearest(queries, most, session.known_videos, anchors_from)


def add_video_roots(session: Session, tree: Tree, found: Iterable[Anchor]) -> int:
    """Make the session's videos candidates, those with the best anchors first; returns the first one's number.

    A video's query score is, until an agent changes it, the similarity of its best anchor: 0 without one.
    """
    best: dict[str, float] = {}
    for anchor in found:
        best[anchor.video_id] = max(anchor.similarity, best.get(anchor.video_id, 0.0))
    videos = sorted(session.environment.videos, key=lambda video: -best.get(video.video_id, 0.0))
    planted = [tree.add(video.video_id, video.start_s, video.end_s) for video in videos]
    for candidate in planted:
        candidate.query_score = best.get(candidate.segment.video_id, 0.0)
    if len(planted) > 1:
        session.emit(Ranked(tuple(each.segment for each in planted), tuple(each.query_score for each in planted)))
    return planted[0].segment.number
