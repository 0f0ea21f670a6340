"""Anchors: the frames that queries match best, one for each stretch of a video (EEA, section 3.1).

For each query the best frames are retrieved and widened to clips; clips that overlap form a cluster, and the best frame
of each cluster is an anchor. Left open by the paper and decided here: clip length and number of frames are parameters;
clips of one query keep a gap, so that one long shot does not take all the places; a similarity is calibrated to 0..1
against the distribution of that query over that video (`Environment.search`); a frame that matches no better than the
median is no match. What is said, written or captioned at a frame's time counts beside its picture, on the same scale
(`agent.environment`): the paper searches pictures alone (`anchors_from`). A query keeps the scale that it was asked on,
which is that of the question's own queries and it: with a scale for each batch, or each query, a weak match of one
would beat a strong match of another.

Clips that overlap hang together in a chain, as the paper has it. Without an end to that all matches of a video of three
minutes soon are one cluster, and each new query removes guidance; so a chain has a greatest length (`longest_s`), by
default a share of the video's. What a cluster stands for depends on what was seen: it draws frames by its best *unseen*
match, and counts in query scores by its best match that was not seen and judged worthless.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.environment import AnchorsFrom, Environment
from kinodex.agent.protocol import EXACT_S, Anchor, Question, Video
from kinodex.agent.requests.tree import DiscoverQueries
from kinodex.agent.session import Session
from kinodex.agent.trace import Ranked
from kinodex.agent.tree import Tree

Cluster = list[Anchor]
"""Matches of one stretch of a video, the best first."""


def find_matches(
    environment: Environment,
    queries: Sequence[str],
    count: int,
    gap_s: Mapping[str, float],
    beside: Sequence[str] = (),
    anchors_from: AnchorsFrom = "all",
) -> list[Anchor]:
    """Find for each query the `count` best frames of each video, no two of a video closer than its `gap_s`.

    They match by their pictures, by words at their times, or by the better of both. The queries have one scale
    (`Environment.deviations`), with those `beside`, which are not searched for.
    """
    if not queries:
        return []
    texts = list(dict.fromkeys([*queries, *beside]))
    among = [video.video_id for video in environment.videos]
    return [
        match
        for video_id in among
        for match in environment.search(texts, video_id, count, gap_s[video_id], among, anchors_from)
        if match.similarity > 0 and match.query in queries
    ]


def chains(
    matches: Iterable[Anchor], length_s: Mapping[str, float], longest_s: Mapping[str, float] | None = None
) -> list[Cluster]:
    """Clusters of clips that overlap, `length_s` long and centred on the matches.

    A chain's matches lie within `longest_s` of its first one; without it a chain may be as long as the video.
    """
    chained: list[Cluster] = []
    for match in sorted(matches, key=lambda each: (each.video_id, each.time_s, -each.similarity)):
        last = chained[-1] if chained else None
        if last and _hangs_on(match, last, length_s, longest_s):
            last.append(match)
        else:
            chained.append([match])
    return [sorted(cluster, key=lambda match: -match.similarity) for cluster in chained]


def _hangs_on(
    match: Anchor, chain: Cluster, length_s: Mapping[str, float], longest_s: Mapping[str, float] | None
) -> bool:
    video_id = match.video_id
    if chain[-1].video_id != video_id or match.time_s - chain[-1].time_s >= length_s[video_id]:
        return False
    return longest_s is None or match.time_s - chain[0].time_s < longest_s[video_id]


def anchors(found: Iterable[Cluster], without: Collection[tuple[str, int]] = ()) -> list[Anchor]:
    """The best match of each cluster whose video and frame number are not in `without`, by video and time."""
    rest = ([each for each in cluster if (each.video_id, each.frame_no) not in without] for cluster in found)
    return sorted((each[0] for each in rest if each), key=lambda match: (match.video_id, match.time_s))


def drawing_order(clusters: Sequence[Cluster], seen: Collection[tuple[str, int]]) -> list[Anchor]:
    """The best unseen match of each cluster, places never looked at first, then by similarity.

    A second match of a place that was looked at would keep the search there while others have not been looked at once.
    """
    best = anchors(clusters)
    return sorted(anchors(clusters, seen), key=lambda match: (match not in best, -match.similarity))


def per_video(environment: Environment, value: Callable[[Video], float]) -> dict[str, float]:
    return {video.video_id: value(video) for video in environment.videos}


# Anchors that need nothing to match: the times that the question names.
#
# "What happens at 01:23?" says where to look, and no likeness of pictures finds it. A clock time of the question is
# certain; one of an option is one of several possibilities. A number with a unit counts only after a word that makes it
# a point in time ("at 90 seconds", "after 5 minutes"): "for 5 minutes" is a length, and "at 100 m" a distance.

IN_QUESTION, IN_OPTION = 1.0, 0.5
"""Similarities of the frame at a time that the question, or an option of it, names."""
_CLOCK = re.compile(
    r"(?<![\d:.])(?:(\d{1,2}):)?(\d{1,3}):(\d{2})(?:\.\d+)?(?![\d:])(?!\s*(?:a\.?m|p\.?m|o'?clock)\b)", re.I
)
_POINT = re.compile(
    r"\b(?:at|after|around|about|before|from|between|and|until|by|near)\s+(?:about\s+|around\s+|the\s+)?"
    r"(?:(\d+)\s*(?:hours?|hrs?|h)(?![a-z])[\s,]*(?:and\s+)?)?"
    # a bare m is metres, unless hours stand before it or seconds after it
    r"(?:(\d+)[\s-]*(?:minutes?|mins?|(?(1)m|m(?=[\s,]*(?:and\s+)?\d+(?:\.\d+)?[\s-]*s(?:ec|\b))))(?![a-z])"
    r"[\s,]*(?:and\s+)?)?"
    r"(?:(\d+(?:\.\d+)?)[\s-]*(?:seconds?|secs?|s)\b)?(?!\s*(?:of|later|long|earlier|before|after)\b)",
    re.I,
)
_MARK = re.compile(r"\b(?:minute|min)\s+(\d+)\b|\b(\d+)[\s-]minute\s+mark\b|\b(\d+)\s+minutes?\s+(?:in|into)\b", re.I)


def named_times_s(text: str) -> list[float]:
    """The points in time that a text names, in seconds, each once, in order."""
    found = [_seconds(*each.groups()) for each in _CLOCK.finditer(text)]
    found += [_seconds(*each.groups()) for each in _POINT.finditer(text) if any(each.groups())]
    found += [60.0 * float(next(filter(None, each.groups()))) for each in _MARK.finditer(text)]
    return sorted(set(found))


def _seconds(hours: str | None, minutes: str | None, seconds: str | None) -> float:
    return 3600 * float(hours or 0) + 60 * float(minutes or 0) + float(seconds or 0)


def question_anchors(environment: Environment, question: Question) -> list[Anchor]:
    """The frames on screen at the times that a question and its options name, of each video that lasts so long."""
    named = dict.fromkeys((time_s for text in question.options for time_s in named_times_s(text)), IN_OPTION)
    named |= dict.fromkeys(named_times_s(question.text), IN_QUESTION)
    found = []
    for video in environment.videos:
        stored = environment.vectors(video.video_id)
        for time_s, similarity in named.items():
            if video.start_s <= time_s < video.end_s:
                at = max(int(np.searchsorted(stored.time_s, time_s + EXACT_S, side="right")) - 1, 0)
                frame = int(stored.frame_no[at]), float(stored.time_s[at])
                found.append(Anchor(video.video_id, *frame, similarity, f"at {time_s:g} s"))
    return found


# Choice of what to look at: videos that the queries match best, and frames that cover a segment.
#
# The papers search one video. Decided here for all agents that search a tree: several videos, or a whole library, are
# the children of one root. The question's queries are looked for in the index, and what they match are the anchors of
# the videos. Search begins in the video with the best anchor, the others stay candidates. The best anchor ranks, not
# the query score of a segment, which many weak anchors lower: of three hour-long sketch films the best anchor named the
# right one for 62 questions of 100, the query score for 45. All matches are judged on one scale, that of the videos
# together: on a scale of its own, a video that is about nothing else would seem to match nowhere. Of very many videos
# the index chooses first, so that their vectors are never all read; videos that earlier answers of a conversation rest
# on stay.
#
# Coverage (EEA, section 3.3): the paper asks for the set of frames that minimises the largest distance from any frame
# of the segment to its nearest chosen one, some being chosen already (the anchors). Greedy farthest-point selection
# does not reach that minimum; here it is found exactly, over the frames that are really stored and with the segment's
# ends counted: for a given radius one sweep tells how many frames are needed, and the radius is found by bisection.

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
