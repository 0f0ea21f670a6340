"""The blind control: one call without a frame, and an answer without evidence."""

from __future__ import annotations

import asyncio

from kinodex.agent.ask import ask
from kinodex.agent.library_videos import LibraryVideos
from kinodex.agent.protocol import Question
from kinodex.agent.requests.answer import Guess
from kinodex.index.library import Library
from tests.support.libraries.agent_library import ScriptedModel, environment_of

QUESTION = Question("What colour is the kite?", ("blue", "red"))


def test_it_guesses_from_the_question_alone(words_library: Library) -> None:
    environment = environment_of(words_library, "film")
    model = ScriptedModel(lambda request: {"option": "B", "evidence": [1]})
    answer = asyncio.run(ask(QUESTION, environment, model, agent="blind"))
    (request,) = model.asked(Guess)
    assert (request.frames, request.videos) == ((), environment.videos)
    assert (answer.status, answer.text, answer.evidence) == ("answered", "red", ())
    assert (answer.ledger.frames, answer.ledger.calls, answer.rounds) == (0, 1, 1)
    assert isinstance(environment.source, LibraryVideos)
    assert environment.source._in_memory == {}
