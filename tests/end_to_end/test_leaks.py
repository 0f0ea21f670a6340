"""The truth never reaches an agent: secrets are planted in every published form, and looked for everywhere."""

from __future__ import annotations

import asyncio
import gc
import gzip
import inspect
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any

import pytest

from kinodex.agent.answer_rules import USUAL, AnswerRules
from kinodex.agent.catalogue import VARIANTS
from kinodex.agent.forced_choice import ChooseLetter
from kinodex.agent.limits.budget import Budget
from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.models.roles import Role
from kinodex.agent.protocol.exchange import Exchange, Model
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.request_key import request_key
from kinodex.agent.requests.answer import AnswerFrames, AnswerNotes, Guess
from kinodex.agent.requests.describe import DescribeSegment, Summarize
from kinodex.agent.requests.tree import Decide, DiscoverQueries, ScoreSegments
from kinodex.agent.requests.verify import Verify
from kinodex.agent.session import Session
from kinodex.agent.variants.eea.requests import ProposeQueries
from kinodex.agent.variants.longvideoagent import requests as longvideoagent
from kinodex.agent.variants.vca.frame_choice import ChooseFrames
from kinodex.agent.variants.videoagent.requests import FindMissing, ReflectOnAnswer
from kinodex.agent.variants.videoagent2.requests import (
    AdjustPlan,
    AnswerBank,
    Assess,
    CallTool,
    CaptionFrames,
    CreatePlan,
)
from kinodex.agent.variants.videoseek.look_requests import FocusClip, OverviewVideo, SkimRange
from kinodex.agent.variants.videoseek.step_requests import Act
from kinodex.agent.variants.videotree.requests import JudgeRelevance
from kinodex.agent.videos.environment import Environment
from kinodex.index.library import Library
from kinodex.index.rows import SpeechRow
from kinodex.jobs.eval.benchmarks import BENCHMARKS, read_benchmark
from kinodex.jobs.eval.contenders import Contender, parse_contenders
from kinodex.jobs.eval.folder import ANSWERS, TRACES, read_results
from kinodex.jobs.eval.items import Item, Target
from kinodex.jobs.eval.plan import RunRequest, make_plan
from kinodex.jobs.eval.results import ItemInput, RunContext, Solve, SolvedItem
from kinodex.jobs.eval.run import RunOptions, run
from kinodex.jobs.eval.solve import make_solver
from kinodex.jobs.models import ModelChoice
from tests.agent.test_prompts import KINDS
from tests.support.libraries import benchmark_files as kit
from tests.support.libraries.agent_library import ScriptedModel, embed_words, film, make_library
from tests.support.libraries.benchmark_files import published
from tests.support.libraries.videoagent2_film import picture, sighting
from tests.support.servers.chat_server import ChatServer, calling

CALLS: list[dict[str, Any]] = [
    {"tool": "detect", "start_s": 8.0, "label": "kite"},
    {"tool": "track", "start_s": 5.0, "end_s": 12.0, "label": "kite"},
    {"tool": "zoom_detect", "start_s": 9.0, "box": [0.0, 0.0, 0.5, 0.5], "label": "boat"},
    {"tool": "zoom_caption", "start_s": 9.0, "box": [0.0, 0.0, 0.5, 0.5]},
    {"tool": "caption", "start_s": 20.0, "end_s": 24.0},
]
NO_ANSWER: Mapping[str, Any] = {"option": None, "answer": None, "evidence": []}
SEEKING: list[dict[str, Any]] = [
    {"tool": "overview"},
    {"tool": "skim", "start_s": 5.0, "end_s": 25.0, "query": "a kite"},
    {"tool": "focus", "start_s": 10.0, "end_s": 14.0, "query": "a kite"},
    {"tool": "answer", "sufficient": True, "option": "A", "answer": "one", "evidence": [1]},
]
MASTERING = (
    "<request_grounding>a kite</request_grounding>",
    "<visual_query>a kite</visual_query>",
    "<answer>A</answer>",
)


def leading(request: Request[Any]) -> Any:
    """Leads every agent through all its tools, and answers in the end."""
    match request:
        case DiscoverQueries() | ProposeQueries():
            return {"queries": ["red kite desert"]}
        case ScoreSegments():
            return {f"Segment {each.number}": 50 for each in request.segments}
        case Decide(must_answer=False) if len(request.candidates) < 12:
            return {"Segment": next(each.segment.number for each in request.candidates if each.explorable)}
        case ChooseFrames() if len(request.seen) < 12:
            return {"action": "look", "video": request.videos[0].video_id, "times_s": [10.0, 20.0], **NO_ANSWER}
        case Assess():
            return {"thought": "", "option": "A", "answer": "one", "confidence": 2, "evidence": [1]}
        case CreatePlan() | AdjustPlan():
            return {"thought": "", "steps": ["look", "look again"], "action": called(request)}
        case CallTool():
            return {"action": called(request)}
        case CaptionFrames():
            clauses = [{"text": "a kite", "confidence": 0.5}]
            return [{"frame": number, "clauses": clauses} for number, _ in enumerate(request.frames, start=1)]
    return leading_by_words(request)


def leading_by_words(request: Request[Any]) -> Any:
    frames = [{"frame": number, "description": "a kite"} for number, _ in enumerate(request.frames, start=1)]
    match request:
        case DescribeSegment():
            return {"caption": "a kite", "confidence": 50}
        case Summarize():
            return {"summary": "kites"}
        case JudgeRelevance():
            return {"clusters": [{"cluster": note, "relevance": 2} for note, _ in enumerate(request.notes, start=1)]}
        case ReflectOnAnswer():
            return {"thought": "", "confidence": 1}
        case FindMissing():
            return {"frames": [{"segment": request.segments[0].number, "description": "a kite"}]}
        case Act():
            return {"video": request.videos[0].video_id, **SEEKING[said_before(request)]}
        case OverviewVideo() | SkimRange():
            return {"frames": frames}
        case FocusClip():
            return {"found": True, "answer": "a kite", "frames": [1]}
        case longvideoagent.ChooseAction():
            return MASTERING[min(said_before(request), 2)]
        case longvideoagent.AnswerNow():
            return MASTERING[-1]
        case longvideoagent.LocateClips():
            return {"clips": [1], "reason": ""}
        case longvideoagent.ReadFrames():
            return {"observation": "a kite"}
        case ChooseLetter():
            return {"option": "A"}
        case Decide() | ChooseFrames() | AnswerFrames() | AnswerNotes() | Guess() | AnswerBank() | Verify():
            return {"option": "A", "answer": "one", "evidence": [1]}
    raise TypeError(type(request).__name__)


def said_before(request: Request[Any]) -> int:
    return sum(turn.speaker == "assistant" for turn in request.turns)


def called(request: CreatePlan | AdjustPlan | CallTool) -> dict[str, Any]:
    return {**CALLS[request.toolbox.calls_left % len(CALLS)], "video": request.videos[0].video_id}


STOPS = (type, ModuleType, FrameType)
OTHERS = {"asyncio", "_asyncio", "threading", "_thread", "lance", "pyarrow", "weakref", "_weakrefset", "_pytest"}
"""Their objects lead to the whole process."""


def reachable(*roots: object) -> list[object]:
    """Everything that can be reached from some objects: what they hold, are bound to and close over."""
    seen: dict[int, object] = {}
    left: list[object] = list(roots)
    while left:
        value = left.pop()
        if id(value) in seen or isinstance(value, STOPS) or type(value).__module__.split(".")[0] in OTHERS:
            continue
        seen[id(value)] = value
        if isinstance(value, FunctionType):  # not the globals of its module
            left += [value.__closure__, value.__defaults__, value.__kwdefaults__, value.__dict__]
        else:
            left += gc.get_referents(value)
    return list(seen.values())


WORD, START_S, END_S = "sesame", 31.4159, 42.4242
CLOCK, CLOCK_S = "1383:47-1411:13", (83027, 84673)
"""As LVBench writes a time, and what it means."""
POSITION = (10101, 20202)
NUMBERS = (START_S, END_S, *CLOCK_S, *POSITION)
WORDS = (WORD, *CLOCK.split("-"))
WHOLE_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?!\w)")

BOX = {"14": [{"img_id": 14, "top": POSITION[0], "left": POSITION[1], "width": 3, "height": 4, "label": WORD}]}
TRUTHS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "egoschema": (kit.ego_row(google_drive_id=WORD), kit.ego_row(truth=1)),
    "egoschema-full": (kit.ego_row(google_drive_id=WORD), kit.ego_row(truth=None)),
    "nextqa": (kit.nextqa_row(frame_count=POSITION[0], width=POSITION[1]), kit.nextqa_row(answer=0, type="TN")),
    "intentqa": (kit.intentqa_row() | {"action": WORD}, kit.intentqa_row(answer=0)),
    "lvbench": (
        kit.lvbench_row(type=WORD, questions=[kit.lvbench_question(time_reference=CLOCK)]),
        kit.lvbench_row(questions=[kit.lvbench_question(answer="A", time_reference="00:01-00:03")]),
    ),
    "video-mme": (kit.video_mme_row(task_type=WORD, url=WORD), kit.video_mme_row(answer="A", duration="short")),
    "mmbench-video": (kit.mmbench_row(answer=f"A {WORD} ladder."), kit.mmbench_row(answer="A boat.")),
    "longvideobench": (
        kit.longvideobench_row(position=POSITION, question_wo_referring_query=WORD, topic_category=WORD),
        kit.longvideobench_row(correct_choice=3, position=[1, 2], duration=20.5),
    ),
    **dict.fromkeys(
        ("longtvqa", "longtvqa-plus"),
        (
            kit.longtvqa_row(occur_clip=f"s05e06_{WORD}", ts=[START_S, END_S], bbox=BOX),
            kit.longtvqa_row(answer="a1", occur_clip="s05e06_seg02_clip_01", ts=[1.0, 2.0]),
        ),
    ),
    "own": (
        kit.own_row(category=WORD, evidence=[[START_S, END_S]]),
        kit.own_row(answer="a ladder", evidence=[[1.0, 2.0]]),
    ),
    "own-open": (
        kit.own_open_row(category=WORD, evidence=[[START_S, END_S]]),
        kit.own_open_row(evidence=[[1.0, 2.0]]),
    ),
    "mlvu": (kit.mlvu_row(question_type=WORD), kit.mlvu_row(answer="a drum")),
    "mlvu-open": (
        kit.mlvu_open_row(answer=f"He says {WORD}.", scoring_points=WORD),
        kit.mlvu_open_row(answer="He rings."),
    ),
    "minerva": (
        kit.minerva_row(reasoning=f"At {CLOCK} it is {WORD}.", question_type=WORD, split=WORD, category=WORD),
        kit.minerva_row(answer=kit.CHOICES[1], answer_id=1),
    ),
    "video-mme-v2": (
        kit.video_mme_v2_row(second_head=WORD, third_head=WORD, url=WORD),
        kit.video_mme_v2_row(answer="A"),
    ),
    "cg-bench": (
        kit.cg_bench_row(domain=WORD, sub_category=WORD, clue_intervals=[[START_S, END_S]]),
        kit.cg_bench_row(answer=kit.CHOICES[0], right_answer="A", clue_intervals=[[1, 2]]),
    ),
}
"""By benchmark a published row with secrets wherever something is true, and the same question with another truth."""

FILMS = (
    "uid-1",
    "111",
    "aBc-1_x",
    "fFj-1_x",
    "v1_processed",
    "xyz",
    "film-01",
    "movie101_66",
    "subPlot_new_all_69",
    "001",
    "9kGB4ITqFjI",
    *(f"s05e06_seg02_clip_0{n}" for n in "01"),
)
SHORT = {
    "kino": "kino:memory=8",
    "videoagent2": "videoagent2:rounds=6,segment_s=15",
    "videotree": "videotree:max_breadth=4,breadth=4",
}
SPECS = [SHORT.get(each.name, each.name) for each in VARIANTS]
EVERYONE = parse_contenders(SPECS)
SOME = parse_contenders(["uniform", "eea"])
"""Where a form of questions is read, for all agents get the same of it; everyone answers `ASKED_BY_ALL`."""
ASKED_BY_ALL = {"own", "mlvu-open"}
VERIFIED = parse_contenders(["eea:memory=4", "videoagent2:rounds=2,segment_s=15", "uniform", "blind"])
VERIFYING = AnswerRules(verify=True, force_choice=True)

NOT_OF_A_RUN = {
    *("Recall", "JudgeAnswer", "SummarizePart", "JudgeMoments", "ExtractRows"),
    *("PlanCollection", "AnswerFromRows"),
}
"""Requests of follow-up questions, of the judge, who knows the truth, of `add chapters`, `--verify`, `extract` and
`ask --agent all`."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A film of half a minute for every video that the forms name, with pictures, detections and words."""
    captions = film(3, 30, {10: ("red kite desert", 5)})
    library = make_library(tmp_path_factory.mktemp("leaks"), dict.fromkeys(FILMS, captions), picture())
    ids = [row.video_id for row in library.videos()]
    seen = [sighting(second, "kite", 0.7, 0.2, 1) for second in range(6, 11)]
    library.additions.add_detections(dict.fromkeys(ids, seen), "m")
    library.additions.complete("detections", "m", {each: len(seen) for each in ids}, {})
    said = {each: [SpeechRow(each, 10.0, 12.0, "Look at the kite.", "sidecar")] for each in ids}
    library.writer.add_speech(said)
    return library


def found(*roots: object) -> list[object]:
    """The secrets that can be reached from some objects."""
    return true_ones(reachable(*roots))


def true_ones(objects: Sequence[object]) -> list[object]:
    return [each for each in objects if isinstance(each, Target | Item) or secret(each)]


def secret(value: object) -> bool:
    if isinstance(value, str):
        return any(word in value for word in WORDS) or any(map(planted_number, map(float, WHOLE_NUMBER.findall(value))))
    return isinstance(value, int | float) and planted_number(value)


def planted_number(number: float) -> bool:
    return any(abs(number - each) < 0.02 for each in NUMBERS)


@dataclass
class Watched:
    """The record of a run: the truth that agents could reach, the inputs they got, and the requests they made."""

    looking: bool
    unsure: bool = False
    """True for a model that is never sure enough to answer before it must."""
    agent: str = ""
    reached: list[object] = field(default_factory=list)
    looked: set[tuple[str, str]] = field(default_factory=set)
    crossed: list[object] = field(default_factory=list)
    requests: list[Request[Any]] = field(default_factory=list)

    def reply(self, request: Request[Any]) -> Any:
        """Play the model. When an agent asks for something for the first time, look at all that it stands on."""
        self.requests.append(request)
        about = (self.agent, type(request).__name__)
        if self.looking and about not in self.looked:
            self.looked.add(about)
            beheld = reachable(*(frame.f_locals for frame in beneath(inspect.currentframe())))
            assert {Session, Environment, Library} <= {type(each) for each in beheld}
            self.reached += true_ones(beheld)
        if self.unsure and isinstance(request, Assess):
            return {"reasoning": "", "option": None, "answer": None, "confidence": 0, "evidence": []}
        if self.unsure and isinstance(request, AnswerFrames | Guess):
            return "I do not know."
        return leading(request)


def beneath(frame: FrameType | None) -> Iterator[FrameType]:
    """The frames of a call stack that are an agent's, or of who puts questions to it."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(("kinodex.agent.", "kinodex.jobs.eval.solve")):
            yield frame
        frame = frame.f_back


class OverTheWire:
    """The same model behind a server: one request at a time, so that the server knows what to say."""

    name = "scripted"
    has_language = True

    def __init__(self, model: OpenAIModel, server: ChatServer, watched: Watched) -> None:
        self.model, self.server, self.watched, self.lock = model, server, watched, asyncio.Lock()

    async def ask(self, request: Request[R]) -> Exchange[R]:
        async with self.lock:
            said = self.watched.reply(request)
            said = said["text"] if request.form == "text" and isinstance(said, dict) else said
            self.server.reply = lambda body: calling(said) if request.form == "tools" else said
            return await self.model.ask(request)


@cache
def shared(uri: str, video_ids: tuple[str, ...]) -> Environment:
    """Give all runs one environment of some videos, as all items of a run share it."""
    library = Library.open(uri)
    rows = {each.video_id: each for each in library.videos()}
    return Environment.of(library, [rows[each] for each in video_ids], lambda texts: embed_words(texts))


def put(
    library: Library,
    name: str,
    row: Mapping[str, Any],
    folder: Path,
    everyone: Sequence[Contender] = EVERYONE,
    server: ChatServer | None = None,
    looking: bool = True,
    rules: AnswerRules = USUAL,
    unsure: bool = False,
) -> Watched:
    """Put the question of a published row to contenders, as a run does; over the wire if there is a server."""
    folder.mkdir()
    setting = RunContext(library.uri, ModelChoice("scripted", "http://127.0.0.1:9/v1"), Budget())
    plan, items = make_plan(RunRequest(name, published(folder, name, row), tuple(everyone)), setting)
    watched = Watched(looking, unsure=unsure, crossed=[setting])

    @asynccontextmanager
    async def who_asks() -> AsyncIterator[Solve]:
        async with AsyncExitStack() as stack:
            model: Model = ScriptedModel(watched.reply)
            if server is not None:
                wired = await stack.enter_async_context(OpenAIModel(Role(base_url=server.base_url, model="tester")))
                model = OverTheWire(wired, server, watched)
            ask = make_solver(
                lambda ids: shared(library.uri, ids).without_shared_captions(),
                lambda environment: model,
                Budget(),
                rules,
                traces=looking,
            )

            async def asked(contender: Contender, question: ItemInput) -> SolvedItem:
                watched.agent = contender.name
                watched.crossed += [contender, question]
                return await ask(contender, question)

            yield asked

    run(plan, items, who_asks(), folder / "run", RunOptions(items=1))
    assert {each.contender for each in read_results(folder / "run") if not each.error} == {c.name for c in everyone}
    return watched


def kept(folder: Path) -> Iterator[str]:
    """All that is kept of the answers of a run: records and traces."""
    yield (folder / "run" / ANSWERS).read_text()
    for path in (folder / "run" / TRACES).rglob("*.gz"):
        yield gzip.decompress(path.read_bytes()).decode()


def test_the_forms_are_all_there_is_and_hold_what_is_looked_for(tmp_path: Path) -> None:
    assert set(TRUTHS) == set(BENCHMARKS)
    for name, (planted, another) in TRUTHS.items():
        read: list[Item] = []
        for row in (planted, another):
            folder = tmp_path / f"{name}-{len(read)}"
            folder.mkdir()
            read += read_benchmark(name, published(folder, name, row)).items
        one, other = read
        assert one.question == other.question and one.truth != other.truth
        assert one.truth in found({"a": [lambda hidden=one: hidden]})
        assert found(planted)
    assert found(ItemInput("1", one.question, ("v",)), Question("31 kites at 31.3 s?")) == []
    assert secret("a kite at 31.42 s") and secret("[1, 42.4242]") and secret(f"from {CLOCK.partition('-')[0]}")


@pytest.mark.slow
def test_nothing_of_the_truth_reaches_who_answers_and_another_truth_changes_nothing(
    library: Library, tmp_path: Path
) -> None:
    for name, (planted, another) in TRUTHS.items():
        asked, folder = EVERYONE if name in ASKED_BY_ALL else SOME, tmp_path / name
        watched = put(library, name, planted, folder, asked)
        asking = {each.name for each in asked if each.find_variant().roles}
        assert {agent for agent, _ in watched.looked} == asking, name
        assert watched.reached == found(*watched.crossed, *watched.requests) == [], name
        assert [text for text in kept(folder) if secret(text)] == [], name
        same = put(library, name, another, tmp_path / f"{name}, another", asked, looking=False)
        assert [*map(request_key, same.requests)] == [*map(request_key, watched.requests)], name


@pytest.mark.slow
def test_ablations_and_every_tool_say_nothing_of_it_either(library: Library, tmp_path: Path) -> None:
    truth = TRUTHS["longtvqa"][0]
    watched = put(library, "longtvqa", truth, tmp_path / "run", parse_contenders(SPECS, ablations=True))
    verified = put(library, "longtvqa", truth, tmp_path / "verified", VERIFIED, rules=VERIFYING, unsure=True)
    requests = [*watched.requests, *verified.requests]
    assert watched.reached == verified.reached == found(*watched.crossed, *verified.crossed, *requests) == []
    assert {type(each).__name__ for each in requests} == {kind.__name__ for kind in KINDS} - NOT_OF_A_RUN
    traces = "".join(kept(tmp_path / "run"))
    assert not secret(traces)
    assert all(f'"{tool}"' in traces for tool in ("overview", "skim", "focus", *(call["tool"] for call in CALLS)))


@pytest.mark.slow
def test_over_the_wire_every_byte_is_the_same_whatever_is_true(library: Library, tmp_path: Path) -> None:
    bodies: list[list[str]] = []
    for row in TRUTHS["longtvqa"]:
        with ChatServer(lambda body: "") as server:
            put(library, "longtvqa", row, tmp_path / str(len(bodies)), server=server, looking=False)
        assert server.problems == []
        bodies.append([json.dumps(seen.body) for seen in server.seen])
    assert [body for body in bodies[0] if secret(body)] == []
    assert bodies[0] == bodies[1]


@pytest.mark.slow
def test_nobody_who_asks_imports_what_knows_the_truth() -> None:
    modules = "kinodex.jobs.eval.solve, kinodex.jobs.eval.processes, kinodex.agent.ask"
    code = f"import sys, {modules}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    knowing = {
        "kinodex.jobs.eval.items",
        "kinodex.jobs.eval.folder",
        "kinodex.jobs.eval.scoring.answers",
        "kinodex.jobs.known_answers",
    }
    assert knowing & set(loaded) == set()
