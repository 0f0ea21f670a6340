"""Constrained decoding: the schema or pattern of a request's reply binds what a model in this process can write.

At each token llguidance says which ones may follow, and the others get no probability. Texts and lists without a
limit get one here: a small model that nothing stops goes on until its reply is cut off.
"""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kinodex.agent.errors import ModelRejected
from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.request import Request

if TYPE_CHECKING:
    import torch

MAX_CHARACTERS, MAX_ITEMS = 240, 8
LISTED_CHARACTERS, LISTED_TEXTS = 100, 4
"""Of texts in a list, whose length multiplies: eight of 240 characters were cut off at 224 tokens."""
Processor = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]
"""Tokens so far [n, tokens] and scores of the next one [n, vocabulary] to scores."""


def reply_grammar(request: Request[R]) -> str:
    """Return the grammar of a request's reply, in llguidance's form; "" if any text is one."""
    import llguidance

    if request.form == "text":
        pattern = request.pattern()
        return llguidance.LLMatcher.grammar_from_regex(pattern) if pattern else ""
    schema = {**bound(request.schema()), "x-guidance": {"whitespace_flexible": False}}
    options = getattr(getattr(request, "question", None), "options", ())
    if options and "option" in schema.get("properties", {}):  # no schema says that an answer needs a letter
        letters = {"type": "string", "enum": list(string.ascii_uppercase[: len(options)])}
        schema["properties"] = {**schema["properties"], "option": letters}
    return llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema))


def bound(schema: Any) -> Any:
    """Return a JSON schema whose texts and lists all have a greatest length."""
    if isinstance(schema, list):
        return [bound(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    bounded = {key: bound(each) for key, each in schema.items()}
    if bounded.get("type") == "string" and not {"enum", "const", "pattern", "format"} & set(bounded):
        bounded.setdefault("maxLength", MAX_CHARACTERS)
    if bounded.get("type") == "array":
        most = MAX_ITEMS
        if (items := schema.get("items", {})).get("type") == "string" and "maxLength" in bounded["items"]:
            bounded["items"]["maxLength"], most = items.get("maxLength", LISTED_CHARACTERS), LISTED_TEXTS
            bounded["items"].setdefault("minLength", 1)
        most = max(most, int(bounded.get("minItems", 0)))
        given = int(bounded.get("maxItems", most))
        bounded["maxItems"] = given if given <= MAX_ITEMS else most
    return bounded


class TokenMasks:
    """Masks of the tokens that may follow, for one tokenizer; a model with `vocabulary` scores; end tokens `ends`."""

    def __init__(self, tokenizer: Any, vocabulary: int, ends: Sequence[int]) -> None:
        self._tokenizer, self._vocabulary, self._ends = tokenizer, vocabulary, list(ends)

    @cached_property
    def _tokens(self) -> Any:
        import llguidance.hf

        return llguidance.hf.from_tokenizer(self._tokenizer, n_vocab=self._vocabulary, eos_token=self._ends)

    def processor(self, grammars: Sequence[str], prompt_tokens: int) -> Processor:
        """Bind each row of a batch to its grammar, "" to none; raises `ModelRejected` for one that is too complex."""
        import llguidance
        import torch

        matchers = [llguidance.LLMatcher(self._tokens, each) if each else None for each in grammars]
        for matcher in filter(None, matchers):
            if matcher.is_error():
                raise ModelRejected(f"no constrained decoding of this reply: {matcher.get_error()}; use local:FOLDER")

        def mask(tokens: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            for row, matcher in enumerate(matchers):
                if matcher is None:
                    continue
                if tokens.shape[1] > prompt_tokens and not matcher.is_stopped():
                    matcher.consume_token(int(tokens[row, -1]))
                allowed = torch.frombuffer(bytearray(matcher.compute_logit_bias()), dtype=torch.uint8)
                scores[row, allowed[: scores.shape[1]] == 0] = -torch.inf
            return scores

        return mask
