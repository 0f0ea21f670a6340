"""The controls: equally spaced frames, the question alone, an option by chance."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kinodex.agent.answer import Answer
from kinodex.agent.protocol.question import Question
from kinodex.agent.requests.answer import AnswerFrames, AnswerNotes
from kinodex.agent.videos.environment import Environment
from kinodex.index.library import Library
from tests.support.libraries.agent_library import embed_words, environment_of, film, make_library
from tests.support.libraries.text_library import text_video_id
from tests.support.runs.kite_runs import Run, asked
from tests.support.screen_text.lines import Line, add_screen_text
from tests.world.rules.model import RuleBasedModel

QUESTION = Question("What colour is the kite?", ("blue", "red"))


def answer_a(request: Any) -> Any:
    return {"option": "A", "answer": None, "evidence": [len(request.frames) + 1] if request.notes else []}


def uniform(environment: Environment, script: Any, question: Question = QUESTION, frames: int = 9) -> Run:
    return asked(environment, script, "uniform", question, settings={"frames": frames})


def test_uniform_is_given_what_is_said_at_its_frames_times(words_library):
    environment = environment_of(words_library, "film")
    run = uniform(environment, answer_a)
    [request] = run.asked(AnswerFrames)
    assert [round(frame.time_s) for frame in request.frames] == [6, 12, 18, 24, 30, 36, 42, 48, 54]
    assert [note.text for note in request.notes] == ["said at twelve"]
    assert run.spans == [(11.0, 13.0)]
    hidden = uniform(environment_of(words_library, "film", speech=False), answer_a)
    assert hidden.asked(AnswerFrames)[0].notes == ()
    question = Question("Which of these appears?", ("velvet", "said at twelve"))
    run = uniform(environment, RuleBasedModel(environment), question)
    assert (run.answer.text, run.spans[0][0]) == ("said at twelve", 11.0)
    run = uniform(environment_of(words_library, "film", "dinner", speech=False), answer_a, frames=6)
    [request] = run.asked(AnswerFrames)
    assert {frame.video_id for frame in request.frames} == {words_library.video("film").video_id}
    assert {note.video_id for note in request.notes} == {text_video_id("dinner")}
    assert len(request.frames) + len(request.notes) == 6, "it shows what it can and reads the rest"
    read = {"option": "A", "answer": None, "evidence": [1]}
    run = uniform(environment_of(words_library, "dinner", speech=False), lambda _: read, frames=3)
    assert [len(each.notes) for each in run.asked(AnswerNotes)] == [3]


def test_text_on_screen_at_its_frames_is_read_cited_and_counted(tmp_path):
    library = make_library(tmp_path / "library", {"film": film(1, 60)})
    lines = [Line(13.0, 17.0, "ECHO"), Line(29.0, 33.0, "MAPLE"), Line(44.5, 44.9, "BETWEEN FRAMES")]
    add_screen_text(library, library.video("film").video_id, lines)
    environment = environment_of(library)
    question = Question("Which word does the title card show?", ("RIVER", "MAPLE", "SUMMER"))
    run = uniform(environment, RuleBasedModel(environment), question)
    assert (run.answer.text, run.answer.evidence_cited, run.answer.ledger.screen_lines) == ("MAPLE", True, 1)
    assert run.spans == [(29.0, 33.0)]
    unread = uniform(Environment.of(library, library.videos(), embed_words, hide=["screen_text"]), answer_a, question)
    assert (unread.asked(AnswerFrames)[0].notes, unread.answer.ledger.screen_lines) == ((), 0)


def choose(environment: Environment, question: Question, seed: int = 0) -> Answer:
    return asked(
        environment, lambda _: pytest.fail("a model was asked"), "random", question, settings={"seed": seed}
    ).answer


def test_options_are_chosen_by_seed_videos_and_question_all_as_likely(words_library: Library) -> None:
    environment, other = environment_of(words_library, "film"), environment_of(words_library, "told")
    questions = [Question(f"Which, in number {number}?", ("a", "b", "c", "d")) for number in range(200)]
    answers = [choose(environment, question) for question in questions]
    counts = Counter(answer.letter for answer in answers)
    assert set(counts) == set("ABCD") and min(counts.values()) > 30
    assert {(answer.status, answer.ledger.calls, answer.evidence) for answer in answers} == {("answered", 0, ())}
    question = Question("Which?", tuple("abcdefghijklmnopqrstuvwxyz"))
    first = choose(environment, question).option
    assert choose(environment, question).option == first
    different = {choose(environment, question, seed).option for seed in range(1, 5)} | {choose(other, question).option}
    assert len(different | {first}) > 2
    answer = choose(environment, Question("What happens?"))
    assert (answer.status, answer.text, answer.reason) == ("insufficient_evidence", None, "no options to choose from")
