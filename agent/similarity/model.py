"""The model `similarity`: it answers requests from the library's own vectors and lines, and costs nothing.

Of a question with options it chooses the one that fits the frames best that a request shows (zero-shot CLIP, Radford
et al. 2021, section 3.1.2; of the best frames only, as in the atemporal probe, Buch et al. 2022), or the one that a
line states. Of an open question it names the frames and lines that fit best, and writes no sentence. It sees nothing
that was not shown to it, but for the usual match of the same text with the whole video, by which a match is measured.
"""

from __future__ import annotations

import time
import zlib
from itertools import chain
from typing import Any

from kinodex.agent.protocol.exchange import Exchange
from kinodex.agent.protocol.frames import citation_numbers
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.reply import INSUFFICIENT, R
from kinodex.agent.protocol.request import Request
from kinodex.agent.similarity.replies import Values, reply_to
from kinodex.agent.videos.environment import Environment


class SimilarityModel:
    """A model that answers from the environment's vectors; its replies cost no tokens.

    Raises `NeedsLanguage` for what it cannot answer.
    """

    name = "similarity"
    has_language = False

    def __init__(self, environment: Environment) -> None:
        self.environment = environment

    def reply(self, request: Request[R]) -> R:
        """Return the reply to a request."""
        reply = request.Reply.model_validate(cite_by_number(request, reply_to(request, self.environment)))
        if reply.declines and request.declining == "never":
            reply = request.Reply.model_validate(_guess(request))
        return reply

    async def ask(self, request: Request[R]) -> Exchange[R]:
        started = time.perf_counter()
        reply = self.reply(request)
        return Exchange(reply, None, raw=reply.model_dump_json(), seconds=time.perf_counter() - started)


def cite_by_number(request: Request[R], reply: Values) -> Values:
    """Return the reply with evidence by the numbers that frames and notes have in the request, not by their places."""
    numbers = list(chain(*citation_numbers(request.frames, getattr(request, "notes", ()))))
    if not reply.get("evidence") or not numbers:
        return reply
    return reply | {"evidence": [numbers[place - 1] for place in reply["evidence"]]}


def _guess(request: Request[Any]) -> Values:
    """Choose an option by chance where one has to be chosen and nothing was shown, the same one each time."""
    question = getattr(request, "question", None)
    if not isinstance(question, Question) or not question.options:
        return {"action": INSUFFICIENT}
    at = zlib.crc32(question.text.encode()) % len(question.options)
    return {"action": "answer", "option": question.lettered[at][0], "answer": None, "evidence": []}
