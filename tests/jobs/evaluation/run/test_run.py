"""`kinodex eval run`: every question is asked of every contender once, whatever ends the run in between."""

from __future__ import annotations

import io
import json
import time
from collections import Counter
from dataclasses import replace

from rich.console import Console

from kinodex.jobs.eval.folder import ANSWERS, read_items, read_plan, read_results, trace_file
from kinodex.jobs.eval.run import Tally, show_progress
from kinodex.jobs.eval.systems import SampleResult
from tests.support.command import bad
from tests.support.runs.eval_runs import ALL, ANSWER, EACH, FILMS, asked, at, command
from tests.support.servers.chat_server import Behaviour, ChatServer, failing


def test_every_contender_is_asked_every_question_once_and_never_again(place, kinodex, server, tmp_path):
    options = command(place, tmp_path / "run", "--agent", "uniform:frames=3", "--traces", *at(server, tmp_path))
    assert kinodex(*options).code == 0
    out, plan = tmp_path / "run", read_plan(tmp_path / "run")
    assert [each.name for each in plan.contenders] == ["uniform:frames=3", "blind", "random"]
    assert {item.item_id for item in read_items(out)} == ALL
    for contender in plan.contenders:
        assert sorted(asked(out, contender.name)) == sorted(ALL)
        assert all(trace_file(out, contender.name, item_id).exists() for item_id in ALL)
    assert len(server.seen) == 2 * len(ALL)
    before = (out / ANSWERS).read_bytes()
    assert kinodex(*options).code == 0
    assert (out / ANSWERS).read_bytes() == before
    assert len(server.seen) == 2 * len(ALL)


def test_an_answer_keeps_what_was_looked_at_and_what_it_cost(place, kinodex, server, tmp_path):
    prices = ("--input-price", "1000000", "--output-price", "0")
    model = ("--model", "tester", "--base-url", server.base_url, "--no-cache", *prices)
    kinodex(*command(place, tmp_path / "run", "--agent", "uniform:frames=3", "--no-controls", *model))
    for record in read_results(tmp_path / "run"):
        assert (record.status, record.option, record.rounds, record.error) == ("answered", 0, 1, "")
        assert [(each.start_s, each.end_s) for each in record.visited] == [(8.0, 10.0), (14.0, 16.0), (22.0, 24.0)]
        assert [(each.start_s, each.end_s) for each in record.evidence] == [(8.0, 10.0)]
        assert record.ledger.cost == record.ledger.input_tokens > 0


def test_replies_from_the_cache_cost_what_they_would_anew(place, kinodex, server, tmp_path):
    model = ("--model", "tester", "--base-url", server.base_url, "--input-price", "1000000")
    for name in ("anew", "cached"):
        kinodex(*command(place, tmp_path / name, "--agent", "blind", "--no-controls", *model))
    anew, cached = read_results(tmp_path / "anew"), read_results(tmp_path / "cached")
    assert len(server.seen) == EACH, "no video is shown, so the questions about each are the same"
    assert [each.ledger.cost for each in cached] == [each.ledger.cost for each in anew]
    assert all(each.ledger.cached_calls == each.ledger.calls == 1 and each.ledger.cost > 0 for each in cached)


def test_uniform_gets_as_many_frames_as_the_first_agent_needed(place, kinodex, server, tmp_path):
    options = ("--agent", "videotree", *at(server, tmp_path))
    server.reply = lambda body: {"relevances": [{"cluster": 1, "relevance": 3}]} if "relevance" in str(body) else ANSWER
    kinodex(*command(place, tmp_path / "run", *options, "--limit", "4"))
    records = read_results(tmp_path / "run")
    of_tree = [each.ledger.frames_with_kept for each in records if each.contender == "videotree"]
    of_uniform = [each for each in records if each.contender == "uniform, as many frames as videotree"]
    assert len(of_tree) == len(of_uniform) == 4
    last_of_tree = max(number for number, each in enumerate(records) if each.contender == "videotree")
    assert last_of_tree < min(number for number, each in enumerate(records) if each in of_uniform)
    assert {each.ledger.frames_with_kept for each in of_uniform} == {round(sum(of_tree) / 4)}


def refusing(some: str):
    """A server's reply that refuses the requests in which some text stands."""

    def reply(body: dict) -> dict | Behaviour:
        return failing(400, "this is not to be asked") if some in json.dumps(body) else ANSWER

    return reply


def test_a_refused_question_is_a_record_and_can_be_asked_again(place, kinodex, server, tmp_path):
    server.reply = refusing("number 2?")
    options = command(place, tmp_path / "run", "--agent", "blind", "--no-controls", *at(server, tmp_path))
    ran = kinodex(*options)
    assert ran.code == 0, ran
    assert "3 without an answer" in ran.out
    refused = {each.item_id for each in read_results(tmp_path / "run") if each.error}
    assert refused == {f"{film}-2" for film in FILMS}
    server.reply = lambda body: ANSWER
    server.seen.clear()
    assert kinodex(*options).code == 0
    assert server.seen == []
    assert kinodex(*options, "--retry-errors").code == 0
    assert len(server.seen) == len(refused)
    assert not any(each.error for each in read_results(tmp_path / "run"))


def test_too_many_refusals_end_the_run(place, kinodex, server, tmp_path):
    server.reply = refusing("number")
    options = command(place, tmp_path / "run", "--agent", "blind", "--no-controls", *at(server, tmp_path))
    bad(kinodex, *options, "--max-errors", "3", "--at-once", "2", code=5, says="this is not to be asked")
    assert 3 <= len(asked(tmp_path / "run", "blind")) < len(ALL)


def test_figures_do_not_hang_on_how_many_are_asked_at_once(place, kinodex, server, tmp_path):
    """Twelve questions wait for one slot, longer than each of them may work."""
    server.reply = lambda body: Behaviour(json.dumps(ANSWER), after_s=0.15)
    figures = []
    for at_once in (1, 16):
        out = tmp_path / f"run-{at_once}"
        options = command(place, out, "--agent", "blind", "--no-controls", *at(server, tmp_path, at_once=1))
        assert kinodex(*options, "--max-seconds", "1", "--at-once", at_once).code == 0
        figures.append({each.item_id: without_seconds(each) for each in read_results(out)})
    assert {each.status for each in figures[1].values()} == {"answered"}
    assert figures[0] == figures[1]


def without_seconds(result: SampleResult) -> SampleResult:
    return replace(result, ledger=replace(result.ledger, seconds=0.0, model_seconds=0.0))


def test_a_model_that_never_makes_sense_ends_the_run(place, kinodex, server, tmp_path):
    server.reply = lambda body: "Lorem ipsum."
    options = command(place, tmp_path / "run", "--agent", "blind", "--no-controls", *at(server, tmp_path))
    ran = kinodex(*options, "--max-senseless", "3", "--at-once", "2")
    assert ran.code == 6, ran
    assert "blind got no usable reply to 3 questions in a row; the last: no reply of tester" in ran.error_line
    assert "`kinodex doctor --base-url URL`" in ran.error_line
    kept = read_results(tmp_path / "run")
    assert 3 <= len(kept) < len(ALL)
    assert {(each.status, each.senseless, each.error) for each in kept} == {("invalid", True, "")}
    server.reply = lambda body: ANSWER
    server.seen.clear()
    assert kinodex(*options, "--at-once", "2", "--retry-errors").code == 0
    assert len(server.seen) == len(ALL)
    assert not any(each.senseless for each in read_results(tmp_path / "run"))


def test_a_mended_server_is_asked_again_and_the_cache_does_not_answer_for_it(place, kinodex, server, tmp_path):
    model = "--model", "tester", "--base-url", server.base_url, "--cache"
    options = command(place, tmp_path / "run", "--agent", "blind", "--no-controls", *model, "--at-once", "1")
    server.reply = lambda body: "Lorem ipsum."
    ran = kinodex(*options, "--max-senseless", "3")
    assert "run again with --retry-errors, or raise --max-senseless" in ran.error_line
    server.reply = lambda body: ANSWER
    assert kinodex(*options, "--retry-errors").code == 0
    assert {each.status for each in read_results(tmp_path / "run")} == {"answered"}


def one_each(server: ChatServer) -> tuple[object, ...]:
    """Options that ask a server's model, of which each call costs 1."""
    usage = {"prompt_tokens": 1, "completion_tokens": 0, "total_tokens": 1}
    server.reply = lambda body: Behaviour(json.dumps(ANSWER), usage=usage)
    return "--model", "tester", "--base-url", server.base_url, "--input-price", "1000000"


def test_a_run_stops_at_a_cost_and_goes_on(place, kinodex, server, tmp_path):
    options = command(place, tmp_path / "run", "--agent", "blind", "--no-controls", "--no-cache", *one_each(server))
    stopping = (*options, "--stop-at-cost", "3", "--at-once", "1")
    ran = kinodex(*stopping)
    assert ran.code == 5, ran
    assert "and --stop-at-cost is 3; all answers are kept: run again to go on" in ran.error_line
    assert "of 12 answers, blind " in ran.out
    assert 3 <= len(asked(tmp_path / "run", "blind")) <= 4, "two are under way"
    bad(kinodex, *stopping, code=5, says="--stop-at-cost is 3")
    assert 6 <= len(asked(tmp_path / "run", "blind")) <= 8, "what earlier runs cost does not count"
    bad(kinodex, *options, code=2, says="number of requests at once was 1 and is now 32")
    assert kinodex(*options, "--at-once", "1").code == 0
    assert sorted(asked(tmp_path / "run", "blind")) == sorted(ALL)
    assert len(server.seen) == len(ALL)


def test_what_is_under_way_counts_as_much_as_it_may_cost(place, kinodex, server, tmp_path):
    options = command(place, tmp_path / "run", "--agent", "blind", "--no-controls", "--no-cache", *one_each(server))
    for limit, cost in ((0.5, 1), (7.5, 7), (100, 4)):  # the first goes alone, then what is in flight is reserved
        ran = kinodex(*options, "--stop-at-cost", limit, "--at-once", "4")
        assert ran.code == (5 if limit < 100 else 0), ran
        assert len(server.seen) == cost
        assert f"cost {cost:.2f}" in ran.out and (limit > cost) != ("more than --stop-at-cost 0.5" in ran.out)
        server.seen.clear()
    assert sorted(asked(tmp_path / "run", "blind")) == sorted(ALL)


def test_who_waits_for_others_is_not_begun_after_the_cost(place, kinodex, server, tmp_path):
    model = one_each(server)
    tree = {"relevances": [{"cluster": 1, "relevance": 3}]}
    answering = server.reply
    server.reply = lambda body: tree if "relevance" in str(body) else answering(body)
    options = command(place, tmp_path / "run", "--agent", "videotree", "--no-cache", *model, "--limit", "2")
    bad(kinodex, *options, "--stop-at-cost", "0.5", code=5, says="--stop-at-cost")
    assert [each.contender for each in read_results(tmp_path / "run")] == ["videotree"]


def test_a_run_that_ends_at_its_cost_is_whole(place, kinodex, server, tmp_path):
    options = command(place, tmp_path / "run", "--agent", "blind", "--no-controls", "--no-cache", *one_each(server))
    assert kinodex(*options, "--stop-at-cost", len(ALL)).code == 0


def test_replies_from_the_cache_count_towards_the_cost(place, kinodex, server, tmp_path):
    options = ("--agent", "blind", "--no-controls", *one_each(server))
    assert kinodex(*command(place, tmp_path / "anew", *options)).code == 0
    before = len(server.seen)
    again = command(place, tmp_path / "cached", *options, "--stop-at-cost", "3", "--at-once", "1")
    bad(kinodex, *again, code=5, says="--stop-at-cost is 3")
    assert len(server.seen) == before


def test_a_cost_that_is_never_reached_is_refused(place, kinodex, server, tmp_path):
    options = command(place, tmp_path / "run", "--agent", "blind", "--no-controls")
    priced, roles = one_each(server), tmp_path / "roles.toml"
    for amount in ("0", "-1", "nan", "inf"):
        bad(kinodex, *options, *priced, "--stop-at-cost", amount, code=2, says=f"got --stop-at-cost {amount}")
    stop, says = ("--stop-at-cost", "3"), "got --stop-at-cost without prices"
    bad(kinodex, *options, *priced[:-2], *stop, code=2, says=says)
    bad(kinodex, *command(place, tmp_path / "run", "--agent", "random"), "--input-price", "1", *stop, code=2, says=says)
    roles.write_text(f'[default]\nmodel = "tester"\nbase_url = "{server.base_url}"\n')
    bad(kinodex, *options, "--models", roles, *stop, code=2, says=says)
    assert not (tmp_path / "run").exists()
    roles.write_text(roles.read_text() + "price = { output = 1000000 }\n")
    assert kinodex(*options, "--models", roles, "--stop-at-cost", "1e9").code == 0


def test_an_endpoint_that_goes_away_ends_the_run_and_all_answers_are_kept(place, kinodex, server, tmp_path):
    def five_then_gone(body: dict) -> dict | Behaviour:
        if len(server.seen) <= 5:
            return ANSWER
        while len(asked(tmp_path / "run", "blind")) < 5:  # what is answered is kept before the end comes
            time.sleep(0.01)
        return failing(503, "gone home")

    server.reply = five_then_gone
    options = command(place, tmp_path / "run", "--agent", "blind", "--no-controls", *at(server, tmp_path))
    bad(kinodex, *options, "--at-once", "1", code=5, says="different questions in a row got no reply")
    first = read_results(tmp_path / "run")
    failed = [each for each in first if each.unreachable]
    assert len(first) - len(failed) == 5 and 3 <= len(failed) <= 4, "two are under way"
    bad(kinodex, *options, "--at-once", "1", code=5, says="gone home")
    server.reply, before = lambda body: ANSWER, len(server.seen)
    assert kinodex(*options, "--at-once", "1").code == 0
    assert len(server.seen) - before == len(ALL) - 5
    assert not any(each.error for each in read_results(tmp_path / "run"))


def test_questions_without_known_answers_are_written_as_they_are_submitted(place, kinodex, tmp_path):
    rows = [
        {"q_uid": f"{film}", "google_drive_id": "x", "question": "What?"}
        | {f"option {n}": f"they do {n}" for n in range(5)}
        for film in FILMS
    ]
    (tmp_path / "questions.json").write_text(json.dumps(rows))
    options = ("eval", "egoschema-full", place / "library", "--annotations", tmp_path, "--out", tmp_path / "run")
    assert kinodex(*options, "--agent", "random", "--no-controls", "--no-page").code == 0
    submitted = json.loads((tmp_path / "run" / "submission-random.json").read_text())
    assert submitted == {each.item_id: each.option for each in read_results(tmp_path / "run")}
    assert set(submitted) == set(FILMS)


def test_progress_tells_how_far_each_contender_is_off_a_terminal(place, kinodex, server, tmp_path):
    options = command(place, tmp_path / "run", "--agent", "blind", "--no-controls", *at(server, tmp_path))
    assert f"12 of 12 answers; kept in {tmp_path / 'run'}" in kinodex(*options).out
    first, second, *_ = read_results(tmp_path / "run")
    console = Console(record=True, width=200, force_terminal=False)
    tally = Tally({"blind": 12, "random": 12}, Counter(random=12))
    with show_progress(console, tally, every_s=0.0) as tell:
        tell(first)
        tell(second)
    lines = console.export_text().splitlines()
    assert [line.rsplit(", ", 1)[0] for line in lines] == [f"{12 + n} of 24 answers, blind {n}" for n in (1, 2)]
    assert lines[-1].endswith("left")
    out = io.StringIO()
    unseen = Tally({"blind": 12, "random": 12}, Counter(random=12))
    with show_progress(Console(file=out, quiet=True), unseen, every_s=0.0) as tell:
        tell(first)
    assert (out.getvalue(), unseen.done["blind"], unseen.fresh) == ("", 1, 1)
