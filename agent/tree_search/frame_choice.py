"""Choice of what to look at: videos that the queries match best, and frames that cover a segment.

The papers search one video. Decided here for all agents that search a tree: several videos, or a whole library, are the
children of one root. The question's queries are looked for in the index, and what they match are the anchors of the
videos. Search begins in the video with the best anchor, the others stay candidates. The best anchor ranks, not the
query score of a segment, which many weak anchors lower: of three hour-long sketch films the best anchor named the right
one for 62 questions of 100, the query score for 45. All matches are judged on one scale, that of the videos together:
on a scale of its own, a video that is about nothing else would seem to match nowhere. Of very many videos the index
chooses first, so that their vectors are never all read; videos that earlier answers of a conversation rest on stay.

Coverage (EEA, section 3.3): the paper asks for the set of frames that minimises the largest distance from any frame of
the segment to its nearest chosen one, some being chosen already (the anchors). Greedy farthest-point selection does not
reach that minimum; here it is found exactly, over the frames that are really stored and with the segment's ends
counted: for a given radius one sweep tells how many frames are needed, and the radius is found by bisection.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from agent.core.question import Anchor
from agent.requests.tree import DiscoverQueries
from agent.retrieval.line_matches import AnchorsFrom
from agent.session import Session
from agent.trace.events import Ranked
from agent.tree_search.anchors import find_matches, per_video
from agent.tree_search.search_state import Tree

Times = NDArray[np.float64]

MOST_QUERIES = 5
CLIP_S = 8.0
BISECTIONS = 60


async def discover_queries(session: Session) -> list[str]:
    """Ask for the question's queries (EEA, Table 10); none if the model gave no valid ones."""
    reply = await session.ask(DiscoverQueries(question=session.question))
    return new_queries(reply.queries if reply else [], known=())


def new_queries(proposed: Iterable[str], known: Iterable[str]) -> list[str]:
    """Up to `MOST_QUERIES` of the proposed queries, each once, without those known; upper and lower case are one."""
    folded_known = {query.casefold() for query in known}
    fresh = {query.strip().casefold(): query.strip() for query in proposed}
    return [query for folded, query in fresh.items() if folded not in folded_known][:MOST_QUERIES]


async def start_multi_video(session: Session, tree: Tree, most: int, anchors_from: AnchorsFrom = "both") -> int:
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


async def choose_videos(session: Session, most: int, anchors_from: AnchorsFrom = "both") -> None:
    """Limit a session to `most` videos, for agents that do not rank them.

    The videos match discovered queries best, or, without a valid one, the question's own words.
    """
    if len(session.environment.videos) > most:
        queries = await discover_queries(session) or [session.question.text]
        limit_videos(session, queries, most, anchors_from)


def limit_videos(session: Session, queries: Sequence[str], most: int, anchors_from: AnchorsFrom = "both") -> None:
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


def cover(points_s: Times, available_s: Times, fixed_s: Times, count: int) -> Times:
    """Choose up to `count` of `available_s` so that every point is near a chosen or a fixed time.

    All three are sorted times in seconds, `points_s` the ones to be covered and `available_s` without
    `fixed_s`. Returns the chosen times, sorted: all of `available_s` if there are no more than `count`.
    """
    if count <= 0 or len(points_s) == 0:
        return available_s[:0]
    if len(available_s) <= count:
        return available_s
    low, high = 0.0, float(points_s[-1] - points_s[0]) + float(np.ptp(available_s)) + 1.0
    best: Times = available_s[:count]
    for _ in range(BISECTIONS):
        radius_s = (low + high) / 2
        chosen = _sweep(points_s, available_s, fixed_s, count, radius_s)
        if chosen is None:
            low = radius_s
        else:
            best, high = chosen, radius_s
    return _fill(available_s, fixed_s, best, count)


def spread(start_s: float, end_s: float, available_s: Times, count: int) -> Times:
    """Up to `count` distinct available times nearest to equally spaced instants inside [start_s, end_s)."""
    return nearest(start_s + (end_s - start_s) * np.arange(1, count + 1) / (count + 1), available_s)


def nearest(instants_s: Times, available_s: Times) -> Times:
    """The nearest available time for each instant, none twice; sorted, and fewer if they run out."""
    left = list(available_s)
    chosen = []
    for instant_s in instants_s[: len(left)]:
        at = int(np.argmin(np.abs(np.asarray(left) - instant_s)))
        chosen.append(left.pop(at))
    return np.asarray(sorted(chosen), dtype=np.float64)


def _sweep(points_s: Times, available_s: Times, fixed_s: Times, count: int, radius_s: float) -> Times | None:
    """The fewest available times that cover with this radius, None if `count` are not enough.

    Left to right, the first uncovered point gets the rightmost time that reaches it: no other choice covers
    more.
    """
    uncovered = points_s[_distances(points_s, fixed_s) > radius_s]
    chosen: list[float] = []
    at = 0
    while at < len(uncovered):
        reaching = int(np.searchsorted(available_s, uncovered[at] + radius_s, side="right")) - 1
        if len(chosen) == count or reaching < 0 or available_s[reaching] < uncovered[at] - radius_s:
            return None
        chosen.append(float(available_s[reaching]))
        at = int(np.searchsorted(uncovered, chosen[-1] + radius_s, side="right"))
    return np.asarray(chosen, dtype=np.float64)


def _fill(available_s: Times, fixed_s: Times, chosen_s: Times, count: int) -> Times:
    """Add the times that the sweep left over, each as far as possible from those chosen."""
    while len(chosen_s) < count:
        taken = np.concatenate([fixed_s, chosen_s])
        farthest = available_s[int(np.argmax(_distances(available_s, taken)))]
        chosen_s = np.append(chosen_s, farthest)
    return np.sort(chosen_s)


def _distances(points_s: Times, chosen_s: Times) -> Times:
    if len(chosen_s) == 0:
        return np.full(len(points_s), np.inf)
    chosen_s = np.sort(chosen_s)
    after = np.searchsorted(chosen_s, points_s)
    left = np.abs(points_s - chosen_s[np.maximum(after - 1, 0)])
    right = np.abs(chosen_s[np.minimum(after, len(chosen_s) - 1)] - points_s)
    return np.minimum(left, right)
