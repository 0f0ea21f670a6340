"""Posters of videos, and one file that holds the inputs, escaped, with as many pictures and traces as fit."""

from __future__ import annotations

import hashlib
import io
import json
import re
from datetime import UTC, datetime
from graphlib import CycleError

import numpy as np
import pytest
from PIL import Image, ImageDraw

from kinodex.agent.traces.trace import read_trace
from kinodex.index.library import Library
from kinodex.index.rows import FrameVectors, VideoRow
from kinodex.pipeline.sample import FrameRow
from kinodex.server.responses import NotGiven
from kinodex.web.inputs import classify_inputs
from kinodex.web.one_file import one_file
from kinodex.web.page import EXPORT, IMPORT, STATIC, as_json, bundle, bundled
from kinodex.web.posters import POSTER_SIDE_PX, NoPoster, Posters, telling_frame
from kinodex.web.telling_frames import candidates, evenly, groups, is_telling, variety
from kinodex.web.trace_view import shown_frames, trace_view
from kinodex.web.viewer_api import ViewerApi
from tests.bench.search import made_fingerprint
from tests.support.libraries.viewer_library import EVIL, held_in, picture

DIM = 8
WORDS = ("import", "export")
BLACK = np.zeros((90, 160, 3), np.uint8)


def jpeg(picture) -> bytes:
    held = io.BytesIO()
    Image.fromarray(picture).save(held, "JPEG", quality=90)
    return held.getvalue()


def draw_scene(number: int) -> bytes:
    """Draw a sky, a ground and some blocks, others for each number."""
    random = np.random.default_rng([3, number])
    top, bottom = random.integers(150, 255, 3), random.integers(10, 110, 3)
    slope = np.linspace(0, 1, 288)[:, None, None]
    scene = np.broadcast_to(top * (1 - slope) + bottom * slope, (288, 512, 3)).astype(np.uint8).copy()
    for _ in range(7):
        x, y = int(random.integers(432)), int(random.integers(60, 228))
        width, height = random.integers(30, 120, 2)
        scene[y : y + height, x : x + width] = random.integers(0, 255, 3)
    return jpeg(scene)


def title_card() -> bytes:
    card = Image.new("RGB", (512, 288), "black")
    ImageDraw.Draw(card).text((200, 130), "A FILM BY NOBODY", fill="white")
    held = io.BytesIO()
    card.save(held, "JPEG")
    return held.getvalue()


def write(library: Library, video_id: str, pictures: list[bytes], scenes: list[int], title: str = "film") -> VideoRow:
    """One video with these pictures, a second each; frames of one scene have almost the same vector."""
    random = np.random.default_rng(0)
    vectors = np.eye(DIM)[scenes] + 0.05 * random.standard_normal((len(scenes), DIM))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    frames = [
        FrameRow(at, float(at), 512, 288, jpeg, vector.astype("float16"))
        for at, (jpeg, vector) in enumerate(zip(pictures, vectors, strict=True))
    ]
    library.writer.add_frames({video_id: frames})
    length_s, now, count = float(len(frames) or 9), datetime.now(UTC), len(frames)
    counts = (count, 0, 0, 0, 1.0)
    row = VideoRow(
        video_id, "film.mp4", title, 0.0, length_s, 25.0, 512, 288, "none", *counts, library.space_name, "complete", now
    )
    assert library.writer.complete([row]) == ()
    return row


def id_of(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


@pytest.fixture(scope="module")
def films(tmp_path_factory) -> Library:
    """Films by number: 0 opens with black and a title; 1 is all black but for a card; 2 has only text; 3 a cut JPEG."""
    library = Library.create(str(tmp_path_factory.mktemp("films") / "library"), {}, made_fingerprint(DIM))
    scene, other = draw_scene(1), draw_scene(2)
    black, title = jpeg(BLACK), title_card()
    write(
        library, id_of(0), [black] * 6 + [title] * 4 + [scene] * 3 + [other] * 2, [0] * 6 + [1] * 4 + [2] * 3 + [3] * 2
    )
    write(library, id_of(1), [black, black, black, title], [0, 0, 0, 1])
    write(library, id_of(2), [], [])
    write(library, id_of(3), [scene[:300], scene[:300], other], [0, 0, 1])
    write(library, id_of(4), [scene[:300]], [0])
    return library


def test_black_titles_and_what_cannot_be_read_are_left_where_there_is_a_scene(films):
    for film, frames in ((0, {10, 11, 12}), (1, {3}), (3, {2})):
        assert telling_frame(films, films.video(id_of(film))).frame_no in frames, film
    for film, reason in ((2, "only text"), (4, "no picture can be read")):
        with pytest.raises(NoPoster, match=reason):
            telling_frame(films, films.video(id_of(film)))


def test_the_largest_group_comes_first_and_its_middle_before_its_edge() -> None:
    vectors = np.tile(np.eye(DIM)[0], (9, 1)).astype("float16")
    assert 0 not in candidates(FrameVectors(np.arange(9, dtype=np.int32), np.arange(9.0), vectors))
    assert candidates(FrameVectors(np.arange(1, dtype=np.int32), np.arange(1.0), vectors[:1])) == [0]
    assert [len(evenly(np.arange(count, dtype=np.int32))) for count in (1, 2, 90)] == [1, 2, 8]
    assert evenly(np.arange(90, dtype=np.int32))[:3] == [40, 49, 30]
    random = np.random.default_rng(1)
    scenes = np.repeat(np.eye(DIM)[:3], (4, 9, 2), axis=0) + 0.1 * random.standard_normal((15, DIM))
    scenes = (scenes / np.linalg.norm(scenes, axis=1, keepdims=True)).astype(np.float32)
    found = groups(scenes)
    assert sorted(np.concatenate(found).tolist()) == list(range(15))
    assert set(found[0].tolist()) <= set(range(4, 13))
    assert [len(group) for group in found] == sorted((len(group) for group in found), reverse=True)
    for group in found:
        near = scenes[group] @ scenes[group].sum(axis=0)
        assert near[0] == near.max() and near[-1] == near.min()


def test_shades_tell_scenes_from_blanks_and_cards() -> None:
    def grey(content: bytes):
        return np.asarray(Image.open(io.BytesIO(content)).convert("L"))

    assert all(is_telling(grey(draw_scene(number))) for number in range(12))
    blank = np.full((90, 160, 3), 128, np.uint8)
    assert not any(is_telling(grey(content)) for content in (jpeg(BLACK), jpeg(blank), jpeg(255 - BLACK), title_card()))
    assert variety(grey(jpeg(BLACK))) < variety(grey(title_card())) < variety(grey(draw_scene(1)))


def test_few_are_kept_and_none_is_chosen_twice(films) -> None:
    posters = Posters([films.uri], kept_bytes=1)
    first = posters.poster(0, id_of(0))
    assert posters.poster(0, id_of(0)) is first
    posters.poster(0, id_of(1))
    assert posters.poster(0, id_of(0)) is not first and posters.poster(0, id_of(0)).jpeg == first.jpeg
    assert max(Image.open(io.BytesIO(first.jpeg)).size) == POSTER_SIDE_PX
    with pytest.raises(NotGiven, match="library 1"):
        posters.poster(1, id_of(0))


def test_one_program_holds_every_module_after_those_it_imports_from() -> None:
    texts = {path.relative_to(STATIC).as_posix(): path.read_text() for path in STATIC.rglob("*.js")}
    program = bundle()
    assert program.count("\nmodules[") == len(texts) > 70
    for name, text in texts.items():
        made = program.index(f"modules[{json.dumps(name)}] = ")
        forms = IMPORT.findall(text), EXPORT.findall(text)
        assert [len(each) for each in forms] == [len(re.findall(f"^{word}", text, re.MULTILINE)) for word in WORDS], (
            name
        )
        for names, other in forms[0]:
            assert program.index(f"modules[{json.dumps(other)}] = ") < made, (name, other)
            taken = {each.split(" as ")[0].strip() for each in names.split(",")} - {""}
            assert taken <= {*EXPORT.findall(texts[other])}, (name, other, "exports what is imported")
    assert not re.search(r"^(import|export (?!default modules))", program, re.MULTILINE)
    assert "</script" not in program and "<!--" not in program, "it stands in a page of one file"
    with pytest.raises(CycleError):
        bundled({"a.js": 'import { b } from "viewer/b.js";\n', "b.js": 'import { a } from "viewer/a.js";\n'})


def test_one_file_holds_all_and_escapes_it(shown):
    page = one_file(ViewerApi(classify_inputs([str(shown.traces[0]), shown.library.uri])))
    text = page.text
    assert "<img" not in text
    assert text.count("</script>") == text.count("<script") == 2
    held = held_in(text)
    assert EVIL in held["data"]["home"]["traces"][0]["question"]["text"]
    frames = shown_frames(trace_view(read_trace(shown.traces[0])))
    assert len(held["pictures"]) == len(frames) > 5
    assert not re.search(r"(?:src|href)=\"(?!data:|#)", text)


def test_one_file_of_a_library_has_a_frame_of_each_segment_and_all_words(shown):
    alone = ViewerApi(classify_inputs([shown.library.uri]))
    held = held_in(one_file(alone).text)
    assert list(held["pictures"]) == [f"0/{shown.video_id}/{frame_no}" for frame_no in (10, 30, 50)]
    (row,) = held["data"]["libraries/0/videos"]
    assert row["title"] == f"film {EVIL}" and row["poster"] in (10, 30, 50)
    video = held["data"][f"libraries/0/videos/{shown.video_id}"]
    lines = {each["kind"]: len(each["rows"]) for each in video["lines"]}
    assert video["frame_nos"] == [10, 30, 50] and (lines["captions"], lines["speech"]) == (3, 1)
    few = one_file(alone, picture_bytes=2 * len(picture((200, 30, 30))) + 100)
    assert few.pictures_left_out == 1


def test_traces_of_a_run_as_many_as_fit(run):
    api = ViewerApi(classify_inputs([str(run)]))
    assert one_file(api).traces_left_out == 0
    small = one_file(api, data_bytes=len(as_json(api.view("r0-0-0"))) + 1)
    questions = held_in(small.text)["data"]["runs/0"]["questions"]
    kept = [answer["has_trace"] for each in questions for answer in each["answers"]]
    assert kept == [True] + [False] * small.traces_left_out
