"""Forecasts: what a command that asks models will cost, before anything is sent. `--dry-run`.

Counted where the library says it (a caption for each segment), the mean of a past run where there is one, and else the
most that an agent's limits and budgets allow: the agent itself is run on the library, and each of its requests is
answered by what it assumes (`Variant.assumes`), so that it goes on to its last round. Nothing is sent or written.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from kinodex.agent.ask import ask, check_fit, find_variant
from kinodex.agent.environment import Environment, LibraryVideos
from kinodex.agent.limits import Budget, Ledger
from kinodex.agent.models.completion import parse_reply
from kinodex.agent.models.openai_model import wire_messages
from kinodex.agent.models.roles import DEFAULT_ROLE, ResponseCache, Role
from kinodex.agent.models.sight import sight_key
from kinodex.agent.prompts import PictureRule, estimate_tokens, text_tokens
from kinodex.agent.protocol import INSUFFICIENT, AnswerRules, Exchange, Question, R, Request, Usage
from kinodex.agent.requests.answer import Recall
from kinodex.agent.requests.describe import DescribeSegment, Summarize
from kinodex.agent.trace import PriorEvidence
from kinodex.agent.variants.base import Variant
from kinodex.agent.variants.longvideoagent import MASTER_REQUESTS
from kinodex.index.library import Library, LibraryReader
from kinodex.index.rows import Hit, NoteRow, VideoRow
from kinodex.jobs.add.clips import USUAL_FRAMES, Clips, stored_jpegs, windows_of
from kinodex.jobs.add.endpoint import EndpointAddition, Outcome, Round, run_rounds
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.contenders import Contender, RunContext
from kinodex.jobs.eval.folder import PLAN, RunPlan, comparable, read_plan, read_results
from kinodex.jobs.eval.run import MAX_FRAMES, RunRequest, check_same, is_asked_again, make_plan
from kinodex.jobs.eval.solve import environments_of
from kinodex.jobs.export.moments import Moment
from kinodex.jobs.known_answers import KnownQuestion
from kinodex.jobs.models import ModelChoice, cache_file, endpoint_roles
from kinodex.jobs.train.rollouts import MasterSettings
from kinodex.jobs.verify import Span, kept_verdicts, looking_role, requests_for

AT_MOST = "at most"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Forecast:
    """Costs of one system. `questions` are those that are still to be asked, or segments to be captioned.

    `frames` are different frames that are shown, added up over the questions. `basis` says where the figures come from.
    """

    system: str
    questions: int
    calls: float
    frames: float
    input_tokens: float
    output_tokens: float
    cost: float
    basis: str = AT_MOST
    frames_a_question: float = 0.0
    """With those behind captions that the library holds: what a control gets that is to see as many."""
    tries: float = 0
    """Calls beside these: a small picture, shown once to find out if the model takes any."""


COSTS = ("calls", "frames", "input_tokens", "output_tokens", "cost")


def add_up(forecasts: Sequence[Forecast]) -> Forecast:
    """Add forecasts up to a row of all."""
    sums = {name: sum(getattr(each, name) for each in forecasts) for name in COSTS}
    tries = max((each.tries for each in forecasts), default=0)
    return Forecast("all", sum(each.questions for each in forecasts), **sums, basis="", tries=tries)


def table(forecasts: Sequence[Forecast], unit: str = "questions", advice: str = "") -> str:
    """Write forecasts as Markdown, for people; `unit` is the heading of `questions`, `advice` a last sentence."""
    rows = [*forecasts, *([add_up(forecasts)] if len(forecasts) > 1 else [])]
    if rows and rows[-1].tries:
        more = f"{rows[-1].tries} call more, of a small picture,"
        advice = f"{more} comes before them if the server does not say that its model sees. {advice}"
    lines = [
        f"| | {unit} | calls | frames | tokens in | tokens out | cost | from |",
        "|---" * 8 + "|",
        *(
            f"| {each.system} | {each.questions:,} | {each.calls:,.0f} | {each.frames:,.0f} | {each.input_tokens:,.0f} "
            f"| {each.output_tokens:,.0f} | {each.cost:.4g} | {each.basis} |"
            for each in rows
        ),
        "",
        "Before anything is asked; nothing was sent. Tokens are estimates where no past run counted them: four "
        f"characters a token, pictures by OpenAI's tiles. {advice}".strip(),
    ]
    return "\n".join(lines)


# Forecasts of `kinodex ask` and `kinodex eval run`.

ENVIRONMENTS = 16
"""Videos whose vectors stay in memory."""


def forecast_question(
    question: Question,
    environment: Environment,
    choice: ModelChoice,
    variant: Variant,
    settings: Mapping[str, Any],
    budget: Budget,
    rules: AnswerRules,
    prior: PriorEvidence | None = None,
) -> Forecast:
    """Forecast the costs of one question. Raises as asking it does, before a model is asked."""
    unpictured = [video.title for video in environment.videos if not video.has_pictures]
    check_fit(variant, has_language=choice.has_language, unpictured=unpictured)
    dry = DryRun(variant.name, variant, settings, endpoint_roles(choice), budget, rules, prior)
    forecast = forecast_tasks(dry, [(question, ())], lambda video_ids: environment)
    return replace(forecast, tries=sight_tries(choice, variant.needs_pictures))


def sight_tries(choice: ModelChoice, needs_pictures: bool) -> int:
    """Count the pictures that a model behind an endpoint may be shown before the first call: 1 at most."""
    roles = endpoint_roles(choice).values()
    if not roles or not needs_pictures or any(role.images is not None for role in roles):
        return 0
    path = choice.cache_path or cache_file()
    if not choice.cache or not path.is_file():
        return 1
    with ResponseCache(path) as cache:
        return int(all(cache.get(sight_key(role)) is None for role in roles))


def forecast_run(request: RunRequest, context: RunContext, out: Path) -> list[Forecast]:
    """Forecast the costs of each system of a run, of the questions that the folder holds no result of."""
    plan, samples = make_plan(request, context)
    done = set()
    if (out / PLAN).is_file():
        check_same(read_plan(out), plan, out)
        done = {(each.contender, each.item_id) for each in read_results(out) if not is_asked_again(each)}
    library = Library.open(context.library)
    # Many texts at a time, unlike the solver: the last digits of scores do not matter here.
    embed_text = library.load_space(context.space, "text").embed_text
    environment_of = environments_of(context, library, embed_text, None, ENVIRONMENTS)
    forecasts: dict[str, Forecast] = {}
    for system in sorted(plan.contenders, key=lambda each: each.frames_of is not None):
        left = [each for each in samples if (system.name, each.item_id) not in done]
        tasks: list[Task] = [(each.question, plan.items[each.item_id]) for each in left]
        if past := past_forecast(out, plan, system, len(left)):
            forecasts[system.name] = past
            continue
        roles, settings = endpoint_roles(context.choice), system.settings
        if system.frames_of is not None:  # a control gets as many frames as are expected of the one that it follows
            frames = round(forecasts[system.frames_of].frames_a_question)
            settings = {**settings, "frames": min(max(1, frames), MAX_FRAMES)}
        dry = DryRun(system.name, system.find_variant(), settings, roles, context.budget, context.rules)
        forecasts[system.name] = forecast_tasks(dry, tasks, environment_of)
    tries = {each.name: sight_tries(context.choice, each.find_variant().needs_pictures) for each in plan.contenders}
    return [replace(forecasts[name], tries=count) for name, count in tries.items()]


# A dry run: the agent runs on the library, and what it assumes answers in the place of its models.
#
# Of many questions some are run, spread evenly, and stand for the rest. A caption that an agent keeps in the library
# is paid once: all questions about a video together pay for no more than all of its frames.

MOST_RUN = 8
"""Questions of a system that are run at most."""
KEPT_KINDS = (DescribeSegment.__name__, Summarize.__name__)
"""Requests whose replies are kept in the library, so that a video pays for them once."""

Task = tuple[Question, tuple[str, ...]]
"""A question and the ids of its videos."""


@dataclass(frozen=True, slots=True)
class DryRun:
    """The settings of one system's dry run; `roles` are the endpoints whose prices and names count."""

    system: str
    agent: str | Variant
    settings: Mapping[str, str | bool | int | float]
    roles: Mapping[str, Role]
    budget: Budget
    rules: AnswerRules = field(default_factory=AnswerRules)
    prior: PriorEvidence | None = None


@dataclass(slots=True)
class Bill:
    """Calls and costs by the class of their request."""

    calls: Counter[str] = field(default_factory=Counter)
    frames: Counter[str] = field(default_factory=Counter)
    usage: dict[str, Usage] = field(default_factory=dict)

    def add(self, request: Request[R], usage: Usage) -> None:
        """Add one call."""
        kind = type(request).__name__
        self.calls[kind] += 1
        self.frames[kind] += len(request.frames)
        self.usage[kind] = self.usage.get(kind, Usage()) + usage

    def costs(self, kinds: Collection[str]) -> dict[str, float]:
        """Costs of requests of these kinds, by the names of `COSTS`."""
        usage = sum((self.usage.get(kind, Usage()) for kind in kinds), Usage())
        calls, frames = (sum(counts[kind] for kind in kinds) for counts in (self.calls, self.frames))
        return dict(zip(COSTS, (calls, frames, usage.input_tokens, usage.output_tokens, usage.cost), strict=True))


def forecast_tasks(
    dry: DryRun, tasks: Sequence[Task], environment_of: Callable[[tuple[str, ...]], Environment]
) -> Forecast:
    """The costs of all tasks, from a dry run of some of them."""
    some = spread(tasks, MOST_RUN)
    runs = [asyncio.run(run_dry(dry, task, environment_of)) for task in some]
    sums: dict[str, Any] = dict.fromkeys(COSTS, 0.0)
    for bill, ledger, environment in runs:
        kept = bill.costs(KEPT_KINDS if environment.keep_captions else ())
        times = float(len(tasks))
        if kept["frames"]:  # captions that a question keeps are paid for until each frame of each video has its own
            videos = len({ids for _, ids in tasks})
            times = min(times, videos * max(1.0, environment.index_frames / kept["frames"]))
        own = {name: getattr(ledger, name) - kept[name] for name in COSTS}
        if kept["frames"]:  # a further question may show again what the first one had captioned
            own["frames"] = min(bill.frames.total() - kept["frames"], environment.index_frames)
        for name in COSTS:
            sums[name] += (len(tasks) * own[name] + times * kept[name]) / len(some)
    each = sum(ledger.frames_with_kept for _, ledger, _ in runs) / max(1, len(some))
    return Forecast(dry.system, len(tasks), **sums, frames_a_question=each)


async def run_dry(
    dry: DryRun, task: Task, environment_of: Callable[[tuple[str, ...]], Environment]
) -> tuple[Bill, Ledger, Environment]:
    """Run the agent on a task; gives the bill by kind of request, the ledger, and the environment."""
    question, video_ids = task
    bill, environment = Bill(), without_writing(environment_of(video_ids))
    variant, roles = find_variant(dry.agent), dry.roles or {DEFAULT_ROLE: Role(model="builtin")}
    answer = await ask(
        question,
        environment,
        {name: Assumed(role, variant, bill) for name, role in roles.items()},
        agent=variant,
        parameters=dry.settings,
        budget=replace(dry.budget, seconds=None),
        rules=dry.rules,
        seen=dry.prior,
    )
    return bill, answer.ledger, environment


@dataclass(frozen=True, slots=True)
class Assumed:
    """A model that is not asked: what the agent assumes of it replies, and costs what that would."""

    role: Role
    variant: Variant
    bill: Bill
    pictures: PictureRule = "openai"
    has_language: bool = True

    @property
    def name(self) -> str:
        return self.role.model

    async def ask(self, request: Request[R]) -> Exchange[R]:
        """Answer a request; see `kinodex.agent.protocol.Model`."""
        text, role = assumed_reply(self.variant, request), self.role
        messages = wire_messages(request, role.image_side_px, role.reasoning, role.detail, joint=role.joins_schemas)
        usage = role.price.usage(estimate_tokens(messages, self.pictures), text_tokens(text), 0)
        self.bill.add(request, usage)
        reply, invalid = parse_reply(text, request)
        return Exchange(reply, invalid, usage, raw=text)


def assumed_reply(variant: Variant, request: Request[Any]) -> str:
    """The text of a reply by what the agent assumes, else the request's own example; earlier evidence tells nothing."""
    assumed = variant.assumes(request)
    if assumed is None and isinstance(request, Recall) and request.declining == "allowed":
        assumed = {"reasoning": "", "action": INSUFFICIENT, "option": None, "answer": None, "evidence": []}
    if assumed is None:
        assumed = request.example()
    return assumed if isinstance(assumed, str) else json.dumps(assumed)


def spread(items: Sequence[T], count: int) -> list[T]:
    """At most `count` items, spread evenly."""
    if len(items) <= count:
        return list(items)
    return [items[round(at * (len(items) - 1) / max(1, count - 1))] for at in range(count)]


@dataclass(frozen=True, slots=True)
class UnwrittenVideos:
    """Videos of a library, to which captions are added in memory alone. Everything else is the library's."""

    source: LibraryVideos
    added: list[NoteRow] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def only(self, video_ids: Collection[str]) -> UnwrittenVideos:
        return replace(self, source=self.source.only(video_ids))

    def clips(self, video_id: str, model: str) -> list[NoteRow]:
        own = [row for row in self.added if (row.video_id, row.model) == (video_id, model)]
        return [*self.source.clips(video_id, model), *own]

    def add_clips(self, rows: Sequence[NoteRow]) -> None:
        self.added.extend(rows)


def without_writing(environment: Environment) -> Environment:
    """The same environment, which reads the library and keeps what is added to it in memory."""
    return replace(environment, source=cast(LibraryVideos, UnwrittenVideos(environment.source)))


# Past runs as the basis of a forecast: ledgers of the same agent with the same models on the same library.

LEAST_QUESTIONS = 5
"""Fewer questions than these say too little of a run."""
ALIKE = (
    *("benchmark", "library", "space", "models", "contents", "prices", "budget", "rules", "speech", "screen_text"),
    "keep_captions",
)
"""Fields of a plan on which the costs of a question depend; `rules` with the calls of --verify."""


def past_forecast(out: Path, plan: RunPlan, system: Contender, questions: int) -> Forecast | None:
    """The mean for each question of the newest run that asked alike, in `out` or a folder beside it; None without one.

    Runs of fewer than `LEAST_QUESTIONS` questions, and folders that cannot be read, are left out.
    """
    for folder in _folders(out):
        try:
            past = read_plan(folder)
            same = all(comparable(past, name) == comparable(plan, name) for name in ALIKE)
            unchanged = all(plan.states.get(id_, state) == state for id_, state in past.states.items())
            results = read_results(folder) if same and unchanged and system in past.contenders else ()
        except (UsageError, OSError):  # another version of kinodex wrote it, or it is damaged: a neighbour's folder
            continue
        ledgers = [each.ledger for each in results if each.contender == system.name and not each.error]
        if len(ledgers) >= LEAST_QUESTIONS:
            share = questions / len(ledgers)
            sums = {name: share * sum(getattr(each, name) for each in ledgers) for name in COSTS}
            shown = sum(ledger.frames_with_kept for ledger in ledgers) / len(ledgers)
            return Forecast(system.name, questions, **sums, basis=f"past run {folder.name}", frames_a_question=shown)
    return None


def _folders(out: Path) -> list[Path]:
    """The folder itself, then those beside it, newest first, of those in which a plan was written."""
    times = {}
    for path in out.parent.iterdir() if out.parent.is_dir() else ():
        with suppress(OSError):
            times[path] = (path / PLAN).stat().st_mtime
    return sorted(times, key=lambda path: (path == out, times[path]), reverse=True)


# Forecast of additions by a model at an endpoint (captions, chapters, extracts): videos are gone through as in a run,
# some of the requests of each round are made, and example replies take the place of the others.

SAMPLED_VIDEOS, SAMPLED_REQUESTS = 16, 8
"""Videos that are gone through, and requests of each round of one that are made, spread evenly."""


def forecast_addition(
    library: Library, addition: EndpointAddition, videos: Sequence[VideoRow], price_share: float = 1.0
) -> Forecast:
    """The costs of an addition to these videos: what those gone through cost, by the seconds of all."""
    some, role = spread(videos, SAMPLED_VIDEOS), addition.role
    sums = dict.fromkeys(COSTS, 0.0)
    rows = 0

    def answer(asked: Round) -> list[Outcome[Any]]:
        numbers = spread(range(asked.count), SAMPLED_REQUESTS)
        requests = asked.make(numbers) if numbers else ()
        share = asked.count / max(1, len(requests))
        of_some = (sum(len(each.frames) for each in requests), *_sizes(requests, role))
        for name, cost in zip(COSTS, (asked.count, *(share * each for each in of_some)), strict=True):
            sums[name] += cost
        replies = [request.Reply.model_validate(request.example()) for request in requests]
        return [Outcome(reply) for reply in replies[:1] * asked.count]

    for video in some:
        rows += len(run_rounds(addition.rounds(library, video), answer).rows)
    gone_through_s = sum(row.duration_s for row in some)
    times = sum(row.duration_s for row in videos) / gone_through_s if gone_through_s else 1.0
    costs = {name: times * each for name, each in sums.items()} | {"cost": price_share * times * sums["cost"]}
    return Forecast(addition.name, round(times * rows), **costs, basis="library")


def forecast_requests(system: str, requests: Sequence[Request[Any]], role: Role) -> Forecast:
    """The costs of some requests to a role."""
    frames = sum(len(each.frames) for each in requests)
    return Forecast(system, len(requests), len(requests), frames, *_sizes(requests, role), basis="library")


def _sizes(requests: Sequence[Request[Any]], role: Role) -> tuple[int, int, float]:
    """Tokens that requests to a role send and their example replies bring, and what both cost."""
    sent = [estimate_tokens(wire_messages(each, role.image_side_px, role.reasoning, role.detail)) for each in requests]
    replies = [text_tokens(json.dumps(each.example())) for each in requests]
    costs = (role.price.usage(*each, 0).cost for each in zip(sent, replies, strict=True))
    return sum(sent), sum(replies), sum(costs)


def forecast_clips(library: Library, stage: Clips, videos: Sequence[VideoRow]) -> Forecast:
    """The costs of clips: windows and frames as they are, a served model's tokens by the first; nothing is sent."""
    windows, count = sum(len(stage.spans(video)) for video in videos), stage.frames or USUAL_FRAMES
    first = next((video for video in videos if video.frames), None)
    if stage.base_url is None or first is None:
        return Forecast(stage.name, windows, 0, windows * count, 0, 0, 0.0, basis="library")
    with closing(stored_jpegs(library, first)) as pictures:
        shown = [*dict.fromkeys(next(windows_of(pictures, stage.spans(first), count)))]
    tokens = windows * stage.served.tokens(shown)
    cost = stage.served.role.price.usage(tokens, 0, 0).cost
    return Forecast(stage.name, windows, windows, windows * len(shown), tokens, 0, cost, basis="library")


def forecast_verdicts(
    library: LibraryReader, text: str, found: Sequence[Hit | Moment], count: int, choice: ModelChoice
) -> Forecast:
    """The costs of having a model look at the first `count` moments; raises as `verified` does before it asks."""
    role = looking_role(choice)
    spans = [Span.of(each) for each in found[:count]]
    kept = kept_verdicts(library, text, spans, role.model) if choice.cache else {}
    places = [at for at in range(len(spans)) if at not in kept]
    requests = requests_for(library, text, spans, places)
    frames = sum(len(each.frames) for each in requests)
    costs = (len(requests), frames, *_sizes(requests, role))
    tries = sight_tries(choice, needs_pictures=frames > 0)
    return Forecast("verify", len(places), **dict(zip(COSTS, costs, strict=True)), basis="library", tries=tries)


# Forecast of the calls that training a LongVideoAgent master makes to the frozen models: they ground and look.

EPISODES = 4
"""Rollouts that are run dry."""


def describe_helper_calls(
    settings: MasterSettings,
    known: Sequence[KnownQuestion],
    environments: Mapping[str, Environment],
    choice: ModelChoice,
) -> str:
    """Say in one line how many calls, tokens and money the frozen models cost at most in a whole training."""
    dry = DryRun("longvideoagent", "longvideoagent", {}, endpoint_roles(choice), Budget())
    some: list[Task] = [(each.question, (each.film,)) for each in spread(known, EPISODES)]
    bills = [asyncio.run(run_dry(dry, task, lambda films: environments[films[0]]))[0] for task in some]
    costs = [bill.costs([kind for kind in bill.calls if kind not in MASTER_REQUESTS]) for bill in bills]
    rollouts = settings.steps * settings.questions * settings.rollouts
    calls, _, tokens_in, tokens_out, cost = (
        rollouts * sum(each[name] for each in costs) / max(1, len(some)) for name in COSTS
    )
    return (
        f"{settings.steps:,} steps of {settings.questions} questions with {settings.rollouts} rollouts each: "
        f"{rollouts:,} rollouts, at most {calls:,.0f} calls of the models that ground and look, "
        f"{tokens_in + tokens_out:,.0f} tokens by estimate, cost {cost:.4g}"
    )
