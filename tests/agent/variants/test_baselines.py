"""The controls: equally spaced frames, the question alone, an option by chance."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from kinodex.agent.answer import Answer
from kinodex.agent.ask import ask
from kinodex.agent.environment import Environment
from kinodex.agent.models.rules import RuleBasedModel
from kinodex.agent.protocol import Models, Question
from kinodex.agent.requests.answer import AnswerFrames
from kinodex.agent.trace import Event
from kinodex.agent.variants.baselines import UniformParameters
from kinodex.index.library import Library
from tests.support.libraries.agent_library import (
    ScriptedModel,
    embed_words,
    environment_of,
    film,
    make_library,
)
from tests.support.libraries.text_library import text_video_id
from tests.support.runs.kite_runs import kite_environment
from tests.support.screen_text.lines import Line, add_screen_text

QUESTION = Question("What colour is the kite?", ("blue", "red"))


def asked(
    environment: Environment, question: Question, model: Models, agent: str, parameters: Any = None
) -> tuple[Answer, list[Event]]:
    events: list[Event] = []
    answer = asyncio.run(ask(question, environment, model, agent=agent, parameters=parameters, on_event=events.append))
    return answer, events


def answer_a(request: Any) -> Any:
    return {"option": "A", "answer": None, "evidence": [len(request.frames) + 1] if request.notes else []}


def test_uniform_is_given_what_is_said_at_its_frames_times(words_library):
    model = ScriptedModel(answer_a)
    answer, _ = asked(environment_of(words_library, "film"), QUESTION, model, "uniform", UniformParameters(frames=9))
    [request] = model.asked(AnswerFrames)
    assert [round(frame.time_s) for frame in request.frames] == [6, 12, 18, 24, 30, 36, 42, 48, 54]
    assert [note.text for note in request.notes] == ["said at twelve"]
    assert [(part.start_s, part.end_s) for part in answer.evidence] == [(11.0, 13.0)]
    hidden = ScriptedModel(answer_a)
    asked(
        environment_of(words_library, "film", subtitles=False), QUESTION, hidden, "uniform", UniformParameters(frames=9)
    )
    assert hidden.asked(AnswerFrames)[0].notes == ()

    environment = environment_of(words_library, "film")
    question = Question("Which of these appears?", ("velvet", "said at twelve"))
    answer, _ = asked(environment, question, RuleBasedModel(environment), "uniform", UniformParameters(frames=9))
    assert (answer.text, [part.start_s for part in answer.evidence]) == ("said at twelve", [11.0])


def test_uniform_shows_what_it_can_and_reads_the_rest(words_library):
    model = ScriptedModel(answer_a)
    asked(
        environment_of(words_library, "film", "dinner", subtitles=False),
        QUESTION,
        model,
        "uniform",
        UniformParameters(frames=6),
    )
    [request] = model.asked(AnswerFrames)
    assert {frame.video_id for frame in request.frames} == {words_library.video("film").video_id}
    assert {note.video_id for note in request.notes} == {text_video_id("dinner")}
    assert len(request.frames) + len(request.notes) == 6


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return kite_environment(tmp_path_factory.mktemp("run"))


def test_text_on_screen_at_its_frames_is_read_cited_and_counted(tmp_path):
    library = make_library(tmp_path / "library", {"film": film(1, 60)})
    lines = [Line(13.0, 17.0, "ECHO"), Line(29.0, 33.0, "MAPLE"), Line(44.5, 44.9, "BETWEEN FRAMES")]
    add_screen_text(library, library.video("film").video_id, lines)
    environment = environment_of(library)
    question = Question("Which word does the title card show?", ("RIVER", "MAPLE", "SUMMER"))
    answer, _ = asked(environment, question, RuleBasedModel(environment), "uniform", UniformParameters(frames=9))
    assert (answer.text, answer.evidence_cited) == ("MAPLE", True)
    assert [(part.start_s, part.end_s) for part in answer.evidence] == [(29.0, 33.0)]
    assert answer.ledger.screen_lines == 1
    model = ScriptedModel(answer_a)
    hidden = Environment.of(library, library.videos(), embed_words, screen_text=False)
    unread, _ = asked(hidden, question, model, "uniform", UniformParameters(frames=9))
    assert model.asked(AnswerFrames)[0].notes == ()
    assert unread.ledger.screen_lines == 0


def choose(environment: Environment, question: Question, seed: int = 0) -> Answer:
    def unasked(request: Any) -> Any:
        pytest.fail("a model was asked")

    return asyncio.run(ask(question, environment, ScriptedModel(unasked), agent="random", parameters={"seed": seed}))


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
