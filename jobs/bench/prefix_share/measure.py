"""Count the input tokens that a warm prefix cache serves over a run: `kinodex bench prefix`.

Live, agents answer questions about an hour-long sketch film, and the messages of their requests are counted as an
endpoint would get them; or the requests are read from traces of earlier runs. Each model has a cache of its own, which
is empty at first and keeps everything (`prefix_cache`). A request that was answered before another one is taken to be
in the cache when that one comes, also where the two were sent side by side.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.ask_questions import ask
from agent.core.protocol import Models
from agent.trace.events import Event, Exchanged
from agent.trace.trace import read_trace
from jobs.bench.evaluation import prepare
from jobs.bench.prefix_share.cache import PrefixCache, open_cache
from jobs.bench.prefix_share.prompts import Prompt, Tokens, prompt_of_request, prompts_of_trace
from jobs.bench.restless_model import RestlessModel
from jobs.model_choice import ModelChoice, chosen_models
from jobs.open_library import open_environment
from jobs.synthetic.known_answers import KnownQuestion, read_known

ALL = "all"
"""The row of all requests of a run."""


@dataclass(frozen=True, slots=True)
class LiveRun:
    """Agents that answer the first `questions` questions about the first film of `directory`.

    `explore`: a tree agent uses all its rounds, whatever it finds (`restless_model`).
    """

    directory: Path
    agents: Sequence[str] = ("eea",)
    questions: int = 1
    hours: float = 1.0
    choice: ModelChoice = field(default_factory=ModelChoice)
    explore: bool = True


@dataclass(frozen=True, slots=True)
class PrefixFigures:
    """Requests of one kind in one run, their input tokens, and those of them that the cache served."""

    run: str
    request: str
    requests: int
    pictures: int
    tokens: int
    cached: int

    @property
    def share(self) -> float:
        """The share of the input tokens that the cache served; 0 without any."""
        return self.cached / self.tokens if self.tokens else 0.0


def bench_prefix(live: LiveRun, rules: Tokens, report: Callable[[str], object]) -> list[PrefixFigures]:
    """Run each agent and count its requests; films and library in the directory are made where missing."""
    films = prepare(live.directory, live.hours)
    known = read_known(films / "questions.jsonl")
    first = [each for each in known if each.film == known[0].film][: live.questions]
    figures: list[PrefixFigures] = []
    for agent in live.agents:
        prompts = asyncio.run(_prompts(agent, first, live, rules))
        figures += count(agent, prompts, rules)
        report(f"{agent}: {figures[-1].share:.2f}")
    return figures


def count_traces(paths: Sequence[Path], size: tuple[int, int], rules: Tokens) -> list[PrefixFigures]:
    """Count the requests of traces, in the order of the files, with the same caches for all."""
    prompts = [prompt for path in paths for prompt in prompts_of_trace(read_trace(path), size, rules)]
    return count(paths[0].name if len(paths) == 1 else f"{len(paths)} traces", prompts, rules)


def count(run: str, prompts: Iterable[Prompt], rules: Tokens) -> list[PrefixFigures]:
    """Count the tokens of prompts in the order in which they were sent: a row for each kind, then one for all."""
    caches: defaultdict[str, PrefixCache] = defaultdict(lambda: open_cache(rules.rules))
    rows: dict[str, PrefixFigures] = {}
    for prompt in prompts:
        served = caches[prompt.model].serve(prompt.tokens)
        for kind in (prompt.kind, ALL):
            before = rows.get(kind, PrefixFigures(run, kind, 0, 0, 0, 0))
            rows[kind] = PrefixFigures(
                run,
                kind,
                before.requests + 1,
                before.pictures + prompt.pictures,
                before.tokens + len(prompt.tokens),
                before.cached + served,
            )
    return [*(row for kind, row in rows.items() if kind != ALL), rows.get(ALL, PrefixFigures(run, ALL, 0, 0, 0, 0))]


async def _prompts(agent: str, known: Sequence[KnownQuestion], live: LiveRun, rules: Tokens) -> list[Prompt]:
    prompts: list[Prompt] = []

    def on_event(event: Event) -> None:
        if isinstance(event, Exchanged):
            prompts.append(prompt_of_request(event.request, event.model, rules))

    environment = open_environment(str(live.directory / "library"), [known[0].film])
    async with chosen_models(live.choice) as models:
        answering = _restless(models(environment)) if live.explore else models(environment)
        for each in known:
            await ask(each.question, environment, answering, agent=agent, on_event=on_event)
    return prompts


def _restless(models: Models) -> Models:
    if isinstance(models, Mapping):
        return {role: RestlessModel(model) for role, model in models.items()}
    return RestlessModel(models)


def table(figures: Sequence[PrefixFigures], rules: Tokens) -> str:
    """Write the figures as Markdown, for people."""
    lines = [
        f"Input tokens that a warm prefix cache serves, by the rules of {rules.rules}; pictures by those of "
        f"{rules.pictures}",
        "",
        "| run | request | requests | pictures | tokens | cached | share |",
        "|---" * 7 + "|",
    ]
    lines += [
        f"| {each.run} | {each.request} | {each.requests:,} | {each.pictures:,} | {each.tokens:,} | {each.cached:,} "
        f"| {each.share:.2f} |"
        for each in figures
    ]
    return "\n".join(lines)


def as_json(each: PrefixFigures) -> dict[str, Any]:
    """Make the JSON of one row."""
    return {
        name: getattr(each, name) for name in ("run", "request", "requests", "pictures", "tokens", "cached", "share")
    }
