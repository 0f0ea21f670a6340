"""Options in the text of a question, as evaluation kits write them, and videos that a line names."""

from __future__ import annotations

import pytest

from kinodex.web.openai_chat import read_options, take_videos

QUESTION = "What colour is the kite?"
OPTIONS = ("red", "light blue")


@pytest.mark.parametrize(
    "text",
    [
        "What colour is the kite?\nA. red\nB. light blue",
        "What colour is the kite?\n(A) red\n(B) light blue\n"
        "Answer with the option's letter from the given choices directly.",
        "Question: What colour is the kite?\nOptions:\nA) red\nB) light blue\n\nAnswer:",
        "Question: What colour is the kite?\nOptions:\nA. red\nB. light blue\n"
        "Please select the correct answer from the options above. \n",
        "Select the best answer to the following multiple-choice question based on the video. Respond with only the "
        "letter (A, B, C, or D) of the correct option.\nWhat colour is the kite?\nA. red\nB. light blue\n"
        "The best answer is:",
        "What colour is the kite?\n  A: red\n  B: light\nblue\nAnswer the question with A or B.",
        "What colour is the kite? (A) red (B) light blue",
        "What colour is the kite?\r\nA. red\r\nB. light blue\r\n",
    ],
)
def test_forms_of_kits(text: str) -> None:
    written = read_options(text)
    assert (written.text, written.options) == (QUESTION, OPTIONS)


@pytest.mark.parametrize(
    "text",
    [
        QUESTION,
        "What does the sign say?\nA. Miller",
        "Who is (A) in the picture?",
        "B. is written on the door, what stands on the wall?\nC. or D.",
        "I. What comes first?\nA.\nB.",
    ],
)
def test_a_text_without_options_is_a_question_as_it_is(text: str) -> None:
    written = read_options(text)
    assert (written.text, written.options) == (text, ())


def test_letters_that_do_not_follow_end_the_options() -> None:
    written = read_options("Which one?\nA. one\nB. two\nD. four")
    assert written.options == ("one", "two")
    assert written.text == "Which one?\nD. four"


def test_words_after_the_options_stay_with_the_question() -> None:
    written = read_options("Which one?\nA. one\nB. two\n\nThe man wears a hat.")
    assert (written.text, written.options) == ("Which one?\nThe man wears a hat.", ("one", "two"))


def test_a_question_that_reads_like_an_instruction_is_still_the_question() -> None:
    written = read_options("Choose the option that comes first.\nA. one\nB. two")
    assert (written.text, written.options) == ("Choose the option that comes first.", ("one", "two"))


def test_all_letters() -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    written = read_options("Which?\n" + "\n".join(f"{each}. the {each}" for each in letters))
    assert written.options == tuple(f"the {each}" for each in letters)


def test_lines_that_name_known_videos_are_taken() -> None:
    known = {"a walk", "sea, by night", "x.mp4"}.__contains__
    assert take_videos("video: a walk\nWho comes?", known) == ("Who comes?", ("a walk",))
    assert take_videos("Who comes?\nVideos: x.mp4, 'a walk'", known) == ("Who comes?", ("x.mp4", "a walk"))
    assert take_videos("Video: sea, by night\nWho?", known) == ("Who?", ("sea, by night",))
    for text in ("video: the second one\nWho comes?", "videos: a walk, another", "In which video: a walk or x.mp4?"):
        assert take_videos(text, known) == (text, ())


@pytest.mark.parametrize("order", ["Explain why.", "Please explain your choice", "Then describe the scene."])
def test_an_order_after_the_options_is_no_part_of_the_last(order: str) -> None:
    written = read_options(f"Does it rain?\nA. yes\nB. no\n{order}")
    assert (written.text, written.options) == (f"Does it rain?\n{order}", ("yes", "no"))


def test_an_option_that_has_ended_does_not_go_on() -> None:
    written = read_options("Which?\nA. He sits.\nB. He runs.\nHe is in the yard.")
    assert (written.text, written.options) == ("Which?\nHe is in the yard.", ("He sits.", "He runs."))


@pytest.mark.parametrize("talk", ["A: Hello.\nB: Hi.\nA: Are you well?", "A: Hello.\nB: Hi.\nA: Well?\nB: Yes."])
def test_a_dialogue_is_no_list_of_options(talk: str) -> None:
    text = f"Who says this?\n{talk}"
    assert (read_options(text).text, read_options(text).options) == (text, ())
