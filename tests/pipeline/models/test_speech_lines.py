"""Lines of words: whole sentences, cut in pauses, never longer than a subtitle stands."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kinodex.pipeline.models.speech import LONGEST_LINE_S, Word, cut_lines, tidy_words


def spoken(text: str, seconds: float = 0.4, pauses: dict[str, float] | None = None) -> list[Word]:
    """Words one after the other, with pauses after some."""
    words, at_s = [], 0.0
    for word in text.split():
        words.append(Word(word, round(at_s, 3), round(at_s + seconds, 3)))
        at_s += seconds + (pauses or {}).get(word, 0.0)
    return words


def texts(words: list[Word], breaks: set[int] | None = None) -> list[str]:
    return [" ".join(word.text for word in line) for line in cut_lines(words, breaks or set())]


def test_lines_end_with_sentences_and_not_with_titles_and_initials():
    said = spoken('Is it Dr. Who? J. R. said: "No." Then he left... Really')
    assert texts(said) == ["Is it Dr. Who?", 'J. R. said: "No."', "Then he left...", "Really"]


def test_lines_end_in_pauses():
    assert texts(spoken("one two three four", pauses={"two": 0.8, "three": 0.5})) == ["one two", "three four"]


def test_a_long_sentence_is_cut_at_a_comma_or_pause_and_no_line_is_long():
    said = spoken(" ".join(f"w{n}" for n in range(12)) + ", " + " ".join(f"v{n}" for n in range(40)))
    said = [Word("w11,", *word[1:]) if word.text == "w11" else word for word in said if word.text != ","]
    lines = list(cut_lines(said))
    assert lines[0][-1].text == "w11,"
    assert all(line[-1].end_s - line[0].start_s <= LONGEST_LINE_S for line in lines)
    assert [word for line in lines for word in line] == said
    assert all(line[-1].end_s - line[0].start_s >= 1.0 for line in lines)


def test_where_the_model_began_a_part_is_a_good_place_to_cut():
    said = spoken(" ".join(f"w{n}" for n in range(24)))
    assert texts(said, {0, 13})[0].split()[-1] == "w12"


def test_one_word_that_lasts_is_one_line():
    assert texts([Word("oooh", 0.0, 20.0), Word("yes", 20.0, 20.2)]) == ["oooh", "yes"]


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


def test_a_word_without_a_time_has_a_little_one():
    (word,) = tidy_words([Word("a", 2.0, 2.0)], None, 0.0, 5.0)
    assert 2.0 < word.end_s <= 2.1


def test_words_follow_each_other_though_the_model_gives_some_no_time():
    said = [
        ("A", 1.0, 1.0),
        ("long", 1.0, 1.01),
        ("way", 1.01, 1.5),
        *((word, 3.0, 3.0) for word in ["you", "see", "it"]),
    ]
    tidy = tidy_words([Word(*each) for each in said], None, 0.0, 3.0)
    assert all(0.0 <= word.start_s < word.end_s <= 3.0 for word in tidy)
    times = [(round(word.start_s, 2), round(word.end_s, 2)) for word in tidy]
    assert times[:3] == [(1.0, 1.02), (1.02, 1.04), (1.04, 1.5)]
    assert times == sorted(times)


@pytest.mark.parametrize(
    "said", ["من أنت؟ أنا هنا", "वह कौन है? मैं हूँ", "तू चल। मैं आया", "તે ગયો॥ હું", "وہ گیا۔ میں ہوں", "Ո՞վ է։ Ես"]
)
def test_sentences_end_in_many_scripts(said):
    assert len(texts(spoken(said))) == 2
