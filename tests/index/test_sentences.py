"""Lines as vectors: which videos are outdated, which model is used, and how a query is embedded."""

from __future__ import annotations

import numpy as np
import pytest

from kinodex.index.annotations.lines import count_lines, shown_models
from kinodex.index.errors import SpaceMismatch, TowersDamaged
from kinodex.index.library import Library
from kinodex.index.remove import remove_added, remove_videos
from kinodex.index.store.carried_towers import LEASE
from kinodex.index.store.indexes import refresh
from kinodex.jobs.towers.carried import carry_sentences
from tests.support.libraries.random_library import add_stage, caption, made, spoken, write
from tests.support.libraries.sentence_lines import CHANCE, ConceptModel, add_sentences
from tests.support.models.sentence_models import small_bert
from tests.support.screen_text.lines import Line, add_screen_text

LINES = ((1.0, 2.0, "we drove the car"), (5.0, 6.0, "it was raining"))


@pytest.fixture
def embedded(library: Library) -> Library:
    for number, video_id in enumerate(("aaaa", "bbbb", "cccc")):
        write(library, made(video_id, 20, seed=number, lines=LINES if video_id != "cccc" else ()))
    return library


def captioned(embedded: Library, model: str, text: str, video_id: str = "aaaa") -> None:
    add_stage(embedded, "captions", model, {video_id: [caption(0, text)]})


def test_rows_hold_the_lines_and_unit_vectors(embedded):
    model = ConceptModel()
    with pytest.raises(SpaceMismatch, match="holds none; `kinodex add sentences` adds one"):
        embedded.sentences.space("concepts")
    assert (embedded.sentences.spaces(), embedded.sentences.space(), embedded.sentences.load()) == ((), None, None)
    assert embedded.sentences.meaning("car") is None and embedded.sentences.outdated(model.space) == []
    add_sentences(embedded, model)
    (name,) = [name for name in embedded.tables.names() if name.startswith("sentences_concepts_")]
    rows = embedded.tables.rows(name).sort_by([("video_id", "ascending"), ("start_s", "ascending")]).to_pylist()
    assert [(row["video_id"], row["source"], row["start_s"], row["text"], row["model"]) for row in rows] == [
        (video_id, "speech", start_s, text, None) for video_id in ("aaaa", "bbbb") for start_s, _, text in LINES
    ]
    np.testing.assert_allclose(
        [row["vector"] for row in rows[:2]], model.embed_lines([LINES[0][2], LINES[1][2]]), atol=1e-3
    )
    assert [(each.stage, each.model, each.videos, each.rows) for each in embedded.info().added] == [
        ("sentences", model.space.digest, 3, 4)
    ]
    with pytest.raises(ValueError, match="vectors have shape"):
        embedded.sentences.add({"aaaa": (embedded.sentences.lines("aaaa"), np.zeros((2, 5)))}, model.space)
    refresh(embedded.tables)
    remove_videos(embedded, "aaaa")
    assert set(embedded.tables.rows(name)["video_id"].to_pylist()) == {"bbbb"}
    assert not [index for index in embedded.tables[name].describe_indices() if index.field_names == ["text"]]


@pytest.mark.slow
def test_videos_are_outdated_once_their_text_is_another(embedded):
    model = ConceptModel()
    add_sentences(embedded, model)
    assert embedded.sentences.outdated(model.space) == []
    captioned(embedded, "old", "a dog")
    captioned(embedded, "old", "a dog", "cccc")
    assert embedded.sentences.outdated(model.space) == ["aaaa", "cccc"]
    add_sentences(embedded, model)
    assert embedded.sentences.outdated(model.space) == []
    captioned(embedded, "new", "a puppy")
    assert embedded.sentences.outdated(model.space) == ["aaaa"]
    add_sentences(embedded, model)
    remove_added(embedded, "captions", "new", "aaaa")  # as many rows of the older model are seen again
    assert embedded.sentences.outdated(model.space) == ["aaaa"]
    add_sentences(embedded, model)
    embedded.additions.discard("captions", "old", "aaaa")
    captioned(embedded, "old", "a boat")  # by the same model, as many, but other text
    assert embedded.sentences.outdated(model.space) == ["aaaa"]
    add_sentences(embedded, model, "bbbb")
    assert embedded.sentences.outdated(model.space) == ["aaaa"]


def test_the_model_of_the_most_videos_is_the_librarys_and_of_several_the_one_used_last(embedded):
    first, second = ConceptModel("first"), ConceptModel("second")
    add_sentences(embedded, first)
    assert embedded.sentences.space() == first.space
    embedded.sentences.add_space(second.space, CHANCE)  # a run that ended before its first video
    assert embedded.sentences.space() == first.space
    add_sentences(embedded, second, "bbbb")
    assert embedded.sentences.space() == first.space  # else no line of the other video would be found
    add_sentences(embedded, second)
    assert embedded.sentences.space() == second.space
    assert embedded.sentences.space("first") == first.space == embedded.sentences.space(first.space.digest)
    assert {space.name for space in embedded.sentences.spaces()} == {"first", "second"}
    with pytest.raises(SpaceMismatch, match="got sentence model third"):
        embedded.sentences.space("third")
    remove_added(embedded, "sentences", second.space.digest, "bbbb")
    assert embedded.sentences.space() == first.space


@pytest.mark.slow
def test_a_query_is_embedded_by_the_model_that_the_library_carries(embedded, tmp_path):
    from kinodex.index.spaces.sentence_model import load_sentence_model

    model = load_sentence_model(str(small_bert(tmp_path / "bert")), "cpu")
    embedded.sentences.add_space(model.space, CHANCE)
    (line,) = carry_sentences(embedded, model)
    assert "carried" in line and carry_sentences(embedded, model) == []
    (tmp_path / "bert" / "model.safetensors").unlink()  # the folder is no longer needed
    opened = Library.open(embedded.uri)
    meaning = opened.sentences.meaning("a red boat")
    assert meaning is not None and meaning.space == model.space and meaning.least_cosine == pytest.approx(0.2)
    assert float(meaning.vector @ model.embed_texts(["a red boat"])[0]) == pytest.approx(1.0, abs=1e-4)
    (weights,) = (tmp_path / "library" / "towers" / model.space.digest).glob("text.safetensors")
    weights.write_bytes(weights.read_bytes()[:-9])
    with pytest.raises(TowersDamaged, match=r"`kinodex add sentences .* writes towers again"):
        Library.open(embedded.uri).sentences.meaning("a red boat")
    with embedded.lease(LEASE, "another"):
        (line,) = carry_sentences(embedded, model)
    assert "was not exported" in line
    (line,) = carry_sentences(embedded, model)
    assert "carried" in line and Library.open(embedded.uri).sentences.meaning("a red boat") is not None


@pytest.mark.slow
def test_a_model_that_is_damaged_since_is_said_and_another_is_tried(embedded, tmp_path, monkeypatch):
    from kinodex.index.spaces.sentence_model import load_sentence_model

    add_sentences(embedded, ConceptModel("/no/such/folder"), "aaaa")
    unnamed = Library.open(embedded.uri)
    assert unnamed.sentences.meaning("car") is None
    assert "the model '/no/such/folder', which was never named here" in unnamed.sentences.missing
    monkeypatch.setenv("KINODEX_MODELS", "/no/such/folder")
    assert embedded.sentences.meaning("car") is None
    assert "/no/such/folder cannot be had" in embedded.sentences.missing
    assert [hit.text for hit in embedded.search.words("car", k=1)] == ["we drove the car"]
    model = load_sentence_model(str(small_bert(tmp_path / "bert")), "cpu")
    add_sentences(embedded, model, "aaaa", "bbbb")
    weights = tmp_path / "bert" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:5000])
    assert embedded.sentences.meaning("car") is None
    assert "cannot load the sentence model" in embedded.sentences.missing
    weights.write_bytes(whole)
    other = load_sentence_model(str(small_bert(tmp_path / "other", seed=1)), "cpu")
    add_sentences(embedded, other)
    meaning = embedded.sentences.meaning("car")
    assert meaning is not None and meaning.space == other.space and embedded.sentences.missing == ""


# Lines of text that readers see: subtitles, and the newest speech, captions and text on screen.


def test_lines_are_those_of_the_newest_models_and_counts_agree(library):
    write(library, made("aaaa", 20, 1, lines=((4.0, 5.0, "a subtitle"), (1.0, 2.0, "an earlier one"))))
    write(library, made("bbbb", 20, 2))
    for model in ("old", "new"):
        add_stage(library, "captions", model, {"aaaa": [caption(0, f"caption by {model}")]})
        add_stage(library, "speech", model, {"aaaa": [spoken(3, f"said, heard by {model}")]})
        add_screen_text(library, "aaaa", [Line(3.0, 4.0, f"SIGN {model}"), Line(8.0, 9.0, "EXIT")], model)
    lines = library.sentences.lines("aaaa")
    assert [(line.source, line.text, line.model) for line in lines] == [
        ("speech", "an earlier one", None),
        ("speech", "a subtitle", None),
        ("speech", "said, heard by new", "new"),
        ("screen_text", "SIGN new", "new"),
        ("screen_text", "EXIT", "new"),
        ("captions", "caption by new", "new"),
    ]
    assert library.sentences.lines("bbbb") == []
    assert count_lines(library.tables, library.visible) == {
        ("aaaa", "speech", None): 2,
        ("aaaa", "speech", "new"): 1,
        ("aaaa", "screen_text", "new"): 2,
        ("aaaa", "captions", "new"): 1,
    }
    assert shown_models(library.visible, "captions", ["aaaa", "bbbb"]) == {"aaaa": (None, "new"), "bbbb": (None,)}
