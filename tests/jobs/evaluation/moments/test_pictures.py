"""Searches by a picture, as MomentSeeker publishes them: found by the image tower, or left out and counted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.benchmarks import read_moment_benchmark
from kinodex.jobs.eval.moments import (
    Bench,
    Cases,
    Pictures,
    Result,
    ResultFile,
    make_cases,
    open_pictures,
    query_vector,
    run_cases,
)
from kinodex.jobs.eval.samples import MomentQuery, MomentSample
from kinodex.jobs.models import ModelChoice
from kinodex.jobs.open import open_environment
from tests.support.libraries.random_library import SETTINGS, fingerprint

AT = 3
"""The frame of film-02 whose picture is searched by."""


@pytest.fixture(scope="module")
def opened(library: Path) -> Library:
    return Library.open(str(library))


@pytest.fixture(scope="module")
def published(opened: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`i2v.json` in the published form: a picture alone, a picture and words, words alone, and a file that is none."""
    folder = tmp_path_factory.mktemp("momentseeker")
    (frame,) = opened.frames(opened.video("film-02").video_id, [AT])
    (folder / "query.jpg").write_bytes(frame.jpeg)
    (folder / "broken.jpg").write_bytes(b"no picture")
    moment = {"src_video_path": "videos/film-02.mp4", "answering_time_interval": [[frame.time_s, frame.time_s + 1]]}
    rows = [
        {"qry_text": "", "qry_img_path": "query.jpg", "task": "IMS"},
        {"qry_text": "a boat", "qry_img_path": "query.jpg", "task": "IMS"},
        {"qry_text": "a boat", "qry_img_path": "", "task": "TMS"},
        {"qry_text": "", "qry_img_path": "broken.jpg", "task": "IMS"},
    ]
    (folder / "i2v.json").write_text(json.dumps([row | moment for row in rows]))
    return folder


def samples_of(folder: Path) -> tuple[MomentSample, ...]:
    return read_moment_benchmark("momentseeker", folder / "i2v.json").samples


def solved(opened: Library, cases: Cases, pictures: Pictures, *names: str) -> dict[tuple[str, str], Result]:
    environment = open_environment(opened)
    bench = Bench(opened, environment, ModelChoice(cache=False), 5, 2.0, embed_picture=pictures.embed)
    found = run_cases(cases, names, bench, ResultFile(None, {}), lambda done, todo: None)
    return {(each.case_id, each.system): each for each in found}


def test_a_picture_finds_its_frame_and_with_words_it_is_searched_by_both(opened: Library, published: Path) -> None:
    samples = samples_of(published)
    pictures = open_pictures(opened, None, ["frames", "fused"], samples)
    cases = make_cases(samples, opened.videos(), None, pictures)
    assert (len(cases.cases), cases.left_out) == (4, {})
    found = solved(opened, cases, pictures, "frames", "fused")
    truth = cases.cases[0].relevant[0]
    for name in ("frames", "fused"):
        video_id, start_s, _ = found["i2v-1", name].found[0]
        assert video_id == truth[0] and abs(start_s - truth[1]) <= 1.0
        assert found["i2v-2", name].found != found["i2v-3", name].found
        assert found["i2v-4", name].found == () and "cannot read the picture" in found["i2v-4", name].error


def test_the_query_of_a_picture_and_words_lies_between_both(opened: Library, published: Path) -> None:
    embed = open_pictures(opened, None, ["frames"], samples_of(published)).embed
    assert embed is not None
    embed_text = open_environment(opened).embed_text
    both, picture, text = (
        query_vector(MomentQuery(words, None, image), embed_text, embed)
        for words, image in (("a boat", published / "query.jpg"), ("", published / "query.jpg"), ("a boat", None))
    )
    assert np.linalg.norm(both) == pytest.approx(1.0, abs=1e-4)
    assert both @ picture == pytest.approx(both @ text, abs=1e-3)
    with pytest.raises(UsageError, match="cannot read the picture"):
        query_vector(MomentQuery("", None, published / "broken.jpg"), embed_text, embed)


def test_beside_a_system_of_words_alone_a_picture_alone_is_left_out_and_counted(
    opened: Library, published: Path
) -> None:
    samples = samples_of(published)
    pictures = open_pictures(opened, None, ["frames", "words", "ground"], samples)
    cases = make_cases(samples, opened.videos(), None, pictures)
    assert [case.case_id for case in cases.cases] == ["i2v-2", "i2v-3"]
    ((reason, count),) = cases.left_out.items()
    assert count == 2
    assert reason.startswith("a picture without text, which words, ground cannot search for; --contender frames ")
    found = solved(opened, cases, pictures, "words", "ground")
    assert found["i2v-2", "ground"].found == found["i2v-3", "ground"].found
    assert open_pictures(opened, None, ["words"], samples).embed is None


def test_without_an_image_tower_those_with_a_picture_are_counted_with_the_way_to_get_it(
    published: Path, opened: Library, tmp_path: Path
) -> None:
    samples = samples_of(published)
    other = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    pictures = open_pictures(other, None, ["frames"], samples)
    cases = make_cases(samples, opened.videos(), None, pictures)
    assert [case.case_id for case in cases.cases] == ["i2v-3"]
    ((reason, count),) = cases.left_out.items()
    assert count == 3 and reason.startswith("skipped for its picture, which cannot be embedded: ")


def test_where_nothing_is_searched_by_a_picture_no_tower_is_loaded(tmp_path: Path) -> None:
    other = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    assert open_pictures(other, None, ["frames"], [MomentSample("1", "own", "a boat", None, ())]) == Pictures()
