"""A chat completions server without a language model: it answers every request of every agent by rules.

    python -m tests.support.servers.rule_server --port 8321
    kinodex ask LIBRARY "..." --agent eea --model rules --base-url http://127.0.0.1:8321/v1

It sees what the wire carries and nothing else: the text, and the pictures, which it looks at with the built-in
space's image tower. So it plays the language model where all agents are measured over sketch films. It abstains where
nothing that it was shown matches; asked for a guess without any video, it guesses, by a hash of the question.
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tests.support.servers import rules_replies as plain
from tests.support.servers import rules_tools as tools
from tests.support.servers.chat_server import Behaviour, ChatServer, Reply, calling
from tests.support.servers.rules_prompt import Asked, read
from tests.support.servers.rules_sight import Eyes, Sight

MODEL = "rules"
Rule = Callable[[Eyes, Asked], Any]

RULES: Mapping[str, Rule] = {
    "Conclusion": plain.answer,
    "Queries": plain.queries,
    "SegmentScores": plain.score_segments,
    "ScoresAndQueries": plain.score_and_propose,
    "Decision": plain.decide,
    "FrameChoice": plain.choose_frames,
    "Description": plain.describe,
    "Summary": plain.summarize,
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


class Rules:
    """Answers a request's JSON body, as `ChatServer` wants it."""

    def __init__(self, sight: Eyes | None = None) -> None:
        self.sight = sight or Sight()

    def __call__(self, body: dict) -> dict | str | Behaviour:
        asked = read(body)
        if asked.tools:
            return calling(tools.seek(self.sight, asked))
        said: dict | str = self.rule(asked)(self.sight, asked)
        return said

    def rule(self, asked: Asked) -> Rule:
        """The rule for a request; for a text without a schema by what its prompt asks for."""
        if asked.reply == "Action":
            return tools.tool_call if "action" in asked.fields else tools.seek
        if not asked.reply:
            return tools.master if "<request_grounding>" in asked.text else tools.think
        return RULES[asked.reply]


class RuleServer(ChatServer):
    """A server for long measurements: it keeps no record of what it was asked."""

    def __init__(self, reply: Reply, *, models: Iterable[str] = (MODEL,), port: int = 0) -> None:
        super().__init__(reply, models=models, port=port)

    def answer(self, headers: Mapping[str, str], body: dict) -> Behaviour:
        behaviour = super().answer(headers, body)
        with self.lock:
            self.seen.clear()
        return behaviour


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, default=8321)
    with RuleServer(Rules(), port=parser.parse_args().port) as server:
        print(f"{MODEL} at {server.base_url}", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
