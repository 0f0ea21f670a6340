"""Budgets and misbehaving models: every run ends, with an honest status, and nothing is guessed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from kinodex.agent.answer_rules import AnswerRules
from kinodex.agent.errors import BadSettings, ModelUnreachable
from kinodex.agent.limits.budget import Budget
from kinodex.agent.protocol.exchange import Usage
from kinodex.agent.protocol.request_key import request_key
from kinodex.agent.requests.answer import AnswerNotes
from kinodex.agent.requests.describe import DescribeSegment, Summarize
from kinodex.agent.requests.tree import Decide, DiscoverQueries, ScoreSegments
from kinodex.agent.usable_replies import UsableReplies
from kinodex.agent.variants.eea.requests import ProposeQueries, RewardSegments, SelectSegment
from kinodex.agent.variants.videoagent2.requests import CreatePlan
from tests.support.libraries.agent_library import ScriptedModel, environment_of, explorer, film, make_library
from tests.support.runs.kite_runs import asked, but


def test_tokens_and_money_leave_room_for_the_last_word(kites):
    for limit, reason in (({"tokens": 12_000}, "tokens"), ({"cost": 1.2}, "cost")):
        usage = Usage(input_tokens=900, output_tokens=100, cached_tokens=400, cost=0.1)
        run = asked(kites, explorer, budget=Budget(**limit), usage=usage)
        answer, ledger = run.answer, run.answer.ledger
        assert (answer.status, answer.reason, answer.option) == ("budget_exhausted", reason, 0)
        assert ledger.input_tokens + ledger.output_tokens <= 12_000 and ledger.cost <= 1.2 + 1e-9, reason
        assert (ledger.calls, ledger.cached_tokens) == (len(run.model.requests), 400 * ledger.calls), reason


def test_a_budget_spent_in_the_middle_of_a_round_still_gets_an_answer(kites):
    class Dearer(ScriptedModel):
        async def ask(self, request):
            exchange = await super().ask(request)
            later = isinstance(request, ScoreSegments) and request.history
            return replace(exchange, usage=Usage(input_tokens=7000 if later else 1000))

    run = asked(kites, Dearer(explorer), "vca", budget=Budget(tokens=12_000))
    assert (run.answer.status, run.answer.reason, run.answer.option) == ("budget_exhausted", "tokens", 0)
    assert run.answer.ledger.input_tokens == 10_000
    scoring, last = run.model.requests[-2:]
    assert isinstance(scoring, ScoreSegments) and isinstance(last, Decide)


def test_rounds_frames_and_seconds_are_never_more_than_allowed(kites):
    run = asked(kites, explorer, rounds=4)
    assert (run.answer.status, run.answer.reason, run.answer.rounds) == ("budget_exhausted", "rounds", 4)
    assert [request.must_answer for request in run.asked(Decide)] == [False, False, False, True]
    answer = asked(kites, explorer, budget=Budget(frames=10)).answer
    assert (answer.status, answer.reason, answer.ledger.frames) == ("budget_exhausted", "frames", 10)
    assert answer.ledger.frame_shows > 10

    class Hanging(ScriptedModel):
        async def ask(self, request):
            await asyncio.sleep(3000 if isinstance(request, Decide) else 0)
            return await super().ask(request)

    answer = asked(kites, Hanging(explorer), budget=Budget(seconds=0.5)).answer
    assert (answer.status, answer.reason, answer.text) == ("budget_exhausted", "seconds", None)


def test_wrong_segments_are_asked_for_again_then_the_best_answer_so_far(kites):
    run = asked(
        kites, lambda each: {"Segment": 9999} if getattr(each, "must_answer", True) is False else explorer(each)
    )
    answer = run.answer
    assert (answer.status, answer.option, answer.rounds, answer.ledger.invalid_replies) == ("answered", 0, 1, 2)
    assert answer.reason == "the model gave no valid decision in two attempts; this is its best answer so far"
    first, second, last = run.asked(Decide)
    assert second.attempt == 1 and "segment 9999 cannot be explored" in second.complaint
    assert "9999" in second.bad_reply
    assert (last.must_answer, last.frames, last.attempt) == (True, first.frames, 0)

    run = asked(kites, but(Decide, {"Segment": 9999}), rules=AnswerRules(force_choice=False))
    assert (run.answer.status, run.answer.text, run.answer.senseless) == ("invalid", None, False)
    tries = [(each.must_answer, each.attempt) for each in run.asked(Decide)]
    assert tries == [(False, 0), (False, 1), (True, 0), (True, 1)], "only if that fails too it is invalid"


def test_no_two_attempts_at_a_step_are_the_same_request(kites):
    """A reply that may not give up, then nonsense: a cache must not answer with the reply to an attempt before."""

    def script(request):
        said = "nonsense" if request.attempt in (0, 2) else {"action": "insufficient_evidence"}
        return said if isinstance(request, Decide) and not request.must_answer else explorer(request)

    run = asked(kites, script, "vca", rounds=2, rules=AnswerRules(force_choice=False))
    steps = [request for request in run.asked(Decide) if not request.must_answer]
    assert [request.attempt for request in steps] == [0, 1, 2, 3]
    assert len({request_key(request) for request in steps}) == 4


BABBLE = "Lorem ipsum dolor sit amet."


def babbles(request):
    """Thoughts, captions and summaries are any text; all other replies are unreadable."""
    match request:
        case DescribeSegment():
            return {"caption": BABBLE, "confidence": 50}
        case Summarize():
            return {"summary": BABBLE}
    return BABBLE


@pytest.fixture(scope="module")
def babbled(tmp_path_factory):
    return environment_of(make_library(tmp_path_factory.mktemp("babble"), {"film": film(1, 120)}))


def test_nonsense_is_never_replaced_by_a_guess_and_ends_the_run(kites, babbled):
    nonsense: tuple[Any, ...] = (
        "",
        "{",
        [],
        {"action": "dance"},
        {"answer": None},
        {"option": "Z"},
        {"Segment": "first"},
        "\x00{{7}}",
    )
    for said in nonsense:
        answer = asked(kites, lambda request, said=said: said, "vca", rounds=4).answer
        assert (answer.status, answer.text, answer.option, answer.evidence) == ("invalid", None, None, ()), said
        assert answer.ledger.invalid_replies == answer.ledger.calls and answer.senseless, said
    agents = {"videoseek": 4, "videoagent2": 4, "longvideoagent": 4, "eea": 1, "vca": 1, "uniform": 1}
    for agent, rounds in agents.items():
        run = asked(babbled, babbles, agent, rounds=20)
        answer = run.answer
        assert (answer.status, answer.text, answer.senseless, answer.rounds) == ("invalid", None, True, rounds), agent
        assert answer.reason.startswith("no reply of scripted could be used"), agent
        assert answer.reason.endswith("; `kinodex doctor --base-url URL` finds out what the endpoint can do"), agent
        assert len([each for each in run.model.requests if not isinstance(each, DescribeSegment)]) <= 17, agent


def test_what_was_seen_is_not_thrown_away(babbled):
    run = asked(
        babbled,
        lambda each: {"option": "B", "evidence": [1]} if isinstance(each, AnswerNotes) else babbles(each),
        "videoagent2",
        rounds=20,
    )
    answer = run.answer
    assert (answer.status, answer.option, answer.rounds, answer.senseless) == ("answered", 1, 4, False)
    assert answer.reason == "no reply could be used in 3 rounds; this is the best answer so far"
    assert answer.evidence and len(run.asked(CreatePlan)) == 6


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


def test_requests_that_stand_apart_are_asked_side_by_side_and_none_outlives_an_error(kites):
    class Meeting(ScriptedModel):
        waiting, cancelled, breaks = 0, False, False

        async def ask(self, request):
            if isinstance(request, ScoreSegments) and self.breaks:
                raise ModelUnreachable("nobody answers at localhost")
            if isinstance(request, ScoreSegments | ProposeQueries):
                self.waiting += 1
                self.met = getattr(self, "met", None) or asyncio.Event()
                if self.waiting == 2:
                    self.met.set()
                try:
                    await asyncio.wait_for(self.met.wait(), 30)
                except asyncio.CancelledError:
                    self.cancelled = True
                    raise
            return await super().ask(request)

    run = asked(kites, Meeting(explorer), rounds=2)
    assert (run.answer.option, len(run.asked(ProposeQueries))) == (0, 1)
    broken = Meeting(explorer)
    broken.breaks = True
    with pytest.raises(ModelUnreachable, match="nobody answers"):
        asked(kites, broken)
    assert broken.cancelled


def test_evidence_is_what_was_shown_and_cited_or_all_that_was_shown(kites):
    run = asked(kites, but(Decide, {"option": "B", "evidence": [2, 99, -3]}))
    second = run.asked(Decide)[0].frames[1]
    assert run.spans == [(second.time_s, second.time_s + 1)]
    assert (run.answer.status, run.answer.evidence_cited) == ("answered", True)
    for evidence in ([], [99]):
        run = asked(kites, but(Decide, {"option": "B", "evidence": evidence}))
        assert (run.answer.status, run.answer.evidence_cited) == ("answered", False), evidence
        assert sum(end_s - start_s for start_s, end_s in run.spans) == len(run.asked(Decide)[0].frames), evidence


def test_roles_choose_the_model(kites):
    policy, reward, rest = (ScriptedModel(explorer) for _ in range(3))
    asked(kites, {"policy": policy, "reward": reward, "default": rest}, rounds=1)
    assert {type(request) for request in reward.requests} == {RewardSegments}
    assert {type(request) for request in policy.requests} == {DiscoverQueries, SelectSegment}
    assert rest.requests == []
    with pytest.raises(BadSettings, match="no model for the role 'reward'"):
        asked(kites, {"policy": policy})
