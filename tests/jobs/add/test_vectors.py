"""Vectors of frames in another space, and of lines of text by a sentence model that the library carries."""

from __future__ import annotations

import shutil
from importlib.metadata import version

import numpy as np
import pytest

from kinodex.index.library import Library
from kinodex.index.rows import Scope
from kinodex.index.spaces.space import load_space
from kinodex.jobs.add.run import add
from kinodex.jobs.add.stages import Sentences
from tests.support.command import bad, json_of
from tests.support.libraries.random_library import SETTINGS, caption, fingerprint, made, write
from tests.support.models import stage_models as stage_kit
from tests.support.models.sentence_models import real_minilm, small_bert
from tests.world.drawn_space import DRAWN

SAID = {
    "drive": ((0.0, 2.0, "they sold the old automobile to a neighbour"), (3.0, 4.0, "the soup is ready")),
    "walk": ((1.0, 2.0, "look at the hound over there"), (5.0, 6.0, "close the window, please")),
    "still": (),
}


@pytest.fixture
def films(tmp_path) -> Library:
    library = Library.create(str(tmp_path / "films"), SETTINGS, fingerprint())
    for number, (title, lines) in enumerate(SAID.items()):
        write(library, made(f"{number}aaa", 10, number, lines=lines), title)
    return library


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> str:
    return str(small_bert(tmp_path_factory.mktemp("model") / "bert"))


def held(library: Library, digest: str) -> list[tuple[str, str, str | None]]:
    (table,) = [name for name in library.tables.names() if name.startswith("sentences_") and name.endswith(digest)]
    rows = library.tables.rows(table).to_pylist()
    return sorted((library.video(row["video_id"]).title, row["text"], row["model"]) for row in rows)


@pytest.mark.slow
def test_lines_are_embedded_once_and_again_where_they_changed(films, bert, kinodex):
    first = json_of(kinodex, "add", "sentences", films.uri, "--model", bert)
    assert (first["added"], first["rows"], first["failed"]) == (3, 4, 0)
    digest = first["model"]
    assert held(films, digest) == sorted((title, text, None) for title, lines in SAID.items() for _, _, text in lines)
    assert json_of(kinodex, "add", "sentences", films.uri, "--model", bert)["outcomes"] == []
    drive, still = films.video("drive").video_id, films.video("still").video_id
    films.additions.add_captions({drive: [caption(0, "a car")], still: [caption(0, "snow")]}, "m")
    assert films.additions.complete("captions", "m", {drive: 1, still: 1}, {}) == ()
    again = json_of(kinodex, "add", "sentences", films.uri, "--model", bert)
    assert {each["title"]: each["rows"] for each in again["outcomes"]} == {"drive": 3, "still": 1}
    assert len(held(films, digest)) == 6
    films.additions.discard("captions", "m", drive, still)
    fewer = json_of(kinodex, "add", "sentences", films.uri, "--model", bert, "--video", "still")
    assert [(each["title"], each["rows"]) for each in fewer["outcomes"]] == [("still", 0)] and fewer["failed"] == 0
    assert [text for title, text, _ in held(films, digest) if title == "still"] == []
    assert len(held(films, digest)) == 5  # the other video was not named


@pytest.mark.slow
def test_the_library_carries_the_model(films, bert, kinodex, tmp_path):
    (tmp_path / "empty").mkdir()
    bad(kinodex, "add", "sentences", films.uri, "--model", tmp_path / "empty", code=2, says="config.json")
    copy = str(shutil.copytree(bert, tmp_path / "bert"))
    ran = kinodex("add", "sentences", films.uri, "--model", copy)
    assert ran.code == 0 and f"{copy}: carried" in ran.err
    shutil.rmtree(copy)
    meaning = Library.open(films.uri).sentences.meaning("they sold the old automobile to a neighbour")
    assert meaning is not None and np.linalg.norm(meaning.vector) == pytest.approx(1.0, abs=1e-5)
    shown = kinodex("info", films.uri).out
    assert meaning.space.digest in shown and "sentences" in shown
    removed = kinodex("remove", "added", films.uri, "sentences", meaning.space.digest, "--yes")
    assert removed.out == "4 sentences removed\n"


@pytest.mark.slow
def test_a_query_without_a_common_word_is_found_by_the_real_model(films, kinodex):
    """Exported and searched without torch; the export itself checks the cosines."""
    stage = Sentences(model=str(real_minilm()), device="cpu")
    report = add(films, stage)
    assert report.failed == 0 and report.rows == 4
    for words, text in (("car", SAID["drive"][0][2]), ("dog", SAID["walk"][0][2])):
        assert films.search.words(words) == []
        meaning = films.sentences.meaning(words)
        assert meaning is not None
        (hit, *_) = films.search.words(words, meaning=meaning.every())
        assert (hit.text, hit.bm25) == (text, None) and hit.cosine is not None and hit.cosine > 0.34
    assert films.search.words("volcano", meaning=films.sentences.meaning("volcano")) == []
    found = json_of(kinodex, "search", films.uri, "car", "--in", "words")
    assert found[0]["text"] == SAID["drive"][0][2]


@pytest.mark.slow
def test_another_space_gives_every_frame_a_second_vector(kinodex, library, tiny_model):
    name = f"local-dir:{tiny_model('space')}"
    made = json_of(kinodex, "add", "vectors", library.uri, "--space", name, "--batch", 4)
    assert (made["added"], made["rows"]) == (3, sum(row.frames for row in library.videos()))
    assert made["arithmetic"] == f"float32, torch {version('torch')}"
    assert {each["arithmetic"] for each in made["outcomes"]} == {made["arithmetic"]}
    run = library.ingest_log.runs()[0]
    assert (run.kind, run.report["arithmetic"]) == ("add vectors", made["arithmetic"])
    shown = kinodex("info", library.uri, "--run", run.run_id).out
    assert f"vectors made in {made['arithmetic']}\n" in shown
    assert shown.count(made["arithmetic"]) == 1
    space = load_space(name)
    video = library.videos()[1]
    vectors = library.vectors(video.video_id, space=name)
    frames = library.frames(video.video_id, vectors.frame_no.tolist())
    pictures = [stage_kit.rgb_of(frame.jpeg) for frame in frames]
    expected = space.embed(np.stack([space.prepare(picture) for picture in pictures]))
    assert np.allclose(vectors.vectors.astype(float), expected.astype(float), atol=2e-3)
    best = library.search.frames(expected[2], Scope((video.video_id,)), k=1, space=name)[0]
    assert best.frame_no == vectors.frame_no[2]
    own = kinodex("add", "vectors", library.uri, "--space", DRAWN)
    assert own.code == 4
    assert "own: every frame has its vector" in own.error_line
