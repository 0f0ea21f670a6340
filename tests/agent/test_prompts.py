"""Prompts as text, and every request that an agent can ask: how it is sent, and what its cached replies depend on."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.models.reply_parser import parse_json, parse_reply
from kinodex.agent.models.roles import ROLES
from kinodex.agent.models.schema_ladder import tool_parameters
from kinodex.agent.prompts.messages import user_message
from kinodex.agent.prompts.rendering import render, request_message
from kinodex.agent.prompts.reply_form import FORM, reply_form, reply_line
from kinodex.agent.prompts.segments import candidate_lines
from kinodex.agent.prompts.tokens import MESSAGE_TOKENS, estimate_tokens, picture_rule, picture_tokens, text_tokens
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import ScoredSegment, Segment, Video
from kinodex.agent.replies.schema import REASONING
from kinodex.agent.replies.schema import WORDS as SHOWN_WORDS
from kinodex.agent.requests.tree import Decide, Decision
from kinodex.agent.variants.eea.requests import SelectSegment
from kinodex.agent.variants.kino.requests import MOST_LISTED, ChooseStep, RateSegments
from kinodex.agent.variants.vca.requests import ExploreSegment
from tests.support.every_request import (
    STORED,
    built,
    common_start,
    example_text,
    field_names,
    kinds,
    of_full_size,
    variations,
)
from tests.support.models.constrained_decoders import ENGINES, is_installed, written
from tests.support.servers.chat_server import ChatServer, SentFrame
from tests.support.servers.wire import decide, frame, role
from tests.support.strict_mode import violations

SIDE_PX = 320
"""Stored frames are larger than the role's limit, and than that of any request."""
TIMES_S = (3.0, 17.25, 4000.5)
LABEL = re.compile(r"frame (\d+) at ([\d.]+) s(?: \(([\d:]+)\))?")
KINDS = kinds()
Send = Callable[[Request[Any]], tuple[list[SentFrame], str]]


@pytest.fixture(scope="module")
def send() -> Iterator[Send]:
    """Send a request to a server; return the frames and the text that arrive."""
    with ChatServer(lambda body: "no matter") as server, asyncio.Runner() as runner:
        model = OpenAIModel(role(server, image_side_px=SIDE_PX))

        def send_one(request: Request[Any]) -> tuple[list[SentFrame], str]:
            runner.run(model.ask(request))
            assert server.problems == []
            return list(server.seen[-1].frames), server.seen[-1].text

        yield send_one
        runner.run(model.close())


def test_a_request_says_who_answers_and_in_what_form_and_keeps_its_line_breaks() -> None:
    """A tag at the end of a line swallows the line break: without an empty line after it, two lines become one."""
    for kind in KINDS:
        text = render(built(kind))
        assert kind.role in ROLES, kind
        assert kind.form != "json" or "Reply with JSON only" in text, kind
        assert not re.search(r"\{\{|\{%|%\}|\bNone\b|object at 0x", text), kind
        for request in variations(kind):
            text = render(request)
            assert not re.search(r"\S- (?=[\"<\w])", text), "an item of a list stands behind the line before"
            assert not re.search(r"\n{3}|[ \t]\n", text), kind


def test_complaints_and_frames_arrive_each_frame_after_its_time_and_no_larger_than_allowed(send: Send) -> None:
    frames = tuple(frame(number, time_s=time_s, size=STORED) for number, time_s in enumerate(TIMES_S, start=1))
    for kind in KINDS:
        again = replace(built(kind), attempt=1, complaint="it names segment 77", bad_reply="[77]")
        assert "it names segment 77" in render(again) and "[77]" in send(again)[1], kind
        if "frames" not in field_names(kind):
            continue
        arrived, _ = send(built(kind, frames=frames))
        labels = [LABEL.fullmatch(each.label) for each in arrived]
        shown = [(int(label[1]), float(label[2]), label[3]) for label in labels if label]
        clocks = (None, None, "1:06:40")
        assert shown == [(at + 1, *each) for at, each in enumerate(zip(TIMES_S, clocks, strict=True))], kind
        side = 640 if kind.full_size else min(SIDE_PX, kind.image_side_px or SIDE_PX)
        assert {max(each.width_px, each.height_px) for each in arrived} == {side}, kind


CACHED = {
    "Act videoseek": "7bea81dd08c4 9e8a94c5",
    "AdjustPlan videoagent2_adjust_plan": "6508fe572c26 99a95e10",
    "AnswerBank videoagent2_answer": "72f6616fabe9 2fa18ee9",
    "AnswerFrames answer_frames": "f5455ba05d44 6ca388f1",
    "AnswerFromRows answer_from_rows": "bced7be935c3 c770f441",
    "AnswerNotes answer_notes": "a72593f7a6db ad7f215a",
    "AnswerNow choose_action": "f73822a8690e 7f469d20",
    "AnswerNow videoseek": "15fb15da16fc 9e8a94c5",
    "Assess videoagent2_assess": "156428dd2fb4 dec80a5d",
    "CallTool videoagent2_call_tool": "f6a9f2233347 efd39d58",
    "CaptionFrames videoagent2_caption": "0f8ef5bc4baa f493e661",
    "ChooseAction choose_action": "3a9087762c51 7dbaba28",
    "ChooseFrames vca_choose_frames": "fd217c039c45 9e771006",
    "ChooseLetter choose_letter": "e24c92c64a8d f842babb",
    "ChooseLetterBySight choose_letter": "53d7e0bb0bb5 f842babb",
    "ChooseStep kino_step": "8c22ac8a8010 39b8f6ec",
    "CreatePlan videoagent2_create_plan": "3fad645072ff 57d53a60",
    "DescribeSegment describe_segment": "37d8666b2e26 c8396d2a",
    "DiscoverQueries discover_queries": "77a18cacec93 c6545746",
    "ExploreSegment vca_explore": "9969cf6fb354 ff40be1e",
    "ExtractRows extract_rows": "1f9c006a5e3b 7b87b8af",
    "FindMissing find_missing": "8e872bbfb1a3 181fcdf8",
    "FocusClip videoseek_focus": "a73ea25a0ad2 9f6ea7ff",
    "Guess guess": "035f0729645e ac6c30a0",
    "JudgeAnswer judge_answer": "bcb09d7644b4 b7e6167e",
    "JudgeMoments judge_moments": "82e6d598d563 275c34d8",
    "JudgeRelevance judge_relevance": "46ff806c22b7 c8048e42",
    "LocateClips locate_clips": "13565b208995 a8ce4945",
    "OverviewVideo videoseek_overview": "10e029ddbe06 04965c78",
    "PlanCollection plan_collection": "294577aabc30 4a364412",
    "PlanSearch kino_plan": "aaf9bc9b035e def8cda5",
    "ProposeQueries eea_propose": "45453ce0e54f 1486c065",
    "RateSegments kino_rate": "4c0a0921eaee 3eabee31",
    "ReadFrames read_frames": "ad9e43484020 2d0f84e8",
    "Recall recall": "2cf807089da4 79a71ad5",
    "ReflectOnAnswer reflect_on_answer": "d795096f446a 14c5f79f",
    "RewardSegments eea_reward": "48004cc5b4c1 3dc6285c",
    "RewardSegments vca_reward": "52b61c07fd99 e1f0481a",
    "SelectSegment eea_select": "ddaa2c3b4377 11fbc63c",
    "SkimRange videoseek_skim": "e30e3ee4357d f58c9b94",
    "Summarize summarize": "98c5c0155759 c568bc89",
    "SummarizePart summarize_part": "a54dcef75a7c 950292df",
    "Verify verify": "c4cacab50be6 f07e0238",
    "VerifyNotes verify": "6bdc9ad6d684 f07e0238",
}
"""Of each request (its class, its template) a hash of what its cached replies depend on besides its inputs, and one of
its prompts with few inputs and many, of one video and several, with and without each thing that it may say."""


def cached_part(kind: Any) -> str:
    """A hash of the prompt of an example, the schemas with their descriptions, and how the request is sent."""
    request = built(kind)
    tools = tool_parameters(kind.tools, request.tool_choice) if kind.tools else None
    schemas = request.schema(), kind.Reply.__name__, tools
    options = kind.form, kind.temperature, kind.stop, kind.image_side_px, kind.full_size, kind.role
    text = json.dumps([*schemas, *options, render(request)])
    prompts = "".join(map(render, variations(kind)))
    digests = [hashlib.sha256(each.encode()).hexdigest() for each in (text, prompts)]
    return f"{digests[0][:12]} {digests[1][:8]}"


def test_replies_that_were_cached_before_are_still_found() -> None:
    """If this fails, a prompt, a field, or the docstring of a reply or tool (a schema's description) has changed.

    Users then pay for every such reply again: change the value here only if that is what you want.
    """
    for kind in KINDS:
        assert cached_part(kind) == CACHED[f"{kind.__name__} {kind.template}"], kind


def test_the_prompts_of_a_round_begin_alike_and_the_frames_stand_before_what_varies():
    film = Video("abcdef0123456789" * 2, "Film", 1.5, 100.0)
    frames = tuple(ShownFrame(film.video_id, int(at_s), at_s, 8, 8, b"x") for at_s in (50.04, 70.0))
    parts = (Segment(3, film.video_id, 1.5, 50.04), Segment(4, film.video_id, 50.04, 101.5))
    question = Question("What colour is the kite?", ("red", "blue"))
    about: dict[str, Any] = {"question": question, "videos": (film,), "frames": frames}
    candidates = (ScoredSegment(parts[0], 0.256, "a kite at its end"), ScoredSegment(parts[1], 0.1, explorable=False))
    shared = common_start(RateSegments(**about, segments=parts), ChooseStep(**about, candidates=candidates))
    assert shared.rstrip().endswith("[frame 2 at 70.00 s (1:10)]\n\nYour step:")
    assert all(text in shared for text in ("What colour is the kite?", "B. blue", "The video lasts 100.0 s"))


class Bare(Decide):
    """A request from elsewhere: its template does not say where frames stand."""

    template = "Question: {{ request.question.text }}\nAnswer it.\n"


def test_pictures_stand_where_the_template_includes_the_frames_else_after_the_text() -> None:
    asked = decide()
    bare = Bare(question=asked.question, videos=(), candidates=(), frames=asked.frames)
    pictures = ["text", "image_url"] * 2
    for request, sent in ((asked, ["text", *pictures, "text"]), (bare, ["text", *pictures])):
        content: Any = request_message(replace(request, frames=(frame(1), frame(2))), None)["content"]
        assert [part["type"] for part in content] == sent


# The form of replies: the schema that is sent, the words of the prompt and its form are one, and decoders keep it.


WRITTEN = [kind for kind in kinds() if kind.form != "text"]
CHOICES = {"action", "option", "score", "confidence", "relevance", "found", "sufficient", "clips"}
"""Names of what a model decides: words of its own come before."""
WORDS = {REASONING, "description", "text", "caption", "steps"}
DESCRIPTIONS = {
    *("Description", "Summary", "Observation", "DescribedFrames", "SkimmedFrames", "FrameCaptions", "PartSummary"),
    "Extracted",  # its columns are the user's
}
"""Replies that say what is seen: their text is the first thing in them, and reasons before it would double its cost."""
SCORED = {"SegmentScores", "SegmentRatings", "MomentVerdicts"}
"""Replies whose reasons stand before each score, since the policy reads them too."""
ACCEPTS = [accepts for name, accepts in ENGINES.items() if is_installed(name)]


def objects(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """All objects of a schema, from the outside inwards."""
    if "properties" in schema:
        yield schema
        for each in schema["properties"].values():
            yield from objects(each.get("items", each))


@pytest.mark.slow
def test_the_example_is_accepted_byte_for_byte_by_the_schema_that_is_sent() -> None:
    for kind in WRITTEN:
        asked = [(each, reasoning) for each in variations(kind) for reasoning in (True, False)]
        sent = {(json.dumps(each.schema(reasoning=on)), example_text(each, on)) for each, on in asked}
        for accepts in ACCEPTS:
            assert [text for schema, text in sent if not accepts(json.loads(schema), text)] == [], (accepts, kind)


def test_the_form_in_the_prompt_has_words_fits_the_schema_and_is_no_reply_and_the_example_is_one() -> None:
    for kind in WRITTEN:
        for request in variations(kind):
            request.check(parse_json(example_text(request), request))
            assert violations(request.schema()) == violations(request.schema(reasoning=False)) == [], kind
            form = reply_form(request.schema())
            assert "..." not in form and len(json.loads(form)) == len(request.schema()["properties"]), form
            if kind.form == "json" and SHOWN_WORDS in form:
                shown = render(request).partition(f"{FORM} ")[2].splitlines()[0]
                assert json.loads(shown).keys() == json.loads(form).keys(), kind
                assert parse_reply(shown, request)[0] is None, (kind, shown)
        tools: Any = tool_parameters(kind.tools)["tools"] if kind.tools else ()
        for tool in tools:
            assert violations(tool["function"]["parameters"]) == [], kind


def test_a_reply_that_lacks_what_the_prompt_asks_for_or_answers_before_its_reasons_cannot_be_written() -> None:
    for kind in WRITTEN:
        request = of_full_size(kind)
        schema, value = request.schema(), json.loads(example_text(request))
        keys = list(value)
        wrong = [{name: value[name] for name in (keys[at], *keys[:at], *keys[at + 1 :])} for at in range(1, len(keys))]
        wrong += [{key: each for key, each in value.items() if key != name} for name in keys]
        for name in keys:
            counted = schema["properties"][name].get("minItems")
            if counted and counted == schema["properties"][name].get("maxItems"):
                assert len(value[name]) == counted == 7, kind
                lacking = [dict(list(each.items())[:-1]) for each in value[name]]
                wrong += [{**value, name: value[name][:-1]}, {**value, name: lacking}]
        for accepts in ACCEPTS:
            assert [each for each in wrong if accepts(schema, written(each))] == [], (accepts, kind)
        for reasoning in (True, False):
            line = reply_line(request, reasoning).partition(FORM)[0]
            places = [line.index(f'- "{name}"') for name in request.schema(reasoning=reasoning)["properties"]]
            assert places == sorted(places), "the prompt names the keys in the order of the schema"


def test_words_come_before_what_is_decided() -> None:
    for kind in WRITTEN:
        schema = of_full_size(kind).schema()
        if list(schema["properties"]) == ["option"]:
            continue  # a letter is asked for alone where all else came to nothing
        thinks = next(iter(schema["properties"])) == REASONING
        if kind.Reply is Decision:  # EEA and VCA ask for the choice without an explanation
            continue
        assert thinks or kind.form == "tools" or kind.Reply.__name__ in DESCRIPTIONS | SCORED, kind
        for each in objects(schema):
            names = list(each["properties"])
            decided = [name for name in names if name in CHOICES]
            if decided and not thinks and kind.form == "json":
                assert WORDS & set(names[: names.index(decided[0])]), names
            if {"action", "evidence"} <= set(names):
                order = [name for name in ("action", "option", "answer", "evidence") if name in names]
                assert [name for name in names if name in order] == order, kind
                assert names[-1] == "evidence", kind


# Segments in prompts: the best in full, the others short, and none in which nothing is left to see.


LONG = Video("a" * 32, "film", 0.0, 600.0)


def scored(number: int, score: float | None, **more) -> ScoredSegment:
    return ScoredSegment(Segment(number, LONG.video_id, number * 10.0, number * 10.0 + 10), score, **more)


def deciding(kind: type[Decide], candidates: Sequence[ScoredSegment], **more: Any) -> Decide:
    question = Question("What colour is the kite?", ("red", "blue"))
    given = {"question": question, "videos": (LONG,), "candidates": tuple(candidates), "frames": (), **more}
    return kind(**given)


def test_of_many_candidates_kino_lists_the_best_and_a_papers_agent_all_with_their_reasons() -> None:
    many = [scored(number, number, explanation="reason " * 60) for number in range(40)]
    many.append(scored(99, 99, explorable=False))
    lines = candidate_lines(deciding(ChooseStep, many), in_full=6)
    assert len(lines) == MOST_LISTED
    assert lines[-1].startswith("Segment 39: 390 s to 400 s (6:30 to 6:40), score 39: reason reason")
    assert lines[0] == "Segment 20: 200 s to 210 s, score 20"
    assert sum("reason" in line for line in lines) == 6
    lines = candidate_lines(deciding(SelectSegment, many))
    assert len(lines) == 40 and all(line.count("reason") == 60 for line in lines), "whole, as they were given"
    assert not any("reason" in line for line in candidate_lines(deciding(ExploreSegment, many), reasons=False))


def test_frames_that_do_not_stand_in_the_order_of_time_are_listed_in_it() -> None:
    shown = tuple(replace(frame(number), time_s=at_s, label=number) for number, at_s in ((1, 40.0), (2, 12.5)))
    listed = "In the order of time: frame 2 (12.5 s), frame 1 (40 s).\n"
    assert listed in render(deciding(ChooseStep, [scored(1, 50)], frames=shown, videos=(LONG,)))
    assert "order of time" not in render(deciding(ChooseStep, [scored(1, 50)], frames=shown[::-1], videos=(LONG,)))


def test_pictures_count_by_tiles_or_patches_and_messages_add_up() -> None:
    """The examples of OpenAI's own page among them: 1024 x 1024, 2048 x 4096 and 4096 x 8192 at low detail."""
    for size, detail, tokens in (
        ((512, 288), "auto", 255),
        ((512, 512), "high", 255),
        ((1024, 1024), "high", 765),
        ((2048, 4096), "high", 1105),
        ((4096, 8192), "low", 85),
        ((512, 288), "low", 85),
    ):
        assert picture_tokens(*size, "openai", detail) == tokens, size
    for size, tokens in (((512, 288), 18 * 10), ((28, 28), 4), ((1920, 1080), 47 * 26), ((448, 448), 16 * 16)):
        assert picture_tokens(*size, "qwen") == picture_tokens(*size, "qwen", "low") == tokens + 2, size
    claude = {(512, 512): 361, (768, 768): 784, (1024, 1024): 1369, (1280, 720): 1196, (1920, 1080): 1560}
    for size, tokens in claude.items():  # counted by the API for Haiku 4.5, 2026; the last one is fitted in
        assert picture_tokens(*size, "claude") == picture_tokens(*size, "claude", "low") == tokens, size
    for size, tiles in (((384, 384), 1), ((960, 540), 3 * 2), ((512, 288), 2 * 2), ((1536, 1536), 4)):
        assert picture_tokens(*size, "gemini") == 258 * tiles, size  # 960 x 540 is Google's own example
    assert (picture_tokens(960, 540, "gemini-3"), picture_tokens(960, 540, "gemini-3", "low")) == (1120, 280)
    names = {"gpt-4o": "openai", "Qwen/Qwen2.5-VL-7B": "qwen", "anthropic/claude-sonnet-4.5": "claude"}
    names |= {"models/gemini-2.5-flash": "gemini", "gemini-3-flash-preview": "gemini-3"}
    assert {name: picture_rule(name) for name in names} == names
    message = user_message("What is this?", [frame(number, size=(512, 288)) for number in (1, 2)], None)
    parts = cast(list[dict[str, str]], message["content"])
    words = sum(text_tokens(part["text"]) for part in parts if part["type"] == "text") + MESSAGE_TOKENS
    assert (estimate_tokens([message]), estimate_tokens([message], "qwen")) == (words + 2 * 255, words + 2 * 182)
    spoken: dict[str, object] = {"role": "assistant", "content": "12345678"}
    assert estimate_tokens([message, spoken]) == words + MESSAGE_TOKENS + 2 * 255 + 2
