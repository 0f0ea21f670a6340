"""Fusion of several searches by rank, and suppression of hits too near in time to a better one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from index.rows import Hit

RRF_K = 60
SAME_MOMENT_S = 3.0
WORD = re.compile(r"\w+")
FEW_WORDS, SMALL_LETTERS = 3, 3


def fuse(*searches: Sequence[Hit]) -> list[Hit]:
    """Fuse searches by reciprocal rank (Cormack, Clarke and Buettcher 2009): a hit scores the sum of 1 / (60 + rank).

    A hit of a later search (a transcript line, a caption) joins the best moment of earlier ones that lies within
    its time or 3 s of it, unless a better hit of its own search did; the joined hit keeps the moment's time and frame
    and the first text.
    """
    moments: list[Hit] = []
    joined: list[set[int]] = []  # of each moment, the searches that found it
    for number, hits in enumerate(searches):
        for rank, hit in enumerate(hits, start=1):
            score = 1 / (RRF_K + rank)
            near = (at for at in range(len(moments)) if number not in joined[at] and is_same_moment(moments[at], hit))
            at = next(near, None)
            if at is None:
                moments.append(replace(hit, score=score))
                joined.append({number})
            else:
                moments[at] = _together(moments[at], hit, score)
                joined[at].add(number)
    return sorted(moments, key=lambda hit: (-hit.score, hit.video_id, hit.time_s))


def _together(moment: Hit, hit: Hit, score: float) -> Hit:
    end_s = max(moment.end_s, hit.end_s)
    cosine, bm25 = _scores(moment, hit)
    if moment.text is None:
        moment = replace(moment, text=hit.text, speaker=hit.speaker, language=hit.language)
    return replace(moment, score=moment.score + score, end_s=end_s, source="both", cosine=cosine, bm25=bm25)


def _scores(first: Hit, second: Hit) -> tuple[float | None, float | None]:
    """Cosine and BM25 of both hits: where both have one, the first's."""
    cosine = second.cosine if first.cosine is None else first.cosine
    return cosine, second.bm25 if first.bm25 is None else first.bm25


def is_same_moment(moment: Hit, hit: Hit) -> bool:
    """True if a moment lies within the time of a hit of the same video, or 3 s of it."""
    near = hit.time_s - SAME_MOMENT_S <= moment.time_s < hit.end_s + SAME_MOMENT_S
    return moment.video_id == hit.video_id and near


def fuse_same(*searches: Sequence[Hit]) -> list[Hit]:
    """Fuse searches of one table the same way: only hits of the same row join."""
    rows: dict[tuple[object, ...], Hit] = {}
    for hits in searches:
        for rank, hit in enumerate(hits, start=1):
            row = (hit.video_id, hit.time_s, hit.end_s, hit.text)
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
    rows = {(hit.video_id, hit.time_s, hit.end_s, hit.text) for hit in hits}
    return [*hits, *(hit for hit in others if (hit.video_id, hit.time_s, hit.end_s, hit.text) not in rows)]


def shares_words(query: str, text: str | None) -> bool:
    """Return False for a line that shares a single word of up to three letters with a query of three words or more.

    Fusion goes by rank and not by score, so a line that shares only "the" would rank beside the best picture if no
    other line matches better. Scripts without spaces between words are left to the index.
    """
    shared = set(WORD.findall(query.casefold())) & set(WORD.findall((text or "").casefold()))
    return len(query.split()) < FEW_WORDS or len(shared) != 1 or len(shared.pop()) > SMALL_LETTERS


def suppress_neighbours(hits: Sequence[Hit], min_gap_s: float) -> list[Hit]:
    """Drop the hits nearer than `min_gap_s` to a better one of the same video (temporal NMS); the best come first."""
    left: list[Hit] = []
    times_s: dict[str, list[float]] = {}
    for hit in hits:
        taken_s = times_s.setdefault(hit.video_id, [])
        if all(abs(hit.time_s - time_s) >= min_gap_s for time_s in taken_s):
            left.append(hit)
            taken_s.append(hit.time_s)
    return left
