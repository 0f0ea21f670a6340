"""Fusion of several searches by rank, and suppression of hits too near in time to a better one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from operator import attrgetter

from kinodex.index.kinds import LINE_KINDS, SEVERAL
from kinodex.index.rows import Hit
from kinodex.index.terms import line_terms, query_terms

RRF_K = 60
SAME_MOMENT_S = 3.0
SMALL_LETTERS, SMALL_SHARE = 3, 0.3


def fuse(*searches: Sequence[Hit], query: str = "") -> list[Hit]:
    """Fuse searches by reciprocal rank (Cormack, Clarke and Buettcher 2009): a hit scores the sum of 1 / (60 + rank).

    A line found by its words alone ranks lower the fewer of the `query`'s words it has (see `word_share`). Of hits that
    score the same the earlier search's comes first. A hit of a later search (a transcript line, a caption) joins the
    best moment of earlier ones that lies within its time, or else within 3 s of it, unless a better hit of its own
    search did; the joined hit keeps the moment's time and frame and the first text.
    """
    moments: list[Hit] = []
    joined: list[dict[int, Hit]] = []  # of each moment, its hits by the number of their search
    of_video: dict[str, list[int]] = {}
    asked = set(query_terms(query))
    for number, hits in enumerate(searches):
        for rank, hit in enumerate(hits, start=1):
            score = 1 / (RRF_K + rank / word_share(asked, hit))
            numbers = of_video.setdefault(hit.video_id, [])
            at = _to_join(moments, hit, [at for at in numbers if number not in joined[at]]) if number else None
            if at is None:
                numbers.append(len(moments))
                moments.append(_scored(hit, score))
                joined.append({number: hit})
            else:
                moments[at] = _together(moments[at], hit, score)
                joined[at][number] = hit
    fused = [_of_parts(moment, hits) for moment, hits in zip(moments, joined, strict=True)]
    return sorted(fused, key=lambda hit: -hit.score)


def _to_join(moments: Sequence[Hit], hit: Hit, free: Sequence[int]) -> int | None:
    """Return the number of the best of the free moments that lies within a hit's time, or else within 3 s of it."""
    near = [at for at in free if is_same_moment(moments[at], hit)]  # the best come first
    return next((at for at in near if hit.time_s <= moments[at].time_s < hit.end_s), near[0] if near else None)


_values, _score = attrgetter(*Hit.__slots__), Hit.__slots__.index("score")


def _scored(hit: Hit, score: float) -> Hit:
    """Return the same hit with another score, in a third of the time of `replace`: a search has hundreds."""
    values = list(_values(hit))
    values[_score] = score
    return Hit(*values)


def word_share(asked: Set[str], hit: Hit) -> float:
    """Compute the share of the plain words of a query, by their letters, that a line said or shown has; above 0.

    It is 1 for what was found by its picture or meaning as well, and at least that of one word of usual length: the
    search forgives typos, and knows words that spaces do not part.
    """
    if not asked or hit.found_in not in LINE_KINDS or hit.found_in == "captions" or hit.cosine is not None:
        return 1.0
    shared = asked & set(line_terms(hit.text or ""))
    return max(sum(map(len, shared)) / sum(map(len, asked)), 1 / len(asked))


def _together(moment: Hit, hit: Hit, score: float) -> Hit:
    end_s = max(moment.end_s, hit.end_s)
    cosine, bm25 = _scores(moment, hit)
    if moment.text is None:
        moment = replace(moment, text=hit.text, speaker=hit.speaker, language=hit.language)
    return replace(moment, score=moment.score + score, end_s=end_s, cosine=cosine, bm25=bm25)


def _of_parts(moment: Hit, hits: Mapping[int, Hit]) -> Hit:
    """Give a moment that several searches found their hits as its parts."""
    return moment if len(hits) == 1 else replace(moment, found_in=SEVERAL, parts=tuple(hits.values()))


def _scores(first: Hit, second: Hit) -> tuple[float | None, float | None]:
    """Cosine and BM25 of both hits: where both have one, the first's."""
    cosine = second.cosine if first.cosine is None else first.cosine
    return cosine, second.bm25 if first.bm25 is None else first.bm25


def is_same_moment(moment: Hit, hit: Hit) -> bool:
    """Return True if a moment lies within the time of a hit of the same video, or 3 s of it."""
    near = hit.time_s - SAME_MOMENT_S <= moment.time_s < hit.end_s + SAME_MOMENT_S
    return moment.video_id == hit.video_id and near


def fuse_same(*searches: Sequence[Hit]) -> list[Hit]:
    """Fuse searches of the same lines the same way: only hits of the same line join, each search's counted once."""
    rows: dict[tuple[object, ...], Hit] = {}
    for hits in searches:
        for rank, hit in enumerate(distinct(hits), start=1):
            row = _line(hit)
            before = rows.get(row, replace(hit, score=0.0))
            cosine, bm25 = _scores(before, hit)
            spoken = before if before.speaker or before.language else hit
            rows[row] = replace(
                before,
                score=before.score + 1 / (RRF_K + rank),
                cosine=cosine,
                bm25=bm25,
                speaker=spoken.speaker,
                language=spoken.language,
            )
    return sorted(rows.values(), key=lambda hit: (-hit.score, hit.video_id, hit.time_s))


def followed(hits: Sequence[Hit], others: Sequence[Hit]) -> list[Hit]:
    """Append the hits of another search of the same table that are not among these."""
    rows = {_line(hit) for hit in hits}
    return [*hits, *(hit for hit in others if _line(hit) not in rows)]


def distinct(hits: Sequence[Hit]) -> list[Hit]:
    """Keep the first of hits of one line: two signs may read the same, and two tracks hold the same subtitle."""
    lines: dict[tuple[object, ...], Hit] = {}
    for hit in hits:
        lines.setdefault(_line(hit), hit)
    return list(lines.values())


def _line(hit: Hit) -> tuple[object, ...]:
    return hit.found_in, hit.video_id, hit.time_s, hit.end_s, hit.text


def shares_words(query: str, text: str | None) -> bool:
    """Return False for a line that shares only words of up to three letters with a query.

    Unless these have three tenths of its letters: fusion goes by rank and not by score, so a line that shares only "in
    the" would rank beside the best picture. Scripts without small and large letters are left to the index.
    """
    asked = set(query_terms(query))
    shared = asked & set(line_terms(text or ""))
    if not shared or any(len(word) > SMALL_LETTERS or word.upper() == word.lower() for word in shared):
        return True
    return sum(map(len, shared)) >= SMALL_SHARE * sum(map(len, asked))


def suppress_neighbours(hits: Sequence[Hit], min_gap_s: float) -> list[Hit]:
    """Drop the hits nearer than `min_gap_s` to a better one of the same video (temporal NMS); the best come first."""
    return [hits[at] for at in apart([(hit.video_id, hit.time_s) for hit in hits], min_gap_s)]


def apart(moments: Sequence[tuple[str, float]], min_gap_s: float) -> list[int]:
    """Find which moments, videos and times, are no nearer than `min_gap_s` to an earlier one that is kept."""
    left: list[int] = []
    times_s: dict[str, list[float]] = {}
    for number, (video_id, time_s) in enumerate(moments):
        taken_s = times_s.setdefault(video_id, [])  # in order, so that two of them are compared, and not all
        at = bisect_left(taken_s, time_s)
        if (at and time_s - taken_s[at - 1] < min_gap_s) or (at < len(taken_s) and taken_s[at] - time_s < min_gap_s):
            continue
        left.append(number)
        taken_s.insert(at, time_s)
    return left
