"""Search of a library as the page shows it: moments, by video, each with the reason why it was found; and ranges."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from threading import Lock
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.environment import AnchorsFrom, Environment
from kinodex.find import (
    FOR_PICTURES,
    LONGEST_TEXT,
    Finder,
    Floats,
    Parts,
    Picture,
    Query,
    embedder_key,
    ground_where,
    held_vector,
    is_vector,
    keep_vector,
    kept_vector,
    known_where,
    plain_query,
)
from kinodex.index.errors import QueryError, TimeOutside
from kinodex.index.library import Library, LibraryReader
from kinodex.index.rows import Hit, VideoRow
from kinodex.index.search.fusion import is_same_moment
from kinodex.index.sentences import Meaning
from kinodex.index.spaces.towers import Fingerprint, TextEmbedder
from kinodex.index.times import clock, parse_time
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.moments import watched
from kinodex.jobs.ground import MOST, Grounding, as_json, ground
from kinodex.jobs.open import load_text_tower
from kinodex.jobs.verdicts import basis_of, claim

MOST_HITS = 100
MOST_S = 1e9
"""Seconds; no video is so long, and what is much more is too large for those who count in parts of a second."""
MOST_NUMBER = 2**31 - 1
"""Of what is counted in a library: a frame's number has so many bits."""
LIKE = "give a video's id and the number of a frame: ID/FRAME"
SHOWN = 40
"""Characters of a wrong value that its error repeats."""
TEXTS_KEPT = 512
"""Texts whose meanings are kept: somebody who types and deletes comes back to most."""
VIDEOS_KEPT = 256
"""Videos whose frame times are kept, for lines and captions to be shown with the frame of their time."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search of the page; `like` is a video and frame number: frames like that one are searched, no text is read."""

    text: str = ""
    where: str = "all"
    video: str | None = None
    start_s: float | None = None
    end_s: float | None = None
    most: int = 36
    like: tuple[str, int] | None = None
    condition: str | None = None
    """Only videos are searched for which it holds."""

    def query(self, picture: Picture | None = None) -> Query:
        """The query of a finder: for the text, and for a picture beside it; a vector takes its place."""
        words, where = ("", "pictures") if is_vector(picture) else (self.text, self.where)
        where = where if picture is None or where in FOR_PICTURES else "pictures"
        videos = () if self.video is None else (self.video,)
        limits = self.start_s, self.end_s, self.most, MIN_GAP_S
        return Query(words, picture, where, videos, *limits, condition=self.condition)


class LibrarySearch:
    """Searches of a library in one of its spaces, by words, by a frame or by a picture; for one thread.

    Each raises SpaceError where a tower is needed and cannot be had, UsageError, QueryError or UnknownVideo.
    """

    def __init__(self, library: Library, space: Fingerprint, towers: TextTowers | None = None) -> None:
        self.library = library
        self.space = space
        self._towers = towers or TextTowers()
        self.embed_text = partial(self._towers.embed, library.uri, space)
        self._meanings = lru_cache(TEXTS_KEPT)(lambda model, text: library.sentences.meaning(text))
        # by the whole row: a video that was ingested again has other frames
        self._frame_times = lru_cache(VIDEOS_KEPT)(lambda video: library.frame_times(video.video_id))
        self._finder = Finder(library, space.digest, embed_text=self.embed_text, meaning_of=self._meaning_of)

    @property
    def text_tower(self) -> TextEmbedder:
        """Embedder of texts; waits until it is loaded."""
        return self._towers.begin(self.library.uri, self.space).result()

    def _meaning_of(self, text: str) -> Meaning | None:
        """The meaning of a text by the sentence model that the library has now, if it has one."""
        model = self.library.sentences.space()
        return None if model is None else self._meanings(model.digest, text)

    def search(self, request: SearchRequest) -> dict[str, Any]:
        """Groups of moments (see `groups_view`) for a text, or like a frame where `request.like` names one."""
        if request.like is None:
            return self._view(find_moments(self._finder, request), request, "words")
        return self._view(moments_like(self._finder, request), request, "frame")

    def search_picture(self, content: bytes, request: SearchRequest) -> dict[str, Any]:
        """Groups of moments that look like a picture, and fit the text beside it; raises UsageError for no picture."""
        return self._view(find_moments(self._finder, request, content), request, "picture")

    def _view(self, moments: Sequence[Moment], request: SearchRequest, by: By) -> dict[str, Any]:
        text = request.text if by == "words" else ""
        return groups_view(self.library, moments, text, by, self._frame_times, request.video is not None)


# A search that the page asks for, read from a query string within its bounds.


def read_request(query: Mapping[str, str], library: Library | None = None) -> SearchRequest:
    """Read a search from a query string; raises UsageError or QueryError for a value that makes no sense.

    The extracts of the library are places to search in.
    """
    start_s, end_s = times_s(query, "from", "to")
    text, like = query.get("text", ""), query.get("like")
    where = known_where(query.get("in") or query.get("kind") or "all", library)
    if len(text) > LONGEST_TEXT:
        raise QueryError(f"got a search of {len(text)} characters; give at most {LONGEST_TEXT}")
    most = whole_number(query.get("most") or "36", "most", f"give a number of hits from 1 to {MOST_HITS}", 1, MOST_HITS)
    frame = None
    if like:
        video_id, _, number = like.rpartition("/")
        if not video_id:
            raise UsageError(f"got like={like[:SHOWN]!r}; {LIKE}")
        frame = video_id, whole_number(number, "like", LIKE)
    return SearchRequest(
        text, where, query.get("video") or None, start_s, end_s, most, frame, query.get("where") or None
    )


def times_s(query: Mapping[str, str], *names: str) -> list[float | None]:
    """Read times of a query string, None where one is missing; raises UsageError for a value that is no time."""
    return [_time_s(name, query[name]) if query.get(name) else None for name in names]


def _time_s(name: str, text: str) -> float:
    try:
        time_s = parse_time(text)
    except QueryError as error:
        raise UsageError(f"{name}: {error}") from None
    if not abs(time_s) <= MOST_S:
        raise UsageError(f"got {name} {text[:SHOWN]!r}; give a time within {MOST_S:.0f} s")
    return time_s


def whole_number(text: str, name: str, advice: str, least: int = 0, most: int = MOST_NUMBER) -> int:
    """Read a number that comes in by HTTP; raises UsageError for one outside of [least, most], however long it is."""
    digits = text.lstrip("0") or "0"  # Python refuses to read thousands of them
    if not text.isdecimal() or len(digits) > len(str(MOST_NUMBER)) or not least <= int(digits) <= most:
        raise UsageError(f"got {name} {text[:SHOWN]!r}; {advice}")
    return int(digits)


# Moments that a search found, each with the hits that it was found by.

EmbedText = Callable[[str], Floats]
MIN_GAP_S = 2.0
"""Between two moments of one video; of frames like one, also from that one."""
PARTS = {"frame": "frame", "transcript": "line", "text": "shown", "caption": "caption"}
PARTS |= {"chapter": "caption", "extract": "caption", "detection": "detection", "clip": "clip"}
"""Of a hit's source, the part of a moment that it is."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A hit and, where a search found it, the frame, the clip, the line said or shown, the caption or the detection."""

    hit: Hit
    frame: Hit | None = None
    line: Hit | None = None
    caption: Hit | None = None
    shown: Hit | None = None
    detection: Hit | None = None
    clip: Hit | None = None


def needs_vector(library: Library, request: SearchRequest, space: Fingerprint) -> bool:
    """True if `find_moments` embeds the text of a request."""
    if request.like is not None or not request.text.strip():
        return False
    in_own = space.digest == library.fingerprint.digest
    return request.where in ("all", "pictures") or (request.where == "captions" and in_own)


def find_moments(finder: Finder, request: SearchRequest, picture: bytes | None = None) -> list[Moment]:
    """Find the best moments for a text, for a picture or for both, best first; raises as the finder does."""
    hits, parts = finder.find_parts(request.query(picture))
    if parts is None:
        return [Moment(hit, **{PARTS[hit.source]: hit}) for hit in hits]
    pictures: dict[int | None, list[Hit]] = {}
    for each in parts.pictures:
        pictures.setdefault(each.frame_no, []).append(each)
    return [_moment(hit, parts, pictures.get(hit.frame_no, [])) for hit in hits]


def moments_like(finder: Finder, request: SearchRequest) -> list[Moment]:
    """Find the frames most like the one of `request.like`, by its stored vector; it and those within 2 s are left out.

    Raises UnknownVideo, or TimeOutside where there is no such frame.
    """
    assert request.like is not None
    video_id, frame_no = request.like
    library = finder.library
    stored = library.vectors(video_id, finder.space)
    at = np.flatnonzero(stored.frame_no == frame_no)
    if not len(at):
        raise TimeOutside(f"got frame {frame_no} of {library.video(video_id).title}, which has no such frame")
    own = library.frames(video_id, [frame_no])[0]
    # Of its own neighbours no more than three are among the hits, which are 2 s apart themselves.
    hits = finder.find(replace(request.query(stored.vectors[at[0]]), k=request.most + 3))
    others = [h for h in hits if h.video_id != own.video_id or abs(h.time_s - own.time_s) >= MIN_GAP_S]
    return [Moment(hit, frame=hit) for hit in others[: request.most]]


def _moment(hit: Hit, parts: Parts, pictures: Sequence[Hit]) -> Moment:
    """Name the hits that were fused to one: of each search the best one near it, of `pictures` those of its number."""
    several = hit.source == "both"
    return Moment(
        hit,
        _near(hit, pictures),
        _near(hit, parts.speech) if several or hit.source == "transcript" else None,
        _near(hit, parts.captions) if several or hit.source == "caption" else None,
        _near(hit, parts.screen_text) if several or hit.source == "text" else None,
        clip=_near(hit, parts.clips) if several or hit.source == "clip" else None,
    )


def _near(moment: Hit, hits: Iterable[Hit]) -> Hit | None:
    """Find the hit that was joined to a moment: the best of those whose time it lies in, or else of those nearby."""
    near = [hit for hit in hits if is_same_moment(moment, hit)]
    return next((hit for hit in near if hit.time_s <= moment.time_s < hit.end_s), near[0] if near else None)


# Moments by video, best first, as the page shows them.

FrameTimes = Callable[[VideoRow], tuple[NDArray[np.int32], NDArray[np.float64]]]
MOST_OF_A_VIDEO = 12
"""Hits of one video among those of several: the rest are found by a search of that video."""


def groups_view(
    library: Library, moments: Sequence[Moment], text: str, by: By, frame_times: FrameTimes, one_video: bool = False
) -> dict[str, Any]:
    """Group moments by video, in the order of each video's best.

    Gives `{"count", "basis", "claim", "noise", "groups": [{..., "hits": [...]}]}`; `claim` says what the `basis`
    allows, `noise` is the sentence of `Hit.noise`, or None. A hit's `score` is that of its search, which says nothing
    beside another's (see `Hit`). `similarity` is the cosine of its frame, if its picture was found.
    """
    by_video: dict[str, list[Moment]] = {}
    for moment in moments:
        by_video.setdefault(moment.hit.video_id, []).append(moment)
    rows = library.visible.videos(by_video.keys())
    most = len(moments) if one_video or len(by_video) == 1 else MOST_OF_A_VIDEO

    def hit(moment: Moment, row: VideoRow) -> dict[str, Any]:
        return _hit_view(moment, row, frame_times) | {"why": why(moment, text, by)}

    groups: list[dict[str, Any]] = [
        {
            "video_id": video_id,
            "title": row.title,
            "duration_s": row.duration_s,
            "more": max(0, len(found) - most),
            "hits": [hit(moment, row) for moment in found[:most]],
        }
        for video_id, found in by_video.items()
        if (row := rows.get(video_id)) is not None
    ]
    hits = [moment.hit for moment in moments]
    noise = next((hit.noise for hit in hits), None)
    said = {"basis": basis_of(hits), "claim": claim(hits), "noise": noise}
    return {"count": sum(len(group["hits"]) for group in groups), **said, "groups": groups}


def play_range(video: VideoRow, start_s: float, end_s: float) -> dict[str, float]:
    """The range that a player plays of one that was found, by the rule of exports."""
    return dict(zip(("start_s", "end_s"), watched(video, start_s, end_s), strict=True))


def _hit_view(moment: Moment, video: VideoRow, frame_times: FrameTimes) -> dict[str, Any]:
    hit, frame_no = moment.hit, moment.hit.frame_no
    if frame_no is None:  # that nearest to its middle, where the video has frames
        numbers, times_s = frame_times(video)
        frame_no = int(numbers[np.argmin(np.abs(times_s - (hit.time_s + hit.end_s) / 2))]) if len(numbers) else None
    return {
        "start_s": hit.time_s,
        "end_s": hit.end_s,
        "play": play_range(video, hit.time_s, hit.end_s),
        "frame_no": frame_no,
        "score": hit.score,
        "similarity": None if moment.frame is None else round(moment.frame.score, 4),
        "source": hit.source,
        "text": hit.text,
        **{name: getattr(hit, name) for name in ("basis", "probability", "present", "reason", "query")},
    }


# The reason why a moment was found, in one plain phrase.

By = Literal["words", "frame", "picture"]
LOOKS = {
    "words": "its picture is near the words",
    "frame": "looks like that frame",
    "picture": "looks like the picture",
    "clip": "its movement is near the words",
}
FOUND = {
    "frame": "seen",
    "clip": "seen to move",
    "line": "said",
    "shown": "shown as text",
    "caption": "described",
    "detection": "detected",
}
"""Of a moment's part, how it was found."""
WIDTH = 90
"""Characters of a text that a reason quotes."""
WORD = re.compile(r"\w+")


def why(moment: Moment, text: str, by: By = "words") -> str:
    """Say why a moment was found: "its picture is near the words", "said at 0:31: ...", "both seen and said: ..."."""
    parts = [words for name, words in FOUND.items() if getattr(moment, name) is not None]
    quoted = moment.line or moment.shown or moment.caption
    if len(parts) > 1 and quoted is not None:
        *first, last = parts
        together = f"both {first[0]} and {last}" if len(first) == 1 else f"{', '.join(first)} and {last}"
        return f"{together}: {excerpt(quoted.text, text)}"
    if moment.line is not None:
        by_whom = f" by {moment.line.speaker}" if moment.line.speaker else ""
        return f"said at {clock(moment.line.time_s)}{by_whom}: {excerpt(moment.line.text, text)}"
    if moment.shown is not None:
        return f"on screen at {clock(moment.shown.time_s)}: {excerpt(moment.shown.text, text)}"
    if moment.caption is not None:
        return f"described: {excerpt(moment.caption.text, text)}"
    if moment.detection is not None:
        return f"a detector found: {moment.detection.text}, {moment.detection.score:.0%} sure"
    return LOOKS["clip" if moment.frame is None and moment.clip is not None and by == "words" else by]


def excerpt(text: str | None, query: str, width: int = WIDTH) -> str:
    """Cut the part of a text around the first word that it shares with a query; "…" stands for what is left out."""
    whole = " ".join((text or "").split())
    if len(whole) <= width:
        return whole
    wanted = _word_set(query)
    at = next((found.start() for found in WORD.finditer(whole) if found[0].casefold() in wanted), 0)
    begin = max(0, min(at - width // 3, len(whole) - width))
    if begin:
        space = whole.find(" ", begin, at)
        begin = begin if space < 0 else space + 1
    end = len(whole) if begin + width >= len(whole) else max(whole.rfind(" ", begin, begin + width), begin)
    end = end if end > begin else min(begin + width, len(whole))
    return f"{'… ' if begin else ''}{whole[begin:end]}{' …' if end < len(whole) else ''}"


# Ranges of a library that fit a text best, as the page shows them, and what may be said of them.

MOST_RANGES = 50
WORDS = "words"
EXACT_S = 1e-6


@dataclass(frozen=True, slots=True)
class GroundRequest:
    """A search for the ranges of a text, in one video (by id, title or path) or all."""

    text: str
    video: str | None = None
    evidence_from: AnchorsFrom = "both"
    most: int = MOST
    condition: str | None = None


def read_ground_request(query: Mapping[str, str]) -> GroundRequest:
    """Read such a search from a query string; raises QueryError or UsageError for one that makes no sense."""
    text, most = query.get("text", ""), query.get("most") or str(MOST)
    if not text.strip():
        raise QueryError("the text is empty; say in words what happens")
    if len(text) > LONGEST_TEXT:
        raise QueryError(f"got a text of {len(text)} characters; give at most {LONGEST_TEXT}")
    evidence_from = ground_where(query.get("in") or "all")
    count = whole_number(most, "most", f"give a number of ranges from 1 to {MOST_RANGES}", 1, MOST_RANGES)
    return GroundRequest(text, query.get("video") or None, evidence_from, count, query.get("where") or None)


def ground_in(library: Library, space: Fingerprint, embed: EmbedText, request: GroundRequest) -> dict[str, Any]:
    """Search a library in one of its spaces: see `grounding_view`. Raises SpaceError or UnknownVideo.

    The environment is made for each search: what was added to the library since is found, and the vectors of many
    videos do not stay in memory.
    """
    library = library.where(request.condition)
    environment = Environment.of(
        library, library.videos(), lambda texts: np.stack([embed(text) for text in texts]), space=space.digest
    )
    rows = [library.video(request.video)] if request.video else []
    found = ground(library, environment, request.text, rows, most=request.most, evidence_from=request.evidence_from)
    return grounding_view(library, found, environment)


def grounding_view(
    library: LibraryReader, grounding: Grounding, environment: Environment | None = None
) -> dict[str, Any]:
    """A grounding as `kinodex.jobs.ground.as_json` has it, with the frames at both ends of each range, and its `play`.

    `begin_frame` and `end_frame` are the first and the last frame on screen, None without frames. Ranges that words
    were found in have these as `words`, if the `environment` is there to read them from. `videos` are the length and
    begin of each, for its time line.
    """
    value = as_json(grounding)
    for each in (*value["ranges"], *value["weaker"]):
        each |= _ends(library, each["video_id"], each["start_s"], each["end_s"])
        each["play"] = play_range(library.video(each["video_id"]), each["start_s"], each["end_s"])
        each["words"] = _words(environment, each, grounding.text) if each["found_in"] == WORDS else ""
    rows = {each.video.video_id: each.video for each in grounding.candidates}
    return value | {
        "videos": {
            video_id: {"title": row.title, "start_s": row.start_s, "duration_s": row.duration_s}
            for video_id, row in rows.items()
        },
    }


def _ends(library: LibraryReader, video_id: str, start_s: float, end_s: float) -> dict[str, int | None]:
    """Numbers of the frame on screen at the begin of a range, and of the last one before its end."""
    numbers, times_s = library.frame_times(video_id)
    if not len(numbers):
        return {"begin_frame": None, "end_frame": None}
    begin = max(int(np.searchsorted(times_s, start_s + EXACT_S, side="right")) - 1, 0)
    end = max(int(np.searchsorted(times_s, end_s - EXACT_S)) - 1, begin)
    return {"begin_frame": int(numbers[begin]), "end_frame": int(numbers[end])}


def _words(environment: Environment | None, found: Mapping[str, Any], text: str) -> str:
    """Join the lines said, written or described in a range, those with most words of a text first; cut short."""
    if environment is None:
        return ""
    wanted = _word_set(text)
    lines = [
        line.text
        for line in environment.source.lines(found["video_id"])
        if line.start_s < found["end_s"] and line.end_s > found["start_s"]
    ]
    return excerpt(" · ".join(sorted(lines, key=lambda line: -len(_word_set(line) & wanted))), text)


def _word_set(text: str) -> set[str]:
    return {word.casefold() for word in WORD.findall(text)}


# Text towers of libraries, loaded in a thread of their own, and before somebody searches.
#
# One that a library carries is there at once. One that torch loads takes 6 to 9 s of CPU, most of it for imports, and
# searches that need none go on meanwhile.


def open_text_tower(uri: str, digest: str) -> TextEmbedder:
    """Load a tower through a library of its own, which no other thread reads; raises as `load_text_tower` does."""
    return load_text_tower(Library.open(uri), digest)


class TextTowers:
    """Text towers by library and space, loaded once, the built-in one once for all libraries. For any thread."""

    def __init__(self, load: Callable[[str, str], TextEmbedder] = open_text_tower) -> None:
        self._load = load
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="towers")
        self._embedder = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedder")
        self._lock = Lock()
        self._loads: dict[tuple[str, str], Future[TextEmbedder]] = {}
        self._loaded: dict[str, TextEmbedder] = {}
        self._waiting: dict[tuple[str, str], list[tuple[str, Future[None]]]] = {}

    def begin(self, uri: str, space: Fingerprint) -> Future[TextEmbedder]:
        """Begin to load a tower unless it was; its result raises what `load_text_tower` does.

        One that could not be loaded is tried again: somebody may have brought what was missing.
        """
        key = (uri, space.digest)
        with self._lock:
            held = self._loads.get(key)
            if held is None or (held.done() and held.exception() is not None):
                held = self._loads[key] = self._worker.submit(self._loaded_once, uri, space.digest)
            return held

    def embed(self, uri: str, space: Fingerprint, text: str) -> Floats:
        """The vector of a text, by the tower of a library's URI and space; it waits until that is loaded."""
        key = embedder_key(uri, space.digest)
        return kept_vector(key, text, lambda words: self.begin(uri, space).result().embed_text([words])[0])

    def begin_text(self, uri: str, space: Fingerprint, text: str) -> Future[None]:
        """Begin to embed a text by a tower that is loaded, for `embed` to find it.

        Texts that come while others are embedded are embedded together, for little more than one costs: the weights
        are read from memory once.
        """
        done = Future[None]()
        if held_vector(embedder_key(uri, space.digest), text) is not None:
            done.set_result(None)
            return done
        with self._lock:
            self._waiting.setdefault((uri, space.digest), []).append((plain_query(text), done))
        self._embedder.submit(self._embed_waiting, uri, space)
        return done

    def _embed_waiting(self, uri: str, space: Fingerprint) -> None:
        with self._lock:
            waiting = self._waiting.pop((uri, space.digest), [])
        key = embedder_key(uri, space.digest)
        texts = [text for text in dict.fromkeys(text for text, _ in waiting) if held_vector(key, text) is None]
        try:
            vectors = self.begin(uri, space).result().embed_text(texts) if texts else ()
            for text, vector in zip(texts, vectors, strict=True):
                keep_vector(key, text, vector)
        except Exception as error:  # it is that of each search
            for _, done in waiting:
                done.set_exception(error)
        else:
            for _, done in waiting:
                done.set_result(None)

    def close(self) -> None:
        """Load none of those that wait; the one that is being loaded is not waited for."""
        self._worker.shutdown(wait=False, cancel_futures=True)
        self._embedder.shutdown(wait=False, cancel_futures=True)

    def _loaded_once(self, uri: str, digest: str) -> TextEmbedder:
        """In the worker alone."""
        key = embedder_key(uri, digest)
        if key not in self._loaded:
            self._loaded[key] = self._load(uri, digest)
        return self._loaded[key]
