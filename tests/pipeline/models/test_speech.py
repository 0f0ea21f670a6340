"""Speech of a film by a Whisper model: languages, words with their times, and lines of them."""

from __future__ import annotations

import json
import shutil
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kinodex.pipeline.errors import WrongModel
from kinodex.pipeline.models.audio import Sound, sound_windows
from kinodex.pipeline.models.speech.languages import follow_languages
from kinodex.pipeline.models.speech.lines import LONGEST_LINE_S, cut_lines, tidy_words
from kinodex.pipeline.models.speech.loops import is_loop
from kinodex.pipeline.models.speech.recogniser import Recogniser, SpeechLine, load_recogniser
from kinodex.pipeline.models.speech.word_times import Word, path_times, words_of
from tests.support.models import stage_models as stage_kit
from tests.support.models.stage_models import beeps
from tests.support.scripts import SCRIPTS


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    return str(stage_kit.whisper(tmp_path_factory.mktemp("models") / "whisper"))


@pytest.fixture(scope="module")
def recogniser(model) -> Recogniser:
    return load_recogniser(model, "cpu")


def lines_of(recogniser: Recogniser, windows: list[Sound]) -> list[SpeechLine]:
    return [line for _, lines in recogniser.transcribe_windows(windows) for line in lines]


@pytest.mark.slow
def test_lines_lie_in_their_windows_in_the_films_own_time_and_are_made_of_words(model, recogniser, long_film):
    windows = list(sound_windows(long_film, "long"))
    lines = lines_of(recogniser, windows)
    assert any(len(line.words) > 1 for line in lines)
    assert [line.start_s for line in lines] == sorted(line.start_s for line in lines)
    for line in lines:
        assert any(w.start_s <= line.start_s < line.end_s <= w.end_s + 1e-6 for w in windows)
        assert set(line.text.split()) <= set(stage_kit.WORDS.split())
        assert line.text == " ".join(word.text for word in line.words)
        assert (line.start_s, line.end_s) == (line.words[0].start_s, line.words[-1].end_s)
        assert line.end_s - line.start_s <= LONGEST_LINE_S
        starts = [word.start_s for word in line.words]
        assert starts == sorted(starts)
        assert all(word.start_s < word.end_s <= windows[-1].end_s for word in line.words)
    assert lines_of(load_recogniser(model, "cpu", batch=1), windows) == lines, "together as each alone"


@pytest.mark.slow
def test_one_language_a_film_found_out_or_given(model, recogniser):
    sounds = [Sound(float(n), beeps(2.0).samples) for n in range(6)]
    assert len({line.language for line in lines_of(recogniser, sounds)}) == 1
    german = load_recogniser(model, "cpu", "de")
    assert {line.language for line in lines_of(german, sounds)} == {"de"}
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
    assert lines_of(parrot, [Sound(0.0, beeps(2.0).samples)]) == []


ENGLISH, GERMAN = 0, 1


def windows(*shares: float) -> NDArray[np.float64]:
    """Log-probabilities of windows of which English has these shares, German the others."""
    logs: NDArray[np.float64] = np.log(np.array([[share, 1 - share] for share in shares]))
    return logs


def chosen(*shares: float, seconds: float = 25.0) -> list[int]:
    return follow_languages(windows(*shares), np.full(len(shares), seconds), None)[0]


def test_one_language_for_a_video_unless_there_is_evidence_of_a_change():
    assert chosen(0.99, 0.9, 0.3, 0.1, 0.95, 0.99) == [ENGLISH] * 6
    assert chosen(0.98, 0.99, 0.97, 0.02, 0.01, 0.05, 0.9) == [ENGLISH] * 3 + [GERMAN] * 3 + [GERMAN]
    assert chosen(0.999, 0.999, 0.001, 0.001, 0.999, 0.999) == [ENGLISH] * 2 + [GERMAN] * 2 + [ENGLISH] * 2
    assert chosen(0.3, 0.99, 0.99) == [ENGLISH] * 3, "the first is judged with those after it"
    short = np.array([25.0, 25.0, 0.5, 25.0])
    assert follow_languages(windows(0.99, 0.99, 0.001, 0.99), short, None)[0] == [ENGLISH] * 4, "a few words are little"
    _, standing = follow_languages(windows(0.99, 0.99), np.full(2, 25.0), None)
    assert follow_languages(windows(0.2), np.full(1, 25.0), standing)[0] == [ENGLISH]
    assert follow_languages(windows(0.2), np.full(1, 25.0), None)[0] == [GERMAN]


def test_loops_are_known_by_how_well_they_compress_and_songs_and_lists_are_none():
    for loop in (
        "late late late late late late late late late",  # Whisper tiny.en, of a talk in an echoing room
        "during the late late late late late late late late late late late",
        "I'm going to go to the next video. " * 6,
    ):
        assert is_loop(loop), loop
    for said in (
        "",
        "Goal! Goal! Goal! Goal! Goal!",
        "la la la la la la la la la la",
        "Row, row, row your boat, gently down the stream. Merrily, merrily, merrily, merrily, life is but a dream.",
        "Thank you. Thank you. Thank you very much. Thank you. Thank you.",
        "We simply found that above this threshold the quality of the image text matching seems to be pretty good.",
    ):
        assert not is_loop(said), said
    for script in SCRIPTS:  # UTF-8 has three bytes for a character of Hindi, Tamil or Georgian, which compress well
        assert not is_loop(" ".join(script.lines)), script
        assert is_loop(f"{script.lines[0]} " * 8), script


def spoken(text: str, seconds: float = 0.4, pauses: dict[str, float] | None = None) -> list[Word]:
    """Words one after the other, with pauses after some."""
    words, at_s = [], 0.0
    for word in text.split():
        words.append(Word(word, round(at_s, 3), round(at_s + seconds, 3)))
        at_s += seconds + (pauses or {}).get(word, 0.0)
    return words


def texts(words: list[Word], breaks: set[int] | None = None) -> list[str]:
    return [" ".join(word.text for word in line) for line in cut_lines(words, breaks or set())]


def test_lines_end_with_sentences_in_pauses_and_where_the_model_began_a_part():
    said = spoken('Is it Dr. Who? J. R. said: "No." Then he left... Really')
    assert texts(said) == ["Is it Dr. Who?", 'J. R. said: "No."', "Then he left...", "Really"]
    assert texts(spoken("one two three four", pauses={"two": 0.8, "three": 0.5})) == ["one two", "three four"]
    assert texts(spoken(" ".join(f"w{n}" for n in range(24))), {0, 13})[0].split()[-1] == "w12"
    assert texts([Word("oooh", 0.0, 20.0), Word("yes", 20.0, 20.2)]) == ["oooh", "yes"]
    for sentences in ("من أنت؟ أنا هنا", "वह कौन है? मैं हूँ", "तू चल। मैं आया", "તે ગયો॥ હું", "وہ گیا۔ میں ہوں", "Ո՞վ է։ Ես"):
        assert len(texts(spoken(sentences))) == 2, sentences


def test_words_are_moved_out_of_pauses_and_last_no_longer_than_they_are_said():
    words = [Word("So", 0.0, 6.5), Word("it", 6.5, 6.7), Word("was.", 6.7, 9.9), Word("Yes", 9.9, 15.2)]
    tidy = tidy_words(words, [(6.0, 7.2), (14.8, 16.0)], 0.0, 15.0)
    assert [(word.text, round(word.start_s, 2), round(word.end_s, 2)) for word in tidy] == [
        ("So", 6.0, 6.5),
        ("it", 6.5, 6.7),
        ("was.", 6.7, 7.2),
        ("Yes", 14.8, 15.0),
    ]
    unheard = tidy_words(words, None, 0.0, 15.0)
    assert [(word.start_s, word.end_s) for word in unheard][:3] == [(5.5, 6.5), (6.5, 6.7), (6.7, 7.7)]
    assert all(before.start_s <= after.start_s for before, after in pairwise(unheard))


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (6, 1), (5, 9), (9, 5), (12, 40)])
def test_no_path_is_better_than_the_one_that_was_found(shape):
    likeness = np.random.default_rng(shape[0]).normal(size=shape)

    @cache
    def best(row: int, step: int) -> float:
        if (row, step) == (0, 0):
            return float(likeness[0, 0])
        before = [(row - 1, step - 1), (row - 1, step), (row, step - 1)]
        return float(likeness[row, step]) + max(best(*each) for each in before if min(each) >= 0)

    starts = path_times(likeness).astype(int)
    assert starts[0] == 0
    assert (np.diff(starts) >= 0).all()
    ends = [*starts[1:], shape[1]]
    found = 0.0
    for row, (first, end) in enumerate(zip(starts, ends, strict=True)):
        own = likeness[row, first : max(end, first + 1)].sum()
        # the step where the next row begins may be shared by both
        shared = likeness[row, end] if first < end < shape[1] else 0.0
        found += own + max(shared, 0.0)
    assert found >= best(shape[0] - 1, shape[1] - 1) - 1e-9


def decoder(*texts: bytes):
    return lambda tokens, skip_special_tokens: b"".join(texts[token] for token in tokens).decode(errors="replace")


def words(*texts: bytes, language: str = "en") -> list[tuple[str, float, float]]:
    times = [float(number) for number in range(len(texts) + 1)]
    found = words_of(range(len(texts)), times, decoder(*texts), language)
    return [(word.text, word.start_s, word.end_s) for word in found]


def test_tokens_become_words_and_marks_belong_to_the_word_before():
    assert words(b" We", b"'re", b" on", b" Green", b"belt", b",", b" now", b"...") == [
        ("We're", 0, 2), ("on", 2, 3), ("Greenbelt,", 3, 5), ("now...", 6, 7),
    ]  # fmt: skip
    kite, accent = "凧".encode(), "é".encode()  # a character of several tokens is not cut
    assert words(kite[:1], kite[1:2], kite[2:], "が".encode(), "。".encode(), language="ja") == [
        ("凧", 0, 3), ("が。", 3, 4),
    ]  # fmt: skip
    assert words(b" caf", accent[:1], accent[1:], b" au") == [("café", 0, 3), ("au", 3, 4)]
    assert words(" हाथ".encode(), "ी".encode(), "।".encode(), language="hi") == [("हाथी।", 0.0, 2.0)], "a vowel sign"
    assert words() == words(b" ") == []
