"""Search of the page: requests, moments and why they were found, pictures, ranges of what happens, towers."""

from __future__ import annotations

import http.client
import io
import json
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import cast
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

import numpy as np
import pytest
from PIL import Image

from kinodex.agent.videos.environment import Environment
from kinodex.index.errors import QueryError, TimeOutside, TorchMissing, UnknownVideo
from kinodex.index.kinds import PLACES
from kinodex.index.library import Library
from kinodex.index.rows import Hit
from kinodex.index.spaces.embedders import TextEmbedder
from kinodex.index.spaces.load import load_text_tower
from kinodex.index.spaces.model_names import PHOTO_SPACE
from kinodex.index.store.filters import one_of
from kinodex.jobs.errors import UsageError
from kinodex.jobs.grounding.search import ground
from kinodex.jobs.pictures import MOST_BYTES, read_picture
from kinodex.jobs.verdicts import RANKED
from kinodex.requests import Find, Ground
from kinodex.search.finder import Finder
from kinodex.web.query_strings import read_request, times_s
from kinodex.web.ranges import grounding_view
from kinodex.web.reasons import WIDTH, excerpt, why
from kinodex.web.search import MOST_OF_A_VIDEO, LibrarySearch, groups_view, needs_vector
from kinodex.web.text_towers import TextTowers
from tests.support.libraries.viewer_library import CHAPTERS, SAID, SCENE_S, hits_of, picture, served
from tests.world.drawn_space import DRAWN

RED, SNOW, DRAGON = "red shoes in the city", "snow", "a purple dragon"
LONG_S = 60


def test_requests_are_read_with_their_limits_and_refused_with_what_is_allowed():
    query = {"query": "a boat", "in": "frames", "videos": "ab12", "start_s": "1.5", "end_s": "", "k": "7"}
    assert read_request(Find, query.items()) == Find(query="a boat", in_="frames", videos=("ab12",), start_s=1.5, k=7)
    several = read_request(Find, [("like", "ab12@30"), ("videos", "ab12"), ("videos", "cd34"), ("end_s", "1:30")])
    assert (several.like, several.videos, several.end_s) == ("ab12@30", ("ab12", "cd34"), 90.0)
    assert read_request(Ground, [("text", SNOW), ("in", "words")]) == Ground(text=SNOW, in_="words")
    assert times_s({"from": "1:01.5", "to": ""}, "from", "to", "k") == [61.5, None, None]
    for kind, name, value, says in (
        (Find, "k", "0", "greater than or equal to 1"),
        (Find, "k", "9" * 40, "less than or equal to 10000"),
        (Find, "start_s", "soon", "give seconds"),
        (Find, "query", "x" * 2001, "at most 2,000"),
        (Find, "kind", "frames", "which is not taken here; give some of query, videos, where"),
        (Find, "verify", "3", "which is not taken here"),
        (Find, "rerank", "http://127.0.0.1:9", "which is not taken here"),
        (Ground, "text", "a" * 2001, "2,001 characters"),
        (Ground, "agent", "eea", "which is not taken here"),
        (Ground, "k", "0", "greater than or equal to 1"),
    ):
        with pytest.raises(UsageError, match=says):
            read_request(kind, [("text", "a"), (name, value)] if kind is Ground and name != "text" else [(name, value)])


# Moments of real searches of a small library.


def test_a_moment_of_several_searches_has_the_hits_of_each(shown):
    hits = Finder(shown.library).find(Find(query="a yellow boat at sea", k=36))
    best = hits[0]
    seen = best.part("frames")
    assert best.found_in == "several" and seen is not None and best.part("captions") is not None
    assert SCENE_S <= best.time_s < 2 * SCENE_S and seen.frame_no == best.frame_no
    said = next(filter(None, (hit.part("speech") for hit in hits)))
    assert (said.text or "").startswith("we are at sea")
    assert all(hit.parts == () and hit.part("speech") is None for hit in hits if hit.found_in == "frames")


def test_a_vector_is_needed_only_where_pictures_or_captions_of_the_same_space_are_searched(shown):
    def no_tower(text):
        raise AssertionError(text)

    space, finder = shown.library.fingerprint, Finder(shown.library, embed_text=no_tower)
    for place in PLACES:
        if needs_vector(shown.library, Find(query="sea", in_=place), space):
            assert place in ("all", "frames", "captions")
            continue
        finder.find(Find(query="sea", in_=place))
    assert needs_vector(shown.library, Find(query="boat", in_="captions"), space)
    other = replace(space, weights_sha256="0" * 64)
    assert not needs_vector(shown.library, Find(query="boat", in_="captions"), other)
    assert not needs_vector(shown.library, Find(query=" "), space)
    assert not needs_vector(shown.library, Find(like=f"{shown.video_id}@0"), space)


def test_frames_like_one_are_those_of_its_scene_without_itself_and_its_neighbours(shown):
    finder, like = Finder(shown.library), f"{shown.video_id}@30"
    times_s = [hit.time_s for hit in finder.find(Find(like=like, k=5))]
    assert len(times_s) == 5 and all(SCENE_S <= time_s < 2 * SCENE_S for time_s in times_s)
    assert min(abs(time_s - 30.0) for time_s in times_s) >= 2.0
    assert all(hit.time_s >= 40 for hit in finder.find(Find(like=like, start_s=40.0)))
    for unknown, error in ((f"{shown.video_id}@999", TimeOutside), ("nobody@0", UnknownVideo)):
        with pytest.raises(error):
            finder.find(Find(like=unknown))


def test_a_text_is_embedded_once_and_a_picture_is_searched_by_the_other_tower(shown):
    search = LibrarySearch(shown.library, shown.library.fingerprint)
    content = picture(CHAPTERS[RED])
    found = hits_of(search.search(Find(k=5), content))
    (best, *_) = Finder(shown.library).find(Find(in_="frames", k=5), content)
    assert found[0]["similarity"] == pytest.approx(best.score, abs=1e-3) and "like the picture" in found[0]["why"]
    (line,) = hits_of(search.search(Find(query="sea", in_="speech")))
    assert line["text"].startswith("we are at sea") and 20 <= line["frame_no"] < 25


def encoded(kind: str, **options: object) -> bytes:
    held = io.BytesIO()
    Image.new("RGB", (6, 4), (200, 30, 30)).save(held, kind, **options)
    return held.getvalue()


def test_pictures_are_read_and_refused_where_they_are_none_or_too_large():
    for kind in ("JPEG", "PNG", "WEBP", "GIF", "BMP"):
        rgb = read_picture(encoded(kind))
        assert rgb.shape == (4, 6, 3) and np.abs(rgb.astype(int) - (200, 30, 30)).max() <= 8, kind
    huge = io.BytesIO()
    Image.new("1", (10_000, 7_000)).save(huge, "PNG")
    for content, says in (
        (b"", "cannot read"),
        (b"<svg onload=alert(1)>", "cannot read"),
        (encoded("JPEG")[:60], "cannot read"),
        (encoded("TIFF"), "cannot read"),
        (huge.getvalue(), "70|pixels"),
        (b"x" * (MOST_BYTES + 1), "at most 10 MB"),
    ):
        with pytest.raises(UsageError, match=says) as caught:
            read_picture(content)
        assert "0x" not in str(caught.value), "the address of an object"


# Moments by video, and the reason why each was found.


def frame(video: str, time_s: float, score: float) -> Hit:
    return Hit(video, time_s, time_s + 1, int(time_s), score, None, "frames", cosine=score)


def no_frames(video_id):
    return [], []


def test_videos_come_by_their_best_hit_and_one_does_not_crowd_out_the_others(many):
    first, second, *_ = (row.video_id for row in many.videos())
    crowd = [frame(second, 3.0 * n, 0.4 - n / 1000) for n in range(MOST_OF_A_VIDEO + 5)]
    found = groups_view(many, [*crowd, frame(first, 1.0, 0.2)], "snow", "words", no_frames)
    assert [(group["title"], len(group["hits"]), group["more"]) for group in found["groups"]] == [
        ("film 0001", MOST_OF_A_VIDEO, 5),
        ("film 0000", 1, 0),
    ]
    assert found["count"] == MOST_OF_A_VIDEO + 1
    alone = groups_view(many, crowd, "snow", "words", no_frames)
    assert (alone["count"], alone["groups"][0]["more"]) == (len(crowd), 0)
    line = Hit(first, 1.0, 2.0, None, 5.0, "snow", "speech")
    moment = replace(line, frame_no=1, score=0.016, found_in="several", parts=(frame(first, 1.0, 0.31), line))
    (hit,) = groups_view(many, [moment], "snow", "words", no_frames)["groups"][0]["hits"]
    assert (hit["similarity"], hit["why"]) == (0.31, "both seen and said: snow"), "never a rank"


FRAME = Hit("v", 30.0, 31.0, 30, 0.3, None, "frames")
LINE = Hit("v", 31.5, 33.0, None, 4.0, "we are at sea", "speech")
CAPTION = Hit("v", 20.0, 40.0, None, 2.0, "a boat at sea", "captions")
SHOWN = Hit("v", 31.0, 35.0, None, 3.0, "TO THE SEA", "screen_text")
DETECTION = Hit("v", 30.0, 31.0, 30, 0.914, "boat", "detections")


def joined(*parts: Hit) -> Hit:
    return replace(parts[0], found_in="several", parts=parts)


def test_a_reason_names_what_found_the_moment():
    for hit, says in (
        (FRAME, "its picture is near the words"),
        (LINE, "said at 0:31.5: we are at sea"),
        (replace(LINE, speaker="Anna"), "said at 0:31.5 by Anna: we are at sea"),
        (CAPTION, "described: a boat at sea"),
        (SHOWN, "on screen at 0:31.0: TO THE SEA"),
        (joined(FRAME, SHOWN), "both seen and shown as text: TO THE SEA"),
        (DETECTION, "a detector found: boat, 91% sure"),
        (joined(FRAME, LINE), "both seen and said: we are at sea"),
        (joined(FRAME, LINE, CAPTION), "seen, said and described: we are at sea"),
    ):
        assert why(hit, "sea") == says
    assert why(FRAME, "", "frame") == "looks like that frame"
    assert why(FRAME, "", "picture") == "looks like the picture"


def test_an_excerpt_holds_the_word_and_is_short():
    text = "first " + "filler " * 40 + "middle " + "filler " * 40 + "last"
    for word in ("first", "middle", "last"):
        part = excerpt(text, f"the {word.upper()}")
        assert word in part.split() and len(part) <= WIDTH + 4
        assert part.startswith("…") == (word != "first") and part.endswith("…") == (word != "last")
    assert excerpt("x" * 500, "y") == "x" * WIDTH + " …"
    assert excerpt(None, "y") == "" and excerpt("a  short\nline", "y") == "a short line"


# Ranges of a library in which something happens, as the server gives them.


def fetch(address, **query):
    with urlopen(f"{address}/data/libraries/0/moments?{urlencode(query)}") as reply:
        return json.load(reply)


def test_ranges_have_the_frames_at_both_ends_or_the_reason_why_there_are_none(address, shown, many):
    found = fetch(address, text=SNOW, **{"in": "frames"})
    best = found["ranges"][0]
    assert (found["present"], best["start_s"], best["end_s"]) == (None, 40.0, 60.0)
    assert (best["begin_frame"], best["end_frame"], best["found_in"], best["words"]) == (40, 59, "frames", "")
    assert best["score"] > 0
    row = shown.library.video(shown.video_id)
    assert found["videos"] == {row.video_id: {"title": row.title, "start_s": 0.0, "duration_s": row.duration_s}}
    found = fetch(address, text=DRAGON, videos="film", k=1)
    assert (found["present"], len(found["ranges"]), found["weaker"]) == (None, 1, [])
    assert (found["basis"], found["claim"]) == ("ranking", RANKED), "training never met a dragon"
    with served(many.uri) as of_texts:
        found = fetch(of_texts, text=SNOW)
    assert (found["present"], found["weaker"]) == (None, []) and "neither pictures nor words" in found["reason"]
    for path, status in (("7/moments?text=a", 404), ("0/moments?text=a&videos=nobody", 404), ("0/moments?text=", 400)):
        with pytest.raises(HTTPError) as refused:
            urlopen(f"{address}/data/libraries/{path}")
        assert refused.value.code == status
        refused.value.close()


def test_words_that_were_found_are_quoted(shown):
    tower = load_text_tower(DRAWN).embed_text
    environment = Environment.of(shown.library, shown.library.videos(), tower)
    found = ground(shown.library, environment, "we are at sea", in_="words")
    view = grounding_view(shown.library, found, environment)
    assert view["ranges"][0]["words"].startswith(SAID[:13])
    assert grounding_view(shown.library, found)["ranges"][0]["words"] == ""


# Text towers are loaded once, and while one is loaded the searches that need none go on.


class Gate:
    """Loads the tower that kinodex brings once it is opened, and notes for which library."""

    def __init__(self):
        self.loads = []
        self.began, self.opened = threading.Event(), threading.Event()

    def __call__(self, uri, digest):
        self.loads.append(uri)
        self.began.set()
        assert self.opened.wait(LONG_S)
        return load_text_tower(PHOTO_SPACE)


def test_a_tower_is_loaded_once_for_all_libraries_again_after_an_error_and_never_after_the_end():
    space, faults = load_text_tower(PHOTO_SPACE).fingerprint, [TorchMissing("no torch")]
    gate = Gate()
    gate.opened.set()

    def load(uri, digest):
        if faults:
            raise faults.pop()
        return gate(uri, digest)

    towers = TextTowers(load)
    with pytest.raises(TorchMissing):
        towers.begin("one", space).result(LONG_S)
    first, same, other = (towers.begin(uri, space) for uri in ("one", "one", "two"))
    assert first is same and first.result(LONG_S) is other.result(LONG_S)
    assert gate.loads == ["one"]
    towers.close()
    gate = Gate()
    towers = TextTowers(gate)
    first, second = towers.begin("one", space), towers.begin("two", space)
    assert gate.began.wait(LONG_S)
    towers.close()
    assert second.cancelled() and not first.done()
    gate.opened.set()
    first.result(LONG_S)
    assert gate.loads == ["one"]


def test_texts_that_wait_are_embedded_together_and_a_fault_is_that_of_each(shown):
    space, calls, gate = replace(shown.library.fingerprint, weights_sha256="1" * 64), [], threading.Event()

    class Tower:
        def embed_text(self, texts):
            calls.append(list(texts))
            assert gate.wait(LONG_S)
            if "bad" in texts:
                raise QueryError("no such text")
            return np.eye(len(texts), 4, dtype=np.float32)

    towers = TextTowers(lambda uri, digest: cast(TextEmbedder, Tower()))
    first = towers.begin_text("one", space, "red")
    while not calls:
        time.sleep(0.001)
    others = [towers.begin_text("one", space, text) for text in ("blue", " blue", "green", "red")]
    gate.set()
    assert [each.result(LONG_S) for each in (first, *others)] == [None] * 5
    assert calls == [["red"], ["blue", "green"]]
    assert towers.embed("one", space, "green").tolist() == [0.0, 1.0, 0.0, 0.0]
    with pytest.raises(QueryError):
        towers.begin_text("one", space, "bad").result(LONG_S)
    towers.close()


def test_a_reply_is_given_again_until_a_table_changes(shown, tmp_path):
    library = Library.open(str(shutil.copytree(shown.library.uri, tmp_path / "library")))
    with served(library.uri) as address:
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=LONG_S)

        def found(text):
            connection.request("GET", f"/data/libraries/0/search?query={text}&in=speech")
            return json.load(connection.getresponse())

        first = found("sea")
        assert found("sea") == first
        ids = [row.video_id for row in library.videos()]
        library.tables.delete("speech", one_of("video_id", ids))
        assert first["count"] and not found("sea")["count"]
        connection.close()


def test_a_search_of_the_transcript_is_answered_while_another_waits_for_the_tower(shown):
    gate = Gate()
    with served(shown.library.uri, towers=TextTowers(gate)) as address, ThreadPoolExecutor(1) as client:

        def found(query):
            with urlopen(f"{address}/data/libraries/0/search?{query}", timeout=LONG_S) as reply:
                return json.load(reply)

        waiting = client.submit(found, "query=red&in=frames")
        assert gate.began.wait(LONG_S)
        try:
            assert found("query=red&in=speech")["count"] >= 0
            assert not waiting.done()
        finally:
            gate.opened.set()
        assert waiting.result(LONG_S)["count"]
