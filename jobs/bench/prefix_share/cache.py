"""Prefix caches of servers, by their published rules: the tokens of a request that earlier requests left in the cache.

- vllm: blocks of 16 tokens, each known by the hash of its tokens, of the pictures in it and of the block before it;
  only full blocks are kept, and the last token of a request is always computed, so that a request that is wholly known
  still computes its last block (vLLM, "Automatic Prefix Caching", docs.vllm.ai/en/latest/design/prefix_caching).
- openai: prefixes of at least 1,024 tokens, in steps of 128 from there; pictures must be the same, at the same detail;
  the schema of a structured output and the tools stand before the messages (OpenAI, "Prompt caching",
  developers.openai.com/api/docs/guides/prompt-caching, for models before GPT-5.6, and its "Prompt Caching 201").

The cache is warm and large: all requests before are in it, whatever else a server works on, and nothing is evicted. The
tokens of replies are left out, though vLLM keeps them too: a reply that is sent back counts as new.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

Rules = Literal["vllm", "openai"]
BLOCK_TOKENS = 16
LEAST_TOKENS, STEP_TOKENS = 1024, 128

Token = Hashable
"""One token: a number, a piece of text, or a picture's digest with the token's place in the picture."""


@dataclass(slots=True)
class PrefixCache:
    """The cache of one model. `lengths` gives the lengths of prefixes, in ascending order, that may be served."""

    lengths: Callable[[int], Sequence[int]]
    _known: set[bytes] = field(default_factory=set)

    def serve(self, tokens: Sequence[Token]) -> int:
        """Count the tokens at the start of a request that the cache serves, then keep the request's prefixes."""
        served, known = 0, True
        for length, digest in _prefix_digests(tokens, self.lengths(len(tokens))):
            known = known and digest in self._known
            if known and length < len(tokens):
                served = length
            self._known.add(digest)
        return served


def open_cache(rules: Rules) -> PrefixCache:
    """Open an empty cache by the rules of a server."""
    return PrefixCache(vllm_lengths if rules == "vllm" else openai_lengths)


def vllm_lengths(tokens: int) -> Sequence[int]:
    """Lengths of the prefixes that vLLM keeps of a request: the ends of its full blocks."""
    return range(BLOCK_TOKENS, tokens + 1, BLOCK_TOKENS)


def openai_lengths(tokens: int) -> Sequence[int]:
    """Lengths of the prefixes that OpenAI's cache keeps of a request: 1,024 tokens, 1,152, 1,280 and so on."""
    return range(LEAST_TOKENS, tokens + 1, STEP_TOKENS)


def _prefix_digests(tokens: Sequence[Token], lengths: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Hash each prefix of these lengths, the hash of a shorter one among what makes the next."""
    start, digest = 0, b""
    for length in lengths:
        digest = hashlib.sha256(digest + repr(tuple(tokens[start:length])).encode()).digest()
        start = length
        yield length, digest
