"""Forecasts: what a command that asks models will cost, before anything is sent. `--dry-run`.

May import all of `agent`, of `index` the library and its rows, and of `jobs` what it forecasts: the plans of
`jobs.evaluation`, the samples of `jobs.benchmarks` and `jobs.synthetic`, the settings of `jobs.train`, and
`jobs.model_choice`.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from kinodex.agent.ask import ask, check_fit, find_variant
from kinodex.agent.environment import Environment
from kinodex.agent.errors import NeedsLanguage
from kinodex.agent.library_videos import VideoSource
from kinodex.agent.limits import Budget, Ledger
from kinodex.agent.models import rules
from kinodex.agent.models.completion import parse_reply
from kinodex.agent.models.openai_model import wire_messages
from kinodex.agent.models.roles import DEFAULT_ROLE, Role
from kinodex.agent.models.rules import RuleBasedModel
from kinodex.agent.prompts import PictureRule, estimate_tokens, text_tokens
from kinodex.agent.protocol import AnswerRules, Exchange, Question, R, Request, Segment, ShownFrame, Usage
from kinodex.agent.requests.answer import example_answer
from kinodex.agent.requests.describe import DescribeSegment, SummarizePart
from kinodex.agent.requests.tree import Decide
from kinodex.agent.trace import PriorEvidence
from kinodex.agent.variants import longvideoagent_requests as longvideoagent
from kinodex.agent.variants import videoseek_requests as videoseek
from kinodex.agent.variants.base import Variant
from kinodex.agent.variants.longvideoagent_training import MASTER_REQUESTS
from kinodex.agent.variants.videoagent2_requests import AdjustPlan, Assess, CallTool, CreatePlan
from kinodex.index.library import Library
from kinodex.index.rows import ClipRow, VideoRow
from kinodex.jobs.add.summaries import Written, read_film, write_contents
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.contenders import Contender, RunContext
from kinodex.jobs.eval.folder import PLAN, RunPlan, comparable, read_plan, read_results
from kinodex.jobs.eval.items import Item
from kinodex.jobs.eval.plan import RunRequest, check_same, make_plan
from kinodex.jobs.eval.run import MAX_FRAMES, is_asked_again
from kinodex.jobs.eval.solve import EnvironmentOf, environments_of
from kinodex.jobs.known_answers import KnownQuestion
from kinodex.jobs.library import frames_between
from kinodex.jobs.models import ModelChoice, endpoint_roles
from kinodex.jobs.train.rollouts import MasterSettings

# Forecast of `kinodex add captions` at an endpoint: its requests are made from the library, for some segments.

SEGMENTS_A_VIDEO, SAMPLED_VIDEOS = 4, 16
"""Segments that are counted, spread evenly over some videos."""


def pending_videos(
    library: Library, model: str, video_ids: Collection[str] | None, again: Collection[str], stage: str = "captions"
) -> list[VideoRow]:
    """List the videos that a run would work on: those that lack the stage by the model, and those `again`."""
    lacking = {row.video_id for row in library.additions.pending(stage, model)}.union(again)
    chosen = lacking if video_ids is None else lacking.intersection(video_ids)
    return [row for row in library.videos() if row.video_id in chosen]


def forecast_captions(
    library: Library, videos: Sequence[VideoRow], role: Role, frames_a_segment: int, price_share: float = 1.0
) -> Forecast:
    """Expect the costs of captions of these videos: each segment one call, of the mean size of those counted."""
    requests = [
        request
        for row in videos[:: max(1, len(videos) // SAMPLED_VIDEOS)]
        for request in _requests(library, row, frames_a_segment)
    ]
    segments = sum(row.segments for row in videos)
    share = segments / max(1, len(requests))
    sizes = [estimate_tokens(wire_messages(each, role.image_side_px, role.reasoning, role.detail)) for each in requests]
    replies = [text_tokens(json.dumps(each.example())) for each in requests]
    cost = price_share * share * sum(role.price.usage(*each, 0).cost for each in zip(sizes, replies, strict=True))
    frames = share * sum(len(each.frames) for each in requests)
    return Forecast("captions", segments, segments, frames, share * sum(sizes), share * sum(replies), cost, "segments")


def _requests(library: Library, video: VideoRow, frames_a_segment: int) -> list[DescribeSegment]:
    """Some requests as a run would send them."""
    segments = library.segments(video.video_id)
    some = segments[:: max(1, len(segments) // SEGMENTS_A_VIDEO)]
    shown = frames_between(library, video, [(each.start_s, each.end_s) for each in some], frames_a_segment)
    return [
        DescribeSegment(
            segment=Segment(each.segment_no, each.video_id, each.start_s, each.end_s),
            frames=tuple(ShownFrame(**asdict(frame)) for frame in frames),
        )
        for each, frames in zip(some, shown, strict=True)
    ]


# A forecast: calls, frames, tokens and money that questions or captions are expected to cost.

REHEARSAL = "rehearsal"


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected costs of one system. `questions` are those that are still to be asked, or segments to be captioned.

    `frames` are different frames that are shown, added up over the questions, as in ledgers. `cost` is 0 without
    prices. `basis` says where the figures come from: a rehearsal, or a past run.
    """

    system: str
    questions: int
    calls: float
    frames: float
    input_tokens: float
    output_tokens: float
    cost: float
    basis: str = REHEARSAL
    frames_a_question: float = 0.0
    """With those behind captions that the library holds: what a control gets that is to see as many."""


COSTS = ("calls", "frames", "input_tokens", "output_tokens", "cost")


def from_ledgers(system: str, ledgers: Sequence[Ledger], questions: int, basis: str) -> Forecast:
    """Expect for each question the mean of these ledgers, of which there is one or more."""
    share = questions / len(ledgers)
    sums = {name: share * sum(getattr(each, name) for each in ledgers) for name in COSTS}
    each = sum(ledger.frames_with_kept for ledger in ledgers) / len(ledgers)
    return Forecast(system, questions, **sums, basis=basis, frames_a_question=each)


def add_up(forecasts: Sequence[Forecast]) -> Forecast:
    """Add forecasts up to a row of all."""
    sums = {name: sum(getattr(each, name) for each in forecasts) for name in COSTS}
    return Forecast("all", sum(each.questions for each in forecasts), **sums, basis="")


def table(forecasts: Sequence[Forecast], unit: str = "questions", advice: str = "") -> str:
    """Write forecasts as Markdown, for people; `unit` is the heading of `questions`, `advice` a last sentence."""
    rows = [*forecasts, *([add_up(forecasts)] if len(forecasts) > 1 else [])]
    lines = [
        f"| | {unit} | calls | frames | tokens in | tokens out | cost | from |",
        "|---" * 8 + "|",
        *(
            f"| {each.system} | {each.questions:,} | {each.calls:,.0f} | {each.frames:,.0f} | {each.input_tokens:,.0f} "
            f"| {each.output_tokens:,.0f} | {each.cost:.4g} | {each.basis} |"
            for each in rows
        ),
        "",
        "Expected; nothing was sent. Tokens of a rehearsal are estimates: four characters a token, pictures by "
        f"OpenAI's tiles. {advice}".strip(),
    ]
    return "\n".join(lines)


# Past runs as the basis of a forecast: ledgers of the same agent with the same models on the same library.

LEAST_QUESTIONS = 5
"""Fewer questions than these say too little of a run."""
ALIKE = (
    "benchmark",
    "library",
    "space",
    "models",
    "contents",
    "prices",
    "budget",
    "rules",
    "subtitles",
    "screen_text",
    "keep_captions",
)
"""Fields of a plan on which the costs of a question depend; `rules` with the calls of --verify."""


def past_ledgers(out: Path, plan: RunPlan, system: Contender) -> tuple[list[Ledger], str]:
    """Ledgers of a system in the newest run that asked alike, in `out` or a folder beside it, and that folder's name.

    Empty if there is none, of at least `LEAST_QUESTIONS` questions. Folders that cannot be read are left out.
    """
    for folder in _folders(out):
        try:
            results = read_results(folder) if _asks_alike(read_plan(folder), plan, system) else ()
        except (UsageError, OSError):  # another version of kinodex wrote it, or it is damaged: a neighbour's folder
            continue
        own = [each.ledger for each in results if each.contender == system.name and not each.error]
        if len(own) >= LEAST_QUESTIONS:
            return own, folder.name
    return [], ""


def _folders(out: Path) -> list[Path]:
    """The folder itself, then those beside it, newest first."""
    if not out.parent.is_dir():
        return []
    times = {path: _written_at(path) for path in out.parent.iterdir()}
    return sorted((path for path in times if times[path]), key=lambda path: (path == out, times[path]), reverse=True)


def _written_at(folder: Path) -> float:
    """The time at which a run's plan was written; 0 where there is none, or none that may be read."""
    try:
        return (folder / PLAN).stat().st_mtime if (folder / PLAN).is_file() else 0.0
    except OSError:
        return 0.0


def _asks_alike(past: RunPlan, now: RunPlan, system: Contender) -> bool:
    same = all(comparable(past, name) == comparable(now, name) for name in ALIKE)
    unchanged = all(now.states.get(id_, state) == state for id_, state in past.states.items())
    return same and unchanged and system in past.contenders


# Rehearse questions: the agent itself runs on the library, and a stand-in answers in the place of the models.
#
# Nothing is sent and nothing is written. Of many questions some are rehearsed, spread evenly, and stand for the rest. A
# caption that an agent keeps in the library is paid once, and the next question about that video has other parts of it
# captioned. So several questions about a video are rehearsed, and what is kept is expected to grow by as much with each
# further question as it did there, until each frame of the video is captioned.

REHEARSED = 8
"""Questions of a system that are rehearsed at most."""
KEPT_KINDS = ("DescribeSegment", "Summarize")
"""Requests whose replies are kept in the library, so that a video pays for them once."""

HALF_OF_LONG = (0.0, 1 / 2)
RESTLESS = {"eea": (1 / 6, 1 / 2), **dict.fromkeys(("vca", "videoseek", "longvideoagent"), HALF_OF_LONG)}
"""The share of questions for which a search uses all its rounds, in videos of under and over `SHORT_S`: those that come
near to the rule server's on sketch films of less than a minute and of an hour."""
SHORT_S = 300.0

Task = tuple[Question, tuple[str, ...]]
"""A question and the ids of its videos."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The settings of one system's rehearsal; `roles` are the endpoints whose prices and names count.

    `has_language` is False if the built-in model is to answer.
    """

    system: str
    agent: str | Variant
    settings: Mapping[str, str | bool | int | float]
    roles: Mapping[str, Role]
    budget: Budget
    rules: AnswerRules = field(default_factory=AnswerRules)
    prior: PriorEvidence | None = None
    has_language: bool = True


def rehearse(
    rehearsal: Rehearsal, tasks: Sequence[Task], environment_of: Callable[[tuple[str, ...]], Environment]
) -> Forecast:
    """Expect the costs of all tasks from a rehearsal of some, one after the other.

    A search is rehearsed twice, once to where it usually ends and once to its last round, and the two are weighed
    (`RESTLESS`). By the built-in model it is rehearsed once, since that is the stand-in.
    """
    some = _choose(tasks)
    share = _restless_share(rehearsal, environment_of(some[0][1])) if some else 0.0
    first = _expect(rehearsal, tasks, some, environment_of, restless=False)
    return _mix(first, _expect(rehearsal, tasks, some, environment_of, restless=True), share) if share else first


def _restless_share(rehearsal: Rehearsal, environment: Environment) -> float:
    if not rehearsal.has_language:  # the built-in model is the stand-in: it ends where the run does
        return 0.0
    name = find_variant(rehearsal.agent).name
    short = max((video.duration_s for video in environment.videos), default=0.0) < SHORT_S
    return RESTLESS.get(name, (0.0, 0.0))[0 if short else 1]


def _mix(first: Forecast, second: Forecast, share: float) -> Forecast:
    names = (*COSTS, "frames_a_question")
    mixed = {name: (1 - share) * getattr(first, name) + share * getattr(second, name) for name in names}
    return replace(first, **mixed)


def _expect(
    rehearsal: Rehearsal,
    tasks: Sequence[Task],
    some: Sequence[Task],
    environment_of: Callable[[tuple[str, ...]], Environment],
    *,
    restless: bool,
) -> Forecast:
    """Rehearse some of the tasks for all."""
    bills, ledgers = asyncio.run(run_rehearsal(rehearsal, some, environment_of, restless))
    environments = [environment_of(video_ids) for _, video_ids in some]
    kept = [_kept(bill) if each.keep_captions else _Kept() for bill, each in zip(bills, environments, strict=True)]
    frames = sum(each.index_frames for each in environments) / max(1, len(some))
    kept_of_all = _expect_kept(tasks, some, kept, frames)
    share = len(tasks) / max(1, len(some))
    costs = {
        name: share * sum(getattr(ledger, name) - getattr(own, name) for ledger, own in zip(ledgers, kept, strict=True))
        + getattr(kept_of_all, name)
        for name in COSTS
    }
    each = sum(ledger.frames_with_kept for ledger in ledgers) / max(1, len(ledgers))
    return Forecast(rehearsal.system, len(tasks), **costs, frames_a_question=each)


@dataclass(frozen=True, slots=True)
class _Kept:
    """Costs of replies that are kept, by the names of a ledger."""

    calls: float = 0.0
    frames: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    cost: float = 0.0


def _kept(bill: Bill) -> _Kept:
    """Sum up the calls whose replies are kept."""
    usage = sum((bill.usage.get(kind, Usage()) for kind in KEPT_KINDS), Usage())
    calls, frames = (sum(counts[kind] for kind in KEPT_KINDS) for counts in (bill.calls, bill.frames))
    return _Kept(calls, frames, usage.input_tokens, usage.output_tokens, usage.cost)


def _expect_kept(tasks: Sequence[Task], some: Sequence[Task], kept: Sequence[_Kept], frames_a_video: float) -> _Kept:
    """Expect what is kept for all tasks: of each video the first question's, and growth with each further one.

    The growth ends where the kept captions would show more than `frames_a_video`.
    """
    firsts = {video_ids: place for place, (_, video_ids) in reversed(list(enumerate(some)))}.values()
    first = _mean([kept[place] for place in firsts])
    growth = _mean([each for place, each in enumerate(kept) if place not in firsts])
    videos = len({video_ids for _, video_ids in tasks})
    further: float = len(tasks) - videos
    if growth.frames:
        further = min(further, videos * max(0.0, frames_a_video - first.frames) / growth.frames)
    return _Kept(**{name: videos * getattr(first, name) + further * getattr(growth, name) for name in COSTS})


def _mean(kept: Sequence[_Kept]) -> _Kept:
    return _Kept(**{name: sum(getattr(each, name) for each in kept) / max(1, len(kept)) for name in COSTS})


async def run_rehearsal(
    rehearsal: Rehearsal,
    tasks: Sequence[Task],
    environment_of: Callable[[tuple[str, ...]], Environment],
    restless: bool,
) -> tuple[list[Bill], list[Ledger]]:
    """Run the agent on each of these tasks; gives the bill by kind of request, and the ledger, of each task."""
    bills, ledgers = [], []
    captions: list[ClipRow] = []
    described: list[str] = []
    for question, video_ids in tasks:
        bill = Bill(captions=described)
        environment = without_writing(environment_of(video_ids), captions)
        answer = await ask(
            question,
            environment,
            stand_ins(rehearsal.roles, environment, bill, restless=restless),
            agent=rehearsal.agent,
            parameters=rehearsal.settings,
            budget=replace(rehearsal.budget, seconds=None),
            rules=rehearsal.rules,
            seen=rehearsal.prior,
        )
        bills.append(bill)
        ledgers.append(answer.ledger)
    return bills, ledgers


def _choose(tasks: Sequence[Task]) -> list[Task]:
    """At most `REHEARSED` tasks: two or more of a video where a video has two on average, of videos spread evenly."""
    by_video: dict[tuple[str, ...], list[Task]] = {}
    for task in tasks:
        by_video.setdefault(task[1], []).append(task)
    several = 2 if len(tasks) >= 2 * len(by_video) else 1
    videos = _spread(list(by_video.values()), REHEARSED // several)
    return [task for of_video in videos for task in _spread(of_video, REHEARSED // len(videos))]


def _spread(items: Sequence[T], count: int) -> list[T]:
    """At most `count` items, spread evenly."""
    if len(items) <= count:
        return list(items)
    return [items[round(at * (len(items) - 1) / max(1, count - 1))] for at in range(count)]


# Forecasts of `kinodex ask` and `kinodex eval run`.

ENVIRONMENTS = 16
"""Videos whose vectors stay in memory."""


def forecast_question(
    question: Question,
    environment: Environment,
    choice: ModelChoice,
    agent: str,
    settings: Mapping[str, str],
    budget: Budget,
    rules: AnswerRules,
    prior: PriorEvidence | None = None,
) -> Forecast:
    """Expect the costs of one question. Raises as asking it does, before a model is asked."""
    variant = find_variant(agent)
    unpictured = [video.title for video in environment.videos if not video.has_pictures]
    check_fit(variant, has_language=choice.has_language, unpictured=unpictured)
    roles = endpoint_roles(choice)
    rehearsal = Rehearsal(variant.name, variant, settings, roles, budget, rules, prior, choice.has_language)
    return rehearse(rehearsal, [(question, ())], lambda video_ids: environment)


def forecast_run(request: RunRequest, context: RunContext, out: Path) -> list[Forecast]:
    """Expect the costs of each system of a run, of the questions that the folder holds no result of.

    Raises as `make_plan` does, and `UsageError` if the folder holds another run.
    """
    plan, samples = make_plan(request, context)
    done = set()
    if (out / PLAN).is_file():
        check_same(read_plan(out), plan, out)
        done = {(each.contender, each.item_id) for each in read_results(out) if not is_asked_again(each)}
    environment_of = _open_environments(context)
    forecasts: dict[str, Forecast] = {}
    for system in sorted(plan.contenders, key=lambda each: each.frames_of is not None):
        left = [each for each in samples if (system.name, each.item_id) not in done]
        tasks = _tasks(plan, left)
        ledgers, folder = past_ledgers(out, plan, system)
        if ledgers:
            forecasts[system.name] = from_ledgers(system.name, ledgers, len(left), f"past run {folder}")
            continue
        settings = _settings(system, forecasts)
        rehearsal = Rehearsal(
            system.name,
            system.find_variant(),
            settings,
            endpoint_roles(context.choice),
            context.budget,
            context.rules,
            has_language=context.choice.has_language,
        )
        forecasts[system.name] = rehearse(rehearsal, tasks, environment_of)
    return [forecasts[each.name] for each in plan.contenders]


def _open_environments(context: RunContext) -> EnvironmentOf:
    """As the solver does, but texts are embedded many at a time: the last digits of scores do not matter here."""
    library = Library.open(context.library)
    embed_text = library.load_space(context.space, "text").embed_text
    return environments_of(context, library, embed_text, None, ENVIRONMENTS)


def _tasks(plan: RunPlan, samples: Sequence[Item]) -> list[Task]:
    return [(each.question, plan.items[each.item_id]) for each in samples]


def _settings(system: Contender, before: Mapping[str, Forecast]) -> Mapping[str, str | bool | int | float]:
    """The settings of a system; a control that follows another gets as many frames as are expected of that one."""
    if system.frames_of is None:
        return system.settings
    frames = round(before[system.frames_of].frames_a_question)
    return {**system.settings, "frames": min(max(1, frames), MAX_FRAMES)}


# A model that is rehearsed in the place of a language model: it sends nothing, and its replies cost what they would.
#
# What the built-in model can answer (searches over a tree, descriptions in its own space, verdicts on notes) it
# answers;
# so a rehearsal ends where the library settles the question. Agents that think in words get usual replies
# (`stand_in_replies`), and every other request its own example. Tokens are estimates (`agent.prompts.token_estimate`).

DESCRIBED = 32
"""Segments that are described; the texts of these stand for those of further ones, which would take long."""


@dataclass(slots=True)
class Bill:
    """Calls and costs by the class of their request."""

    calls: Counter[str] = field(default_factory=Counter)
    frames: Counter[str] = field(default_factory=Counter)
    usage: dict[str, Usage] = field(default_factory=dict)
    captions: list[str] = field(default_factory=list)
    """Replies to the first requests to describe a segment."""

    def add(self, request: Request[R], usage: Usage) -> None:
        """Add one call."""
        kind = type(request).__name__
        self.calls[kind] += 1
        self.frames[kind] += len(request.frames)
        self.usage[kind] = self.usage.get(kind, Usage()) + usage


@dataclass(frozen=True, slots=True)
class StandIn:
    """The stand-in for the model of one role. It has that model's name, under which captions are stored."""

    role: Role
    rules: RuleBasedModel
    bill: Bill
    pictures: PictureRule = "openai"
    restless: bool = False
    """True for a search that goes on as long as it may, whatever it finds."""
    has_language: bool = True

    @property
    def name(self) -> str:
        return self.role.model

    async def ask(self, request: Request[R]) -> Exchange[R]:
        """Answer a request; see `kinodex.agent.protocol.Model`."""
        text = await self._text(request)
        role = self.role
        joint = role.joins_schemas
        messages = wire_messages(request, role.image_side_px, role.reasoning, role.detail, joint=joint)
        usage = role.price.usage(estimate_tokens(messages, self.pictures), text_tokens(text), 0)
        self.bill.add(request, usage)
        reply, invalid = parse_reply(text, request)
        return Exchange(reply, invalid, usage, raw=text)

    async def _text(self, request: Request[R]) -> str:
        """The reply as a model would write it."""
        text, captions = reply_in_words(request, restless=self.restless), self.bill.captions
        text = explore_on(request) if text is None and self.restless else text
        if text is not None:
            return text
        if isinstance(request, DescribeSegment) and len(captions) == DESCRIBED:
            return captions[self.bill.calls["DescribeSegment"] % DESCRIBED]
        try:
            text = (await self.rules.ask(request)).raw
        except NeedsLanguage:
            text = json.dumps(request.example())
        if isinstance(request, DescribeSegment):
            captions.append(text)
        return text


def stand_ins(
    roles: Mapping[str, Role], environment: Environment, bill: Bill, *, restless: bool = False
) -> dict[str, StandIn]:
    """A stand-in for each role, or for the one that has no endpoint, all with one bill."""
    rules = RuleBasedModel(environment)
    named = roles or {DEFAULT_ROLE: Role(model="builtin")}
    return {name: StandIn(role, rules, bill, restless=restless) for name, role in named.items()}


# Replies of a language model that is not there, for rehearsals: usable, of usual length, and made without a model.
#
# They are for agents that think in words. Such an agent goes on for a usual number of steps: nobody knows how long a
# language model will search. The numbers are those that come near to the rule server's on sketch films.

THOUGHT = "Nothing that is known so far shows it clearly; a closer look at the next part may."
SEEK_STEPS = 5
"""Calls of tools before VideoSeek answers."""
MASTER_TURNS = 3
"""Turns of a LongVideoAgent master, the last of which is its answer."""
ASSESSMENTS = 3
"""Assessments of VideoAgent2, the last of which is sure."""
SURE, UNSURE = 5, 2
LOOKS = ("OverviewVideo", "SkimRange", "FocusClip", "ReadFrames", "CaptionFrames")
"""Requests to tell what frames show: their examples are as long as what a model tells, and cost no time."""


def reply_in_words(request: Request[Any], *, restless: bool = False) -> str | None:
    """Write the reply to a request that takes language, as a model would send it; None for other requests.

    A `restless` searcher goes on to its last step, whatever it finds.
    """
    match request:
        case videoseek.Think():
            return THOUGHT
        case videoseek.Act():
            return json.dumps(_seek(request, request.steps if restless else SEEK_STEPS))
        case longvideoagent.ChooseAction() | longvideoagent.AnswerNow():
            return _master(request, restless)
        case Assess():
            return json.dumps(_assess(request))
        case CreatePlan() | AdjustPlan() | CallTool():
            return json.dumps(_plan(request))
    return json.dumps(request.example()) if type(request).__name__ in LOOKS else None


def explore_on(request: Request[Any]) -> str | None:
    """Write the decision to explore the best open segment; None if the request is for something else, or none is."""
    if not isinstance(request, Decide) or request.must_answer:
        return None
    open_ones = [each for each in request.candidates if each.explorable]
    if not open_ones:
        return None
    best = max(open_ones, key=lambda each: each.score or 0.0).segment.number
    blank: dict[str, object] = {"option": None, "answer": None, "evidence": []}
    return json.dumps({"reasoning": THOUGHT, "action": "explore", "segment": best, **blank})


def _seek(request: videoseek.Act, steps: int) -> Mapping[str, Any]:
    """Overview first, then parts of the first video one after the other, skimmed and looked at in turn."""
    step = sum(turn.speaker == "assistant" for turn in request.turns) // 2
    video, limits = request.videos[0], request.limits
    named = {"video": video.video_id if len(request.videos) > 1 else None}
    if step == 0:
        return {"tool": "overview", **named}
    if step >= steps:
        return {"tool": "answer", "sufficient": True, **example_answer(request.question, range(1, 2))}
    start_s = video.start_s + video.duration_s * (step - 1) / steps
    tool, length_s = (
        ("focus", limits.focus_most_s) if step % 2 else ("skim", max(limits.skim_least_s, video.duration_s / 2))
    )
    start_s = max(video.start_s, min(start_s, video.end_s - length_s))
    return {"tool": tool, **named, "start_s": start_s, "end_s": min(video.end_s, start_s + length_s), "query": THOUGHT}


def _master(request: longvideoagent.ChooseAction | longvideoagent.AnswerNow, restless: bool) -> str:
    """A clip is located, then looked at, then the answer comes."""
    turn = len(request.turns) // 2
    if isinstance(request, longvideoagent.AnswerNow) or (turn >= MASTER_TURNS - 1 and not restless):
        example = example_answer(request.question, ())
        return f"<think>{THOUGHT}</think><answer>{example['option'] or example['answer']}</answer>"
    tag = "visual_query" if turn % 2 and request.vision else "request_grounding"
    return f"<think>{THOUGHT}</think><{tag}>{request.question.text}</{tag}>"


def _assess(request: Assess) -> Mapping[str, Any]:
    """Sure if a note states an option outright, or after the usual number of assessments."""
    settled = request.number >= ASSESSMENTS or rules.is_settled(rules.judge(request.question, request.notes))
    example = example_answer(request.question, range(1, len(request.notes) + 1))
    return {**example, "reasoning": THOUGHT, "confidence": SURE if settled else UNSURE}


def _plan(request: CreatePlan | AdjustPlan | CallTool) -> Mapping[str, Any]:
    """The example's call, each time of another part of the first video."""
    example, video = dict(request.example()), request.videos[0]
    start_s = video.start_s + video.duration_s / (request.toolbox.calls_left + 2)
    example["action"] = {**example["action"], "start_s": start_s, "end_s": min(video.end_s, start_s + 8.0)}
    return example


# Forecast of `kinodex add summaries` at an endpoint: some videos are gone through, with made-up replies.

SUMMARY_VIDEOS = 8
"""Videos that are gone through, spread evenly over all: what they cost is taken for the others, second by second."""


def forecast_summaries(library: Library, videos: Sequence[VideoRow], role: Role, frames_a_scene: int) -> Forecast:
    """Expect the costs of summaries of these videos; nothing is sent."""
    some = videos[:: max(1, len(videos) // SUMMARY_VIDEOS)]
    requests: list[SummarizePart] = []

    def write(batch: Sequence[SummarizePart]) -> list[Written]:
        requests.extend(batch)
        return [Written(each.example()["title"], each.example()["summary"]) for each in batch]

    films = [read_film(library, row) for row in some]
    for film in films:
        write_contents(library, film, write, frames_a_scene, role.at_once)
    counted_s = sum(row.duration_s for row in some)
    share = sum(row.duration_s for row in videos) / counted_s if counted_s else 1.0
    sizes = [estimate_tokens(wire_messages(each, role.image_side_px, role.reasoning, role.detail)) for each in requests]
    replies = [text_tokens(json.dumps(each.example())) for each in requests]
    cost = share * sum(role.price.usage(*each, 0).cost for each in zip(sizes, replies, strict=True))
    return Forecast(
        "summaries",
        round(share * sum(film.parts for film in films)),
        share * len(requests),
        share * sum(len(each.frames) for each in requests),
        share * sum(sizes),
        share * sum(replies),
        cost,
        "library",
    )


# Forecast of the calls that training a LongVideoAgent master makes to the frozen models: they ground and look.

AGENT = "longvideoagent"
REHEARSED_EPISODES = 4
"""Rollouts that are rehearsed."""


def describe_helper_calls(
    settings: MasterSettings,
    known: Sequence[KnownQuestion],
    environments: Mapping[str, Environment],
    choice: ModelChoice,
) -> str:
    """Say in one line how many calls, tokens and money the frozen models are expected to cost in a whole training."""
    some: list[Task] = [
        (each.question, (each.film,))
        for each in known[:: max(1, len(known) // REHEARSED_EPISODES)][:REHEARSED_EPISODES]
    ]
    rehearsal = Rehearsal(AGENT, AGENT, {}, endpoint_roles(choice), Budget())
    bills, _ = asyncio.run(run_rehearsal(rehearsal, some, lambda films: environments[films[0]], restless=False))
    kinds = [(bill, kind) for bill in bills for kind in bill.calls if kind not in MASTER_REQUESTS]
    usage = sum((bill.usage[kind] for bill, kind in kinds), Usage())
    rollouts = settings.steps * settings.questions * settings.rollouts
    share = rollouts / max(1, len(some))
    calls = share * sum(bill.calls[kind] for bill, kind in kinds)
    tokens = share * (usage.input_tokens + usage.output_tokens)
    return (
        f"{settings.steps:,} steps of {settings.questions} questions with {settings.rollouts} rollouts each: "
        f"{rollouts:,} rollouts, about {calls:,.0f} calls of the models that ground and look, {tokens:,.0f} tokens by "
        f"estimate, cost {share * usage.cost:.4g}"
    )


# An environment of which nothing is written: captions that a rehearsal makes stay in memory.


@dataclass(frozen=True, slots=True)
class UnwrittenVideos:
    """Videos of a library, to which captions are added in memory alone. Everything else is the library's."""

    source: VideoSource
    added: list[ClipRow] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def only(self, video_ids: Collection[str]) -> UnwrittenVideos:
        """The videos of these ids alone, with the same captions in memory."""
        return replace(self, source=self.source.only(video_ids))

    def clips(self, video_id: str, model: str) -> list[ClipRow]:
        """Captions of a video's parts by a model: those of the library, and those in memory."""
        own = [row for row in self.added if (row.video_id, row.model) == (video_id, model)]
        return [*self.source.clips(video_id, model), *own]

    def add_clips(self, rows: Sequence[ClipRow]) -> None:
        """Keep captions in memory."""
        self.added.extend(rows)


def without_writing(environment: Environment, added: list[ClipRow] | None = None) -> Environment:
    """The same environment, which reads the library and keeps what is `added` to it in this list."""
    source = UnwrittenVideos(environment.source, [] if added is None else added)
    return replace(environment, source=cast(VideoSource, source))
