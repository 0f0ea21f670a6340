"""Lines as vectors: which videos are outdated, which model is used, and how a query is embedded."""

from __future__ import annotations

import numpy as np
import pytest

from kinodex.index.errors import SpaceMismatch, TowersDamaged
from kinodex.index.library import Library
from kinodex.index.maintain import remove_added, remove_videos
from kinodex.index.store.carried_towers import LEASE
from kinodex.index.store.indexes import refresh
from kinodex.index.store.schema import equal
from kinodex.index.sweep import AddedAudit, AddedRows, audit_added, discard_added
from kinodex.jobs.towers import carry_sentences
from tests.support.libraries.random_library import SETTINGS, caption, fingerprint, made, write
from tests.support.libraries.sentence_lines import CHANCE, ConceptModel, add_sentences
from tests.support.models.sentence_models import small_bert

LINES = ((1.0, 2.0, "we drove the car"), (5.0, 6.0, "it was raining"))


@pytest.fixture
def library(tmp_path) -> Library:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    for number, video_id in enumerate(("aaaa", "bbbb", "cccc")):
        write(library, made(video_id, 20, seed=number, lines=LINES if video_id != "cccc" else ()))
    return library


def captioned(library: Library, model: str, text: str, video_id: str = "aaaa") -> None:
    library.additions.add_captions({video_id: [caption(0, text)]}, model)
    assert library.additions.complete("captions", model, {video_id: 1}, {}) == ()


def test_a_library_without_sentences(library):
    assert library.sentences.spaces() == () and library.sentences.space() is None
    assert library.sentences.load() is None and library.sentences.meaning("car") is None
    assert library.sentences.outdated(ConceptModel().space) == []
    with pytest.raises(SpaceMismatch, match="holds none; `kinodex add sentences` adds one"):
        library.sentences.space("concepts")


def test_rows_hold_the_lines_and_unit_vectors(library):
    model = ConceptModel()
    add_sentences(library, model)
    (name,) = [name for name in library.tables.names() if name.startswith("sentences_concepts_")]
    rows = library.tables.rows(name).sort_by([("video_id", "ascending"), ("start_s", "ascending")]).to_pylist()
    assert [(row["video_id"], row["source"], row["start_s"], row["text"], row["model"]) for row in rows] == [
        (video_id, "transcript", start_s, text, None) for video_id in ("aaaa", "bbbb") for start_s, _, text in LINES
    ]
    np.testing.assert_allclose(
        [row["vector"] for row in rows[:2]], model.embed_lines([LINES[0][2], LINES[1][2]]), atol=1e-3
    )
    assert [(each.stage, each.model, each.videos, each.rows) for each in library.info().added] == [
        ("sentences", model.space.digest, 3, 4)
    ]
    with pytest.raises(ValueError, match="vectors have shape"):
        library.sentences.add({"aaaa": (library.sentences.lines("aaaa"), np.zeros((2, 5)))}, model.space)


def test_videos_are_outdated_once_their_text_is_another(library):
    model = ConceptModel()
    add_sentences(library, model)
    assert library.sentences.outdated(model.space) == []
    captioned(library, "old", "a dog")
    captioned(library, "old", "a dog", "cccc")
    assert library.sentences.outdated(model.space) == ["aaaa", "cccc"]
    add_sentences(library, model)
    assert library.sentences.outdated(model.space) == []
    captioned(library, "new", "a puppy")
    assert library.sentences.outdated(model.space) == ["aaaa"]
    add_sentences(library, model)
    remove_added(library, "captions", "new", "aaaa")  # as many rows of the older model are seen again
    assert library.sentences.outdated(model.space) == ["aaaa"]
    add_sentences(library, model)
    library.additions.discard("captions", "old", "aaaa")
    captioned(library, "old", "a boat")  # by the same model, as many, but other text
    assert library.sentences.outdated(model.space) == ["aaaa"]
    add_sentences(library, model, "bbbb")
    assert library.sentences.outdated(model.space) == ["aaaa"]


def test_the_model_of_the_most_videos_is_the_librarys_and_of_several_the_one_used_last(library):
    first, second = ConceptModel("first"), ConceptModel("second")
    add_sentences(library, first)
    assert library.sentences.space() == first.space
    library.sentences.add_space(second.space, CHANCE)  # a run that ended before its first video
    assert library.sentences.space() == first.space
    add_sentences(library, second, "bbbb")
    assert library.sentences.space() == first.space  # else no line of the other video would be found
    add_sentences(library, second)
    assert library.sentences.space() == second.space
    assert library.sentences.space("first") == first.space == library.sentences.space(first.space.digest)
    assert {space.name for space in library.sentences.spaces()} == {"first", "second"}
    with pytest.raises(SpaceMismatch, match="got sentence model third"):
        library.sentences.space("third")
    remove_added(library, "sentences", second.space.digest, "bbbb")
    assert library.sentences.space() == first.space


def test_an_interrupted_run_is_a_leftover_and_lost_rows_are_broken(library):
    model = ConceptModel()
    add_sentences(library, model, "aaaa")
    (table,) = [name for name in library.tables.names() if name.startswith("sentences_")]
    library.tables.delete(table, equal("start_s", 1))
    lines = library.sentences.lines("bbbb")
    library.sentences.add({"bbbb": (lines, model.embed_lines([line.text for line in lines]))}, model.space)
    meaning = model.meaning("car")
    assert {hit.video_id for hit in library.search.words("car", meaning=meaning) if hit.cosine} == set()
    found = audit_added(library)
    assert found == AddedAudit(
        leftovers=(AddedRows("sentences", model.space.digest, ("bbbb",)),),
        broken=(AddedRows("sentences", model.space.digest, ("aaaa",)),),
    )
    assert library.additions.discard_leftovers("sentences", model.space.digest) == 1
    discard_added(library, found.broken)
    assert audit_added(library) == AddedAudit() and library.tables.count(table) == 0


def test_rows_go_with_their_video_and_survive_maintenance(library):
    model = ConceptModel()
    add_sentences(library, model)
    refresh(library.tables)
    remove_videos(library, "aaaa")
    (table,) = [name for name in library.tables.names() if name.startswith("sentences_")]
    assert set(library.tables.rows(table)["video_id"].to_pylist()) == {"bbbb"}
    assert not [index for index in library.tables[table].describe_indices() if index.field_names == ["text"]]


def test_a_query_is_embedded_by_the_model_that_the_library_carries(library, tmp_path):
    from kinodex.index.spaces.sentence_model import load_sentence_model

    model = load_sentence_model(str(small_bert(tmp_path / "bert")), "cpu")
    library.sentences.add_space(model.space, CHANCE)
    (line,) = carry_sentences(library, model)
    assert "carried" in line and carry_sentences(library, model) == []
    (tmp_path / "bert" / "model.safetensors").unlink()  # the folder is no longer needed
    opened = Library.open(library.uri)
    meaning = opened.sentences.meaning("a red boat")
    assert meaning is not None and meaning.space == model.space and meaning.least_cosine == pytest.approx(0.2)
    assert float(meaning.vector @ model.embed_texts(["a red boat"])[0]) == pytest.approx(1.0, abs=1e-4)
    (weights,) = (tmp_path / "library" / "towers" / model.space.digest).glob("text.safetensors")
    weights.write_bytes(weights.read_bytes()[:-9])
    with pytest.raises(TowersDamaged, match=r"`kinodex add sentences .* writes towers again"):
        Library.open(library.uri).sentences.meaning("a red boat")
    with library.lease(LEASE, "another"):
        (line,) = carry_sentences(library, model)
    assert "was not exported" in line
    (line,) = carry_sentences(library, model)
    assert "carried" in line and Library.open(library.uri).sentences.meaning("a red boat") is not None


def test_a_model_that_cannot_be_had_is_said_and_words_go_on(library):
    add_sentences(library, ConceptModel("/no/such/folder"))
    assert library.sentences.meaning("car") is None
    assert "/no/such/folder cannot be had" in library.sentences.missing
    assert [hit.text for hit in library.search.words("car", k=1)] == ["we drove the car"]


def test_a_model_that_is_damaged_since_is_said_and_another_is_tried(library, tmp_path):
    from kinodex.index.spaces.sentence_model import load_sentence_model

    model = load_sentence_model(str(small_bert(tmp_path / "bert")), "cpu")
    add_sentences(library, model, "aaaa")
    weights = tmp_path / "bert" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:5000])
    assert library.sentences.meaning("car") is None
    assert "cannot load the sentence model" in library.sentences.missing
    weights.write_bytes(whole)
    other = load_sentence_model(str(small_bert(tmp_path / "other", seed=1)), "cpu")
    add_sentences(library, other)
    meaning = library.sentences.meaning("car")
    assert meaning is not None and meaning.space == other.space and library.sentences.missing == ""
