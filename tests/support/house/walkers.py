"""The three walks of docs/architecture.md, each in a folder of its own."""

from __future__ import annotations

from pathlib import Path


def index_a_film(folder: Path) -> None:
    from kinodex.jobs.ingest.config import IngestConfig
    from kinodex.jobs.ingest.run import run_ingest
    from kinodex.pipeline.sources import list_sources

    sources = list_sources([str(folder / "film-01.mp4")])
    report = run_ingest(IngestConfig(space="builtin", workers=1), sources, str(folder / "library"))
    assert report.count("indexed") == 1


def ask_a_question(folder: Path) -> None:
    """Ask the server at base_url.txt about a film of the library."""
    import asyncio

    from kinodex.agent.ask import ask
    from kinodex.agent.environment import Environment
    from kinodex.agent.limits import Budget
    from kinodex.agent.models.openai_model import OpenAIModel
    from kinodex.agent.models.roles import Role

    async def answer(base_url: str) -> str | None:
        async with OpenAIModel(Role(model="rules", base_url=base_url, key_env=None)) as model:
            environment = Environment.open(str(folder / "library"), "film-01")
            budget = Budget(frames=20)  # of more frames than that a search is needed
            return (await ask("What colour is the bird at sea?", environment, model, budget=budget)).text

    assert asyncio.run(answer((folder / "base_url.txt").read_text(encoding="utf-8")))


def score_items(folder: Path) -> None:
    from kinodex.agent.limits import Budget
    from kinodex.evaluation import evaluate

    library, questions = folder / "library", folder / "questions.jsonl"
    budget = Budget(frames=20)
    assert evaluate(library, "sketch", questions, folder / "run", limit=2, controls=False, budget=budget).asked == 2
