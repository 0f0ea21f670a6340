"""The server without a model replies in the form of the request, always the same, and counts calls in sequence."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.bench.fake_llm_server import MODEL, completion, open_fake_server


def request(schema: str, prompt: str) -> dict[str, Any]:
    return {
        "messages": [{"role": "user", "content": prompt}],
        "response_format": {"json_schema": {"name": schema}},
    }


def reply(schema: str, prompt: str) -> dict[str, Any]:
    made = json.loads(json.dumps(completion(request(schema, prompt))))
    content: dict[str, Any] = json.loads(made["choices"][0]["message"]["content"])
    return content


PROMPT = "Question: What colour is the boat?\nSegments to be scored:\n- Segment 1\n- Segment 7 (nothing left to see)\n"


def test_replies_have_the_form_of_the_request() -> None:
    assert completion(request("Queries", PROMPT))["model"] == MODEL
    assert len(reply("Queries", PROMPT)["queries"]) == 2
    scores = reply("SegmentScores", PROMPT)["segments"]
    assert [each["segment"] for each in scores] == ["1", "7"]
    assert all(0 <= each["score"] <= 100 for each in scores)
    both = reply("ScoresAndQueries", f"{PROMPT}\nTo compare:\n- Segment 5")
    assert ([each["segment"] for each in both["segments"]], len(both["queries"])) == (["1", "7"], 2)
    assert reply("Conclusion", PROMPT)["option"] == "A"


def test_a_search_goes_on_with_an_open_segment_and_ends_with_an_answer() -> None:
    decisions = [reply("Decision", f"{PROMPT}round {number}") for number in range(30)]
    assert {each["action"] for each in decisions} == {"explore", "answer"}
    assert {each["segment"] for each in decisions if each["action"] == "explore"} == {"1"}
    assert reply("Decision", f"{PROMPT}Exploring is over: this is the last step.")["action"] == "answer"
    assert decisions[3] == reply("Decision", f"{PROMPT}round 3")


@pytest.mark.slow
def test_calls_are_counted_by_question_and_in_sequence() -> None:
    def call(prompt: str) -> None:
        body = json.dumps(request("Conclusion", prompt)).encode()
        with urlopen(Request(f"{server.base_url}/chat/completions", body)) as response:
            assert json.load(response)["model"] == MODEL

    with open_fake_server(latency_s=0.2) as server, ThreadPoolExecutor(3) as pool:
        call("Question: first")
        call("Question: first")
        list(pool.map(call, ["Question: second"] * 3))
        calls = server.calls()
    assert (calls["first"].count, calls["first"].in_sequence) == (2, 2)
    assert calls["second"].count == 3
