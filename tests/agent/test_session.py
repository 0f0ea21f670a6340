"""Budgets and misbehaving models: every run ends, with an honest status, and nothing is guessed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kinodex.agent.answer import Answer
from kinodex.agent.ask import ask
from kinodex.agent.environment import Environment
from kinodex.agent.errors import BadSettings, ModelUnreachable
from kinodex.agent.limits import Budget
from kinodex.agent.protocol import Usage, request_key
from kinodex.agent.requests.answer import AnswerNotes
from kinodex.agent.requests.describe import DescribeSegment, Summarize
from kinodex.agent.requests.tree import Decide, DiscoverQueries, ProposeQueries, ScoreSegments
from kinodex.agent.session import UsableReplies
from kinodex.agent.variants.videoagent2 import CreatePlan
from kinodex.agent.variants.videoseek import Think
from kinodex.index.rows import TranscriptRow
from tests.support.libraries.agent_library import ScriptedModel, environment_of, explorer, film, make_library
from tests.support.runs.kite_runs import QUESTION, but, kite_environment, run


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return kite_environment(tmp_path_factory.mktemp("run"))


def test_tokens_and_money_leave_room_for_the_last_word(environment):
    for budget, reason in [(Budget(rounds=None, tokens=12_000), "tokens"), (Budget(rounds=None, cost=1.2), "cost")]:
        usage = Usage(input_tokens=900, output_tokens=100, cached_tokens=400, cost=0.1)
        answer, model = run(environment, explorer, budget, usage)
        ledger = answer.ledger
        assert (answer.status, answer.reason, answer.option) == ("budget_exhausted", reason, 0), (budget, reason)
        assert ledger.input_tokens + ledger.output_tokens <= 12_000, (budget, reason)
        assert ledger.cost <= 1.2 + 1e-9, (budget, reason)
        assert ledger.calls == len(model.requests), (budget, reason)
        assert ledger.cached_tokens == 400 * ledger.calls, (budget, reason)


def test_a_budget_spent_in_the_middle_of_a_round_still_gets_an_answer(environment):
    class Dearer(ScriptedModel):
        async def ask(self, request):
            exchange = await super().ask(request)
            later = isinstance(request, ScoreSegments) and request.history
            return replace(exchange, usage=Usage(input_tokens=6000 if later else 1000))

    model = Dearer(explorer)
    answer = asyncio.run(ask(QUESTION, environment, model, budget=Budget(rounds=None, tokens=12_000)))
    assert (answer.status, answer.reason, answer.option) == ("budget_exhausted", "tokens", 0)
    assert answer.ledger.input_tokens == 10_000
    scoring, last = model.requests[-2:]
    assert isinstance(scoring, ScoreSegments) and isinstance(last, Decide)


def test_wrong_segments_are_asked_for_again_then_the_best_answer_so_far(environment):
    def wrong(request):
        return {"Segment": 9999} if isinstance(request, Decide) and not request.must_answer else explorer(request)

    answer, model = run(environment, wrong)
    assert (answer.status, answer.option, answer.rounds, answer.ledger.invalid_replies) == ("answered", 0, 1, 2)
    assert answer.reason == "the model gave no valid decision in two attempts; this is its best answer so far"
    first, second, last = model.asked(Decide)
    assert second.attempt == 1
    assert "segment 9999 cannot be explored" in second.complaint
    assert "9999" in second.bad_reply
    assert (last.must_answer, last.frames, last.attempt) == (True, first.frames, 0)


def test_only_if_the_best_answer_fails_too_the_run_is_invalid(environment):
    answer, model = run(environment, but(Decide, {"Segment": 9999}))
    assert (answer.status, answer.text, answer.senseless) == ("invalid", None, False)
    assert [(each.must_answer, each.attempt) for each in model.asked(Decide)] == [
        (False, 0), (False, 1), (True, 0), (True, 1)
    ]  # fmt: skip


def test_no_two_attempts_at_a_step_are_the_same_request(environment):
    """A reply that may not give up, then nonsense: a cache must not answer with the reply to an attempt before."""

    def script(request):
        said = "nonsense" if request.attempt in (0, 2) else {"action": "insufficient_evidence"}
        return said if isinstance(request, Decide) and not request.must_answer else explorer(request)

    _, model = run(environment, script, Budget(rounds=2), agent="vca")
    asked = [request for request in model.asked(Decide) if not request.must_answer]
    assert [request.attempt for request in asked] == [0, 1, 2, 3]
    assert len({request_key(request) for request in asked}) == 4


def test_nonsense_is_counted_and_never_replaced_by_a_guess(environment):
    for said in [
        "I'm sorry, I can't help with that.",
        "",
        "{",
        "[]",
        [],
        {"action": "dance"},
        {"answer": None},
        {"option": "Z"},
        {"Segment": "first"},
        "\x00\u202e{{7*7}}",
    ]:
        answer, _ = run(environment, lambda request, said=said: said)
        assert (answer.status, answer.text, answer.option, answer.evidence) == ("invalid", None, None, ()), said
        assert answer.ledger.invalid_replies == answer.ledger.calls, said
        assert answer.senseless, said


def test_an_unreachable_model_is_an_error_and_leaves_nothing_running(environment):
    class Broken(ScriptedModel):
        cancelled = False

        async def ask(self, request):
            if isinstance(request, ScoreSegments):
                raise ModelUnreachable("nobody answers at localhost")
            if isinstance(request, ProposeQueries):
                try:
                    await asyncio.sleep(30)
                except asyncio.CancelledError:
                    self.cancelled = True
                    raise
            return await super().ask(request)

    model = Broken(explorer)
    with pytest.raises(ModelUnreachable, match="nobody answers"):
        asyncio.run(ask(QUESTION, environment, model, parameters={"form": "paper"}))
    assert model.cancelled


def test_a_role_without_a_model_is_a_clear_error(environment):
    with pytest.raises(BadSettings, match="no model for the role 'reward'"):
        asyncio.run(ask(QUESTION, environment, {"policy": ScriptedModel(explorer)}))


# Runs whose models make no sense: they end after three rounds, with what was seen if that gives an answer.


BABBLE = "Lorem ipsum dolor sit amet."


@pytest.fixture(scope="module")
def babbled(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    library = make_library(tmp_path_factory.mktemp("babble"), {"film": film(1, 120, {70: ("red kite desert", 12)})})
    video_id = library.video("film").video_id
    library.writer.add_transcript({video_id: [TranscriptRow(video_id, 10.0, 12.0, "Welcome.", source="subtitles")]})
    return environment_of(library)


def run_babble(babbled: Environment, agent: str, script: Callable[[Any], Any]) -> tuple[Answer, ScriptedModel]:
    model = ScriptedModel(script)
    return asyncio.run(ask(QUESTION, babbled, model, agent=agent, budget=Budget(rounds=20))), model


def babbles(request: Any) -> Any:
    """Thoughts, captions and summaries are any text; all other replies are unreadable."""
    match request:
        case Think():
            return {"text": BABBLE}
        case DescribeSegment():
            return {"caption": BABBLE, "confidence": 50}
        case Summarize():
            return {"summary": BABBLE}
    return BABBLE


def test_a_model_that_never_makes_sense_ends_the_run(babbled: Environment) -> None:
    for agent, rounds in [
        ("videoseek", 4),
        ("videoagent2", 4),
        ("longvideoagent", 4),
        ("eea", 1),
        ("vca", 1),
        ("uniform", 1),
    ]:
        answer, model = run_babble(babbled, agent, babbles)
        assert (answer.status, answer.text, answer.senseless, answer.rounds) == ("invalid", None, True, rounds), (
            agent,
            rounds,
        )
        assert answer.reason.startswith("no reply of scripted could be used"), (agent, rounds)
        assert answer.reason.endswith("; `kinodex doctor --base-url URL` finds out what the endpoint can do"), (
            agent,
            rounds,
        )
        assert len([each for each in model.requests if not isinstance(each, DescribeSegment)]) <= 15, (agent, rounds)


def test_endless_exploring_ends_with_the_best_answer_so_far(environment):
    answer, model = run(environment, explorer)
    assert (answer.status, answer.reason, answer.rounds, answer.option) == ("budget_exhausted", "rounds", 4, 0)
    assert [request.must_answer for request in model.asked(Decide)] == [False, False, False, True]


def test_frames_are_never_more_than_allowed(environment):
    answer, _ = run(environment, explorer, Budget(rounds=None, frames=10))
    assert (answer.status, answer.reason, answer.ledger.frames) == ("budget_exhausted", "frames", 10)
    assert answer.ledger.frame_shows > 10


class Slow(ScriptedModel):
    async def ask(self, request):
        await asyncio.sleep(30 if isinstance(request, Decide) else 0)
        return await super().ask(request)


def test_a_model_that_hangs_is_cut_off(environment):
    began = time.monotonic()
    answer = asyncio.run(ask(QUESTION, environment, Slow(explorer), budget=Budget(seconds=0.5)))
    assert (answer.status, answer.reason, answer.text) == ("budget_exhausted", "seconds", None)
    assert time.monotonic() - began < 5


def test_evidence_that_was_never_shown_is_left_out(environment):
    answer, model = run(environment, but(Decide, {"option": "B", "evidence": [2, 99, -3]}))
    second = model.asked(Decide)[0].frames[1]
    assert [(each.start_s, each.end_s) for each in answer.evidence] == [(second.time_s, second.time_s + 1)]
    assert (answer.status, answer.evidence_cited) == ("answered", True)


def test_an_answer_that_names_nothing_that_was_shown_cites_no_evidence(environment):
    for evidence in [[], [99]]:
        answer, model = run(environment, but(Decide, {"option": "B", "evidence": evidence}))
        shown = model.asked(Decide)[0].frames
        assert (answer.status, answer.evidence_cited) == ("answered", False), evidence
        assert sum(each.end_s - each.start_s for each in answer.evidence) == len(shown), (
            "all that was shown stands for it"
        )


def test_rewards_and_proposals_are_asked_side_by_side(environment):
    both = asyncio.Event

    class Meeting(ScriptedModel):
        waiting = 0

        async def ask(self, request):
            if isinstance(request, ScoreSegments | ProposeQueries):
                self.waiting += 1
                self.met = getattr(self, "met", None) or both()
                if self.waiting == 2:
                    self.met.set()
                await asyncio.wait_for(self.met.wait(), 5)
            return await super().ask(request)

    model, apart = Meeting(explorer), {"form": "paper"}
    answer = asyncio.run(ask(QUESTION, environment, model, budget=Budget(rounds=2), parameters=apart))
    assert (answer.option, len(model.asked(ProposeQueries))) == (0, 1)


def test_roles_choose_the_model(environment):
    policy, reward, rest = (ScriptedModel(explorer) for _ in range(3))
    asyncio.run(
        ask(QUESTION, environment, {"policy": policy, "reward": reward, "default": rest}, budget=Budget(rounds=1))
    )
    assert {type(request) for request in reward.requests} == {ScoreSegments}
    assert {type(request) for request in policy.requests} == {DiscoverQueries, Decide}
    assert rest.requests == []


def test_rounds_count_by_the_replies_that_could_have_been_invalid() -> None:
    replies = UsableReplies()
    replies.count(0, "m", "unreadable")
    for round_no in (1, 2, 4):  # a round without any reply is passed over
        replies.count(round_no, "m", "unreadable")
        replies.count(round_no, "m", f"bad in {round_no}")
    assert (replies.lost_rounds(1), replies.lost_rounds(3), replies.lost_rounds(5)) == (0, 2, 3)
    assert (replies.none_usable, replies.loss(4), replies.loss(5)) == (True, "", "in 3 rounds")
    assert (replies.fault, replies.model) == ("bad in 4", "m")
    replies.count(5, "m", None)
    assert (replies.lost_rounds(6), replies.none_usable) == (0, False)


def test_what_was_seen_is_not_thrown_away(babbled: Environment) -> None:
    def answers_at_last(request: Any) -> Any:
        return {"option": "B", "evidence": [1]} if isinstance(request, AnswerNotes) else babbles(request)

    answer, model = run_babble(babbled, "videoagent2", answers_at_last)
    assert (answer.status, answer.option, answer.rounds, answer.senseless) == ("answered", 1, 4, False)
    assert answer.reason == "no reply could be used in 3 rounds; this is the best answer so far"
    assert answer.evidence
    assert len(model.asked(CreatePlan)) == 6
