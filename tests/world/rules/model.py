"""The built-in model: a few rules that answer typed requests from the library's own frame embeddings.

It turns a question into statements and compares them with the frames that a request shows, in the library's space, or
with the words of notes; in libraries in the drawn space it can also describe frames. A weak but real baseline:
perception is the space's, and the reasoning is a few rules. It sees no frame that was not shown to it. A match is
measured against the matches of the same statement with the whole video (`Environment.deviations`), which any search of
the index could see. It refuses what needs language (plans, thoughts, tool calls, summaries, guesses), and does not
imitate it badly.
"""

from __future__ import annotations

import time
import zlib
from typing import Any

from kinodex.agent.protocol.exchange import Exchange
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.request import Request
from kinodex.agent.similarity.model import cite_by_number
from kinodex.agent.videos.environment import Environment
from tests.world.rules import agents as agents  # registers the rules of each agent's own requests
from tests.world.rules.frames import match_frames
from tests.world.rules.rules import rule
from tests.world.rules.statements import cloze_statements


class RuleBasedModel:
    """A model that answers from the environment's vectors; its replies cost no tokens.

    Raises `NeedsLanguage` for what it cannot answer.
    """

    name = "rules"
    has_language = True

    def __init__(self, environment: Environment) -> None:
        self.environment = environment

    async def ask(self, request: Request[R]) -> Exchange[R]:
        started = time.perf_counter()
        reply = request.Reply.model_validate(cite_by_number(request, rule(request, self.environment)))
        if reply.declines and request.declining == "never":
            reply = request.Reply.model_validate(_choose_option(request, self.environment))
        return Exchange(reply, None, raw=reply.model_dump_json(), seconds=time.perf_counter() - started)


def _choose_option(request: Request[Any], environment: Environment) -> dict[str, Any]:
    """Choose the option that the frames show best though it is not visible, without frames one by chance."""
    question = getattr(request, "question", None)
    if not isinstance(question, Question) or not question.options:
        return {"action": "insufficient_evidence"}
    at = zlib.crc32(question.text.encode()) % len(question.options)
    if request.frames:
        at = int(match_frames(environment, cloze_statements(question).options, request.frames).max(0).argmax())
    return {"action": "answer", "option": question.lettered[at][0], "answer": None, "evidence": []}
