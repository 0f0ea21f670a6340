"""Sound of films in windows with true times, and what a Whisper model makes of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from kinodex.pipeline.errors import WrongModel
from kinodex.pipeline.models.audio import RATE_HZ, Sound, sound_windows
from kinodex.pipeline.models.speech import LONGEST_LINE_S, Recogniser, load_recogniser
from tests.support.models import stage_models as stage_kit
from tests.support.models.stage_models import beeps, tiny_film

PAUSES_S = (4.0, 24.0, 27.0, 49.0)


@pytest.fixture(scope="module")
def long_film(tmp_path_factory) -> Path:
    """A minute and ten seconds; the second half of the last pause may end a window too."""
    return tiny_film(tmp_path_factory.mktemp("films") / "long.mp4", 2, 1, beeps(70.0, PAUSES_S))


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    return str(stage_kit.whisper(tmp_path_factory.mktemp("models") / "whisper"))


@pytest.fixture(scope="module")
def recogniser(model) -> Recogniser:
    return load_recogniser(model, "cpu")


def test_lines_lie_in_their_windows_in_the_films_own_time(recogniser, long_film):
    windows = list(sound_windows(long_film, "long"))
    lines = list(recogniser.transcribe(windows))
    assert lines
    assert [line.start_s for line in lines] == sorted(line.start_s for line in lines)
    for line in lines:
        assert any(w.start_s <= line.start_s < line.end_s <= w.end_s + 1e-6 for w in windows)
        assert set(line.text.split()) <= set(stage_kit.WORDS.split())


def test_a_later_start_moves_the_lines_and_nothing_else(recogniser):
    sound = beeps(5.0)
    now, later = (list(recogniser.transcribe([Sound(start_s, sound.samples)])) for start_s in (0.0, 100.0))
    assert now
    moved = [(round(line.start_s + 100, 6), round(line.end_s + 100, 6), line.text) for line in now]
    assert moved == [(round(line.start_s, 6), round(line.end_s, 6), line.text) for line in later]


def test_windows_together_are_heard_as_each_alone(model, long_film):
    windows = list(sound_windows(long_film, "long"))
    for language in ("en", None):
        one_by_one = list(load_recogniser(model, "cpu", language, batch=1).transcribe(windows))
        together = list(load_recogniser(model, "cpu", language, batch=4).transcribe(windows))
        assert one_by_one == together


def test_silence_is_not_shown_to_the_model(recogniser):
    silence = Sound(0.0, np.full(5 * RATE_HZ, 1e-5, np.float32))
    assert list(recogniser.transcribe([silence])) == []


def test_lines_are_made_of_words_with_their_times(recogniser, long_film):
    windows = list(sound_windows(long_film, "long"))
    lines = list(recogniser.transcribe(windows))
    assert any(len(line.words) > 1 for line in lines)
    for line in lines:
        assert line.text == " ".join(word.text for word in line.words)
        assert (line.start_s, line.end_s) == (line.words[0].start_s, line.words[-1].end_s)
        assert line.end_s - line.start_s <= LONGEST_LINE_S
        starts = [word.start_s for word in line.words]
        assert starts == sorted(starts)
        assert all(word.start_s < word.end_s <= windows[-1].end_s for word in line.words)


def test_a_model_that_knows_no_times_of_words_has_lines_without(model, tmp_path):
    folder = Path(shutil.copytree(model, tmp_path / "old"))
    settings = json.loads((folder / "generation_config.json").read_text())
    del settings["alignment_heads"]
    (folder / "generation_config.json").write_text(json.dumps(settings))
    sounds = [Sound(0.0, beeps(2.0).samples)]
    old = list(load_recogniser(str(folder), "cpu").transcribe(sounds))
    new = list(load_recogniser(model, "cpu").transcribe(sounds))
    assert {line.words for line in old} == {()}
    assert " ".join(line.text for line in old) == " ".join(line.text for line in new)


def test_the_model_is_as_quick_after_it_has_told_the_times_of_words(recogniser):
    before = recogniser._loaded.model.config._attn_implementation
    list(recogniser.transcribe([beeps(2.0)]))
    assert recogniser._loaded.model.config._attn_implementation == before


def test_one_language_a_film_found_out_or_given(model, recogniser):
    sounds = [Sound(float(n), beeps(2.0).samples) for n in range(6)]
    assert len({line.language for line in recogniser.transcribe(sounds)}) == 1
    german = load_recogniser(model, "cpu", "de")
    assert {line.language for line in german.transcribe(sounds)} == {"de"}
    with pytest.raises(WrongModel, match=r"got language 'tlh', which .* does not know; it knows de, en"):
        load_recogniser(model, "cpu", "tlh")


def test_a_model_that_repeats_itself_is_not_believed(model, tmp_path):
    """A model that knows one word alone, and says it until there is no room left."""
    folder = Path(shutil.copytree(model, tmp_path / "parrot"))
    said = load_recogniser(model, "cpu")._loaded.processor.tokenizer
    file = folder / "generation_config.json"
    settings = json.loads(file.read_text())
    words = {number for name, number in said.get_vocab().items() if name.startswith("\u0120") and name != "\u0120kite"}
    times = {number for name, number in said.get_vocab().items() if name.startswith("<|") and name != "<|0.00|>"}
    settings["suppress_tokens"] = sorted(words | times | set(settings["suppress_tokens"]))
    file.write_text(json.dumps(settings))
    parrot = load_recogniser(str(folder), "cpu", "en")
    assert list(parrot.transcribe([Sound(0.0, beeps(2.0).samples)])) == []


def test_models_that_are_no_whisper(tmp_path):
    with pytest.raises(WrongModel, match="no model for AutoModelForSpeechSeq2Seq"):
        load_recogniser(str(stage_kit.llava(tmp_path / "llava")), "cpu")
