"""`python -m tests.bench.prefix`: the rules of servers, and the requests of a run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kinodex.jobs.errors import UsageError
from tests.bench.prefix import (
    ALL,
    LiveRun,
    PrefixFigures,
    Prompt,
    Tokens,
    bench_prefix,
    count,
    main,
    open_cache,
    parse_tokens,
)
from tests.support.libraries.sketch_library import SketchLibrary


def test_the_rules_of_servers_on_tokens_that_are_counted_by_hand() -> None:
    vllm = open_cache("vllm")
    assert vllm.serve(range(100)) == 0
    assert vllm.serve([*range(50), *range(900, 950)]) == 48  # three blocks; the fourth differs in its last 14 tokens
    assert vllm.serve(range(100)) == 96  # the last four tokens are no full block
    assert vllm.serve([7, *range(100)]) == 0  # one token before shifts all blocks
    assert vllm.serve(range(96)) == 80, "the last token is always computed"
    chained = open_cache("vllm")
    chained.serve([*[1] * 16, *[2] * 16])
    chained.serve([*[3] * 16, *[4] * 16])
    assert chained.serve([*[1] * 16, *[4] * 16, 5]) == 16, "a block after another start is not known"
    openai = open_cache("openai")
    assert openai.serve(range(2000)) == 0
    assert openai.serve([*range(1500), *[-1] * 500]) == 1408  # 1024 + 3 * 128
    assert openai.serve([*range(1023), *[-2] * 977]) == 0


def test_each_kind_and_model_is_counted() -> None:
    first, other = Prompt("Score", "one", tuple(range(100)), 2), Prompt("Decide", "two", tuple(range(100)), 3)
    assert count("run", [first, other, first, other], Tokens()) == [
        PrefixFigures("run", "Score", 2, 4, 200, 96),
        PrefixFigures("run", "Decide", 2, 6, 200, 96),  # of another model, so its first request is new too
        PrefixFigures("run", ALL, 4, 10, 400, 192),
    ]


def test_a_run_that_explores_is_served_by_its_own_beginnings(
    copy_sketches: Callable[[Path], SketchLibrary], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy_sketches(tmp_path)
    shutil.copy(tmp_path / "questions.jsonl", tmp_path / "films" / "questions.jsonl")
    short = bench_prefix(LiveRun(tmp_path, explore=False), Tokens(), print)[-1]
    explored = {each.request: each for each in bench_prefix(LiveRun(tmp_path), Tokens("openai"), print)}
    assert explored[ALL].requests > short.requests and explored[ALL].share > 0.6
    assert explored["ScoreAndPropose"].cached >= 1024, "one schema stands before all requests of a search"
    main(tmp_path)
    assert "| eea | all |" in capsys.readouterr().out


def test_options_that_are_no_rules() -> None:
    for wrong in (("gemini", "openai"), ("vllm", "gemini")):
        with pytest.raises(UsageError, match="the rules are"):
            parse_tokens(*wrong)
