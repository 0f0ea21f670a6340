"""Every agent of the catalogue, whole, over the wire: a drawn film, a real library, a server that answers by rules."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.answer import Answer
from kinodex.agent.ask import ask, default_parameters
from kinodex.agent.catalogue import VARIANTS
from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.models.roles import Role
from kinodex.agent.protocol.exchange import Models
from kinodex.agent.protocol.question import Question
from kinodex.agent.traces.events import Event, Exchanged
from kinodex.agent.traces.replay import ReplayModel
from kinodex.agent.traces.trace import trace_to
from kinodex.agent.variants.base import Variant
from kinodex.agent.variants.settings import with_settings
from kinodex.agent.videos.environment import Environment
from kinodex.jobs.ask_many import Task, ask_many
from tests.support.libraries.sketch_library import SketchLibrary
from tests.support.servers.chat_server import ChatServer, Seen
from tests.support.servers.rule_server import MODEL, Rules

STATUSES = {"answered", "insufficient_evidence", "evidence_only", "budget_exhausted"}
SEEING = [variant for variant in VARIANTS if variant.sees_video]
READING: dict[str, dict[str, Any]] = {"kino": {}, "longvideoagent": {}, "videoseek": {}}
"""Agents that find lines and read them, with settings; others use what is said to find frames."""
ABLATIONS = [(variant, name) for variant in VARIANTS for name in variant.ablations]
TOGETHER = 4
LABEL = re.compile(r"frame (\d+) at ([\d.]+) s(?: of video (\S+))?")
NOBODY: Models = {}
"""Stands in a task until `answered` gives it the model behind the server."""


@pytest.fixture(scope="module")
def sketch(copy_sketches: Callable[[Path], SketchLibrary], tmp_path_factory: pytest.TempPathFactory) -> SketchLibrary:
    return copy_sketches(tmp_path_factory.mktemp("sketch"))


@pytest.fixture(scope="module")
def rules() -> Rules:
    return Rules()


@pytest.fixture
def server(rules: Rules) -> Iterator[ChatServer]:
    with ChatServer(rules, models=[MODEL]) as server:
        yield server
    assert server.problems == []
    for request in server.seen:
        check_order(request)


def check_order(request: Seen) -> None:
    """Frames come in the order of their numbers, of a last call in that of time, each after its own, and none twice."""
    labels = [LABEL.fullmatch(frame.label) for frame in request.frames]
    numbers = [int(label[1]) for label in labels if label]
    assert len(numbers) == len(labels)
    assert len(numbers) == len(set(numbers))
    times_s = [(label[3] or "", float(label[2])) for label in labels if label]
    assert numbers == sorted(numbers) or times_s == sorted(times_s)
    assert len({(label[2], label[3]) for label in labels if label}) == len(labels)


def every(variants: Sequence[Variant]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("variant", variants, ids=lambda variant: variant.name)


def answered(server: ChatServer, *tasks: Task) -> list[Answer]:
    async def run() -> list[Answer]:
        async with OpenAIModel(Role(base_url=server.base_url, model=MODEL)) as model:
            return await ask_many([replace(task, models=model) for task in tasks], TOGETHER)

    return asyncio.run(run())


def check_bill(answer: Answer, environment: Environment, events: list[Event]) -> None:
    """The ledger says what was really asked and shown, and the evidence lies in the videos."""
    asked = [event for event in events if isinstance(event, Exchanged)]
    shown = {(frame.video_id, frame.frame_no) for event in asked for frame in event.request.frames}
    ledger = answer.ledger
    low = sum("may be of 10 or of 100" in each.request.complaint for each in asked)  # asked again: which scale it is
    assert (ledger.calls, ledger.frames, ledger.invalid_replies) == (len(asked), len(shown), low)
    assert ledger.frame_shows == sum(len(event.request.frames) for event in asked)
    assert ledger.input_tokens == sum(event.exchange.usage.input_tokens for event in asked)
    assert ledger.frames <= ledger.index_frames == environment.index_frames
    videos = {video.video_id: video for video in environment.videos}
    for part in answer.evidence:
        assert videos[part.video_id].start_s <= part.start_s < part.end_s <= videos[part.video_id].end_s


@pytest.mark.slow
@every(VARIANTS)
def test_a_run_over_the_wire_ends_with_a_bill_and_its_trace_replays(
    variant: Variant, sketch: SketchLibrary, server: ChatServer, tmp_path: Path
) -> None:
    task, environment = sketch.known[0], sketch.films["harbour"]
    events: list[Event] = []
    with trace_to(tmp_path / "run.jsonl") as write:

        def on_event(event: Event) -> None:
            events.append(event)
            write(event)

        [answer] = answered(server, Task(task.question, environment, NOBODY, variant.name, on_event=on_event))
    assert answer.status in STATUSES
    assert (answer.option is None) == (answer.text is None)
    check_bill(answer, environment, events)
    replay = ReplayModel(tmp_path / "run.jsonl")
    again = asyncio.run(ask(task.question, environment, replay, agent=variant.name))
    assert without_clock(again) == without_clock(answer)


def without_clock(answer: Answer) -> Answer:
    return replace(answer, ledger=replace(answer.ledger, seconds=0.0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "ablation"), ABLATIONS, ids=[f"{variant.name}, {name}" for variant, name in ABLATIONS]
)
def test_an_ablation_is_understood_and_played(
    variant: Variant, ablation: str, sketch: SketchLibrary, server: ChatServer
) -> None:
    task, environment = sketch.known[0], sketch.films["harbour"]
    parameters = with_settings(default_parameters(variant.name, environment), variant.ablations[ablation])
    [answer] = answered(server, Task(task.question, environment, NOBODY, variant.name, parameters))
    assert answer.status in STATUSES
    assert answer.ledger.invalid_replies == 0


@pytest.mark.slow
@every(SEEING)
def test_what_sees_the_video_does_better_than_chance(
    variant: Variant, sketch: SketchLibrary, server: ChatServer
) -> None:
    tasks = [Task(each.question, sketch.films[each.film], NOBODY, variant.name) for each in sketch.known]
    answers = answered(server, *tasks)
    right = sum(each.is_right(answer) for each, answer in zip(sketch.known, answers, strict=True))
    given = sum(answer.option is not None for answer in answers)
    assert right > max(len(answers) / 4, given / 2)


@pytest.mark.slow
@every(VARIANTS)
def test_an_open_question_about_several_videos_is_answered_in_words_or_not_at_all(
    variant: Variant, sketch: SketchLibrary, server: ChatServer
) -> None:
    events: list[Event] = []
    question = Question("Where is the red cat?")
    [answer] = answered(server, Task(question, sketch.everything, NOBODY, variant.name, on_event=events.append))
    assert answer.status in STATUSES
    assert answer.option is None
    assert answer.status != "answered" or answer.text
    check_bill(answer, sketch.everything, events)


@pytest.mark.slow
@every([variant for variant in SEEING if variant.name in READING])
def test_what_is_only_said_is_found_in_the_transcript(
    variant: Variant, sketch: SketchLibrary, server: ChatServer
) -> None:
    """By agents that search for lines and read them; uniform is given those at the times of its frames."""
    environment = sketch.films["harbour"]
    [video] = environment.videos
    [line] = [row for row in environment.lines(video.video_id, ["speech"]) if "code word" in row.text]
    word = line.text.rpartition(" ")[2].strip(".")
    question = Question("What is the code word?", ("velvet", word, "granite"))
    parameters = with_settings(default_parameters(variant, environment), READING[variant.name])
    [answer] = answered(server, Task(question, environment, NOBODY, variant.name, parameters))
    assert answer.text == word
    # A master of LongVideoAgent that answers at once, from the words that it is given at first, has no evidence.
    assert not answer.evidence or any(part.start_s <= line.start_s < part.end_s for part in answer.evidence)
