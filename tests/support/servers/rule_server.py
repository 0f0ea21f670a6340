"""A chat completions server without a language model: it answers every request of every agent by rules.

    python -m tests.support.servers.rule_server --port 8321
    kinodex ask LIBRARY "..." --agent eea --model rules --base-url http://127.0.0.1:8321/v1

It sees what the wire carries and nothing else: the text, and the pictures, which it looks at with the built-in
space's image tower. So it plays the language model where all agents are measured over sketch films. It abstains where
nothing that it was shown matches; asked for a guess without any video, it guesses, by a hash of the question.
"""

from __future__ import annotations

import argparse
import io
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache

from PIL import Image

from kinodex.agent.models.sight import WHICH_COLOUR
from kinodex.agent.prompts.tokens import estimate_tokens, text_tokens
from kinodex.doctor.endpoint import ECHO, SKY, WHICH_COLOURS
from tests.support.servers import rules_replies as plain
from tests.support.servers import rules_tools as tools
from tests.support.servers.chat_server import Behaviour, ChatServer, Reply, calling, failing
from tests.support.servers.rules_prompt import Asked, Frame, read
from tests.support.servers.rules_sight import Eyes, Sight

MODEL = "rules"
DOCTOR = ECHO, WHICH_COLOUR, WHICH_COLOURS, SKY
Rule = Callable[[Eyes, Asked], dict | str | Behaviour]

RULES: Mapping[str, Rule] = {
    "Conclusion": plain.answer,
    "Queries": plain.queries,
    "SearchPlan": plain.queries,
    "SegmentScores": plain.score_segments,
    "SegmentRatings": plain.score_segments,
    "Decision": plain.decide,
    "StepDecision": plain.decide,
    "FrameChoice": plain.choose_frames,
    "Description": plain.describe,
    "Summary": plain.summarize,
    "PartSummary": plain.summarize_part,
    "Relevances": plain.relevances,
    "Reflection": plain.reflect,
    "Missing": plain.find_missing,
    "DescribedFrames": tools.describe_frames,
    "SkimmedFrames": tools.describe_frames,
    "Finding": tools.focus,
    "Assessment": tools.assess,
    "Plan": tools.plan,
    "FrameCaptions": tools.caption_frames,
    "Located": tools.locate,
    "Observation": tools.observe,
}
"""What answers a reply's class, the name of the schema that a request asks for."""


def name_colours(eyes: Eyes, asked: Asked) -> str:
    """Name the colours of pictures of one colour each, as `kinodex doctor` shows them; the sky's, if there are none."""
    return " ".join(map(_colour, asked.frames)) or "blue"


def _colour(frame: Frame) -> str:
    with Image.open(io.BytesIO(frame.jpeg)) as picture:
        red, green, blue = picture.convert("RGB").resize((1, 1)).tobytes()
    if min(red, green) > 2 * blue:
        return "yellow"
    return max(("red", red), ("green", green), ("blue", blue), key=lambda each: each[1])[0]


def _examined(eyes: Eyes, asked: Asked) -> dict | str | Behaviour:
    """Do as `kinodex doctor` asks: call the tool, keep to the schema, say the word, or name colours."""
    if asked.tools:
        return Behaviour(calls=((min(asked.tools), json.dumps({"colour": "blue"})),))
    if asked.reply:
        return {"colour": "blue"}
    return "ready" if ECHO in asked.text else name_colours(eyes, asked)


def unknown(eyes: Eyes, asked: Asked) -> Behaviour:
    """Refuse a request that there is no rule for, as a server does, with the reason."""
    return failing(400, f"there is no rule for a reply {asked.reply!r}")


@cache
def _sight() -> Sight:
    """Make the sight that all rules of a process share: that embeds 5,200 phrases, two seconds of a processor."""
    return Sight()


class Rules:
    """Answers a request's JSON body, as `ChatServer` wants it."""

    def __init__(self, sight: Eyes | None = None) -> None:
        self.sight = sight or _sight()

    def __call__(self, body: dict) -> dict | str | Behaviour:
        asked = read(body)
        if any(word in asked.text for word in DOCTOR):
            return _examined(self.sight, asked)
        if asked.tools:
            return calling({"reasoning": tools.think(self.sight, asked), **tools.seek(self.sight, asked)})
        return self.rule(asked)(self.sight, asked)

    def rule(self, asked: Asked) -> Rule:
        """The rule for a request; for a text without a schema by what its prompt asks for."""
        if asked.reply == "Action":
            return tools.tool_call if "action" in asked.fields else tools.seek
        if not asked.reply:
            return tools.master
        return RULES.get(asked.reply) or unknown


class RuleServer(ChatServer):
    """A server for long measurements: it keeps no record of what it was asked."""

    def __init__(self, reply: Reply, *, models: Iterable[str] = (MODEL,), port: int = 0) -> None:
        super().__init__(reply, models=models, port=port)

    def answer(self, headers: Mapping[str, str], body: dict) -> Behaviour:
        behaviour = super().answer(headers, body)
        with self.lock:
            self.seen.clear()
        return behaviour


class MeteredServer(RuleServer):
    """The rule server with tokens by the estimate that forecasts use: what is compared is the run, not the counting."""

    def answer(self, headers: Mapping[str, str], body: dict) -> Behaviour:
        behaviour = super().answer(headers, body)
        called = sum(text_tokens(f"{name} {arguments}") for name, arguments in behaviour.calls or ())
        usage = {
            "prompt_tokens": estimate_tokens(body["messages"]),
            "completion_tokens": text_tokens(behaviour.content or "") + called,
        }
        return replace(behaviour, usage=usage)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, default=8321)
    parser.add_argument("--metered", action="store_true", help="count tokens as `kinodex --dry-run` estimates them")
    options = parser.parse_args()
    with (MeteredServer if options.metered else RuleServer)(Rules(), port=options.port) as server:
        print(f"{MODEL} at {server.base_url}", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
