"""The built-in model on notes in general English: options weighed by their words, and when it still abstains."""

from __future__ import annotations

import itertools

import pytest

from kinodex.agent.models import rules
from kinodex.agent.models.rules_words import Verdict, is_general, stems
from kinodex.agent.protocol import Note, Question

CAPTIONS = (
    "C picks a plate from the sink",
    "C washes the plate with a sponge",
    "C rinses the plate",
    "C opens the tap",
    "C washes a spoon with the sponge",
)
THEME = Question("What is C busy with?", ("C is painting a wall.", "C is washing plates.", "C is opening doors."))


def notes(*texts: str, confidence: float | None = None) -> list[Note]:
    return [Note("v", float(at), at + 1.0, "caption", text, confidence) for at, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("one", "other"),
    [("washing", "washes"), ("cleaned", "cleaning"), ("cutting", "cuts"), ("bake", "baking"), ("plates", "plate")],
)
def test_the_forms_of_a_word_are_one(one, other):
    assert stems(one) == stems(other)


@pytest.mark.parametrize(("one", "other"), [("glass", "glance"), ("bus", "bush"), ("is it", "the of")])
def test_other_words_stay_apart(one, other):
    assert not stems(one) & stems(other)


def test_the_option_that_the_notes_hold_most_of_is_chosen_with_the_notes_that_hold_it():
    verdict = rules.judge(THEME, notes(*CAPTIONS))
    assert (verdict.choice, verdict.evidence) == (1, (1, 2, 3, 5))
    assert 0 < verdict.lead < verdict.score
    assert not rules.is_settled(verdict)


def test_the_choice_does_not_hang_on_the_order_of_notes_or_options():
    for order in itertools.islice(itertools.permutations(CAPTIONS), 0, 120, 7):
        for options in itertools.permutations(THEME.options):
            verdict = rules.judge(Question(THEME.text, options), notes(*order))
            assert verdict.choice == options.index("C is washing plates.")


def test_words_that_few_notes_hold_weigh_more():
    question = Question("Who plays?", ("a man with a violin", "a woman with a trumpet"))
    verdict = rules.judge(question, notes(*["the man waits"] * 8, "the violin starts"))
    assert verdict.choice == 0
    assert 9 in verdict.evidence


def test_of_options_that_are_held_alike_the_first_is_taken():
    verdict = rules.judge(Question("Which?", ("a phone", "a violin")), notes("he holds a phone", "he holds a violin"))
    assert (verdict.choice, verdict.lead, verdict.evidence) == (0, 0.0, (1,))


def test_what_is_unsure_counts_less():
    doubtful, sure = notes("she paints walls", confidence=0.2), notes("", "she repairs engines", confidence=0.9)[1:]
    verdict = rules.judge(
        Question("What happens?", ("she paints walls daily", "she repairs engines daily")), [*doubtful, *sure]
    )
    assert verdict.choice == 1


def test_it_abstains_only_where_no_word_of_any_option_is_held_and_without_options():
    elsewhere = Question("What is bought?", ("insurance", "groceries"))
    assert rules.judge(elsewhere, notes(*CAPTIONS)) == Verdict()
    assert rules.judge(elsewhere, []) == Verdict()
    assert rules.judge(Question("What is C busy with?"), notes(*CAPTIONS)).choice is None


def test_in_the_sketch_world_it_goes_by_statements_alone():
    sketch = notes("a red boat at sea by day", "two blue kites in the desert at night")
    assert not is_general(sketch)
    assert rules.judge(Question("What colour is the cup?", ("red", "blue")), sketch).choice is None
    assert is_general(notes(*CAPTIONS))


def test_notes_are_relevant_by_how_much_of_the_question_they_hold():
    levels = rules.relevances(THEME, notes(*CAPTIONS, "the phone rings"))
    assert levels[1] == 3
    assert levels[-1] == 1
