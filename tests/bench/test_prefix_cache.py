"""The rules by which servers keep prefixes, on token lists that are counted by hand."""

from __future__ import annotations

import pytest

from tests.bench.prefix import Rules, open_cache

PICTURE = [("cat.jpg", place) for place in range(24)]
OTHER = [("dog.jpg", place) for place in range(24)]


def test_vllm_serves_full_blocks_of_the_common_start() -> None:
    cache = open_cache("vllm")
    assert cache.serve(range(100)) == 0
    assert cache.serve([*range(50), *range(900, 950)]) == 48  # three blocks; the fourth differs in its last 14 tokens
    assert cache.serve(range(100)) == 96  # the last four tokens are no full block
    assert cache.serve([7, *range(100)]) == 0  # one token before shifts all blocks


def test_vllm_always_computes_the_last_token() -> None:
    cache = open_cache("vllm")
    cache.serve(range(96))
    assert cache.serve(range(96)) == 80
    assert cache.serve(range(97)) == 96


def test_vllm_chains_its_blocks() -> None:
    """A block that is known in another place, after another start, is not known here."""
    cache = open_cache("vllm")
    cache.serve([*[1] * 16, *[2] * 16])
    cache.serve([*[3] * 16, *[4] * 16])
    assert cache.serve([*[1] * 16, *[4] * 16, 5]) == 16


def test_a_picture_is_known_by_its_content() -> None:
    cache = open_cache("vllm")
    cache.serve([*range(16), *PICTURE, *range(60)])
    assert cache.serve([*range(16), *PICTURE, *range(60)]) == 96
    assert cache.serve([*range(16), *OTHER, *range(60)]) == 16


def test_openai_serves_from_1024_tokens_in_steps_of_128() -> None:
    cache = open_cache("openai")
    assert cache.serve(range(2000)) == 0
    assert cache.serve([*range(1500), *[-1] * 500]) == 1408  # 1024 + 3 * 128
    assert cache.serve([*range(1023), *[-2] * 977]) == 0
    assert cache.serve([*range(1024), *[-3] * 976]) == 1024


@pytest.mark.parametrize(("rules", "served"), [("vllm", 992), ("openai", 0)])
def test_short_requests_are_never_served_by_openai(rules: Rules, served: int) -> None:
    cache = open_cache(rules)
    cache.serve(range(1000))
    assert cache.serve(range(1000)) == served
