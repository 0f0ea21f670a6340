"""Real constrained decoders over a byte-level vocabulary: each says if a text can be written under a schema."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

BYTES = [bytes([each]) for each in range(256)]
END = 256
Accepts = Callable[[Mapping[str, Any], str], bool]


def written(value: object) -> str:
    """A value as prompts and tests write it."""
    return json.dumps(value, ensure_ascii=False)


class _ByteTokenizer:
    """One token for each byte, and one for the end."""

    eos_token_id = END
    bos_token_id = None
    tokens = (*BYTES, b"<end>")
    special_token_ids = (END,)

    def __call__(self, text: bytes) -> list[int]:
        return list(text)


@cache
def _llguidance_tokenizer():
    import llguidance

    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(_ByteTokenizer()))


def llguidance_accepts(schema: Mapping[str, Any], text: str) -> bool:
    """llguidance (the engine of OpenAI's structured outputs, an option of vLLM, SGLang and llama.cpp)."""
    import llguidance

    grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema))
    matcher = llguidance.LLMatcher(_llguidance_tokenizer(), grammar)
    assert not matcher.is_error(), matcher.get_error()
    return matcher.try_consume_tokens(list(text.encode())) == len(text.encode()) and matcher.is_accepting()


@lru_cache(maxsize=64)
def _outlines_index(schema: str):
    import outlines_core

    vocabulary = outlines_core.Vocabulary(END, {each: [at] for at, each in enumerate(BYTES)})
    return outlines_core.Index(outlines_core.json_schema.build_regex_from_schema(schema), vocabulary)


def outlines_accepts(schema: Mapping[str, Any], text: str) -> bool:
    """outlines-core, an option of vLLM and TGI: a regular expression, so it does not count what is too large."""
    import outlines_core

    guide = outlines_core.Guide(_outlines_index(json.dumps(schema)))
    return bool(guide.accepts_tokens([*text.encode()])) and _ends(guide, text)


def _ends(guide, text: str) -> bool:
    for byte in text.encode():
        guide.advance(byte, return_tokens=False)
    return bool(guide.is_finished()) or END in guide.get_tokens()


@cache
def _xgrammar_compiler():
    import xgrammar

    tokens = xgrammar.TokenizerInfo([*BYTES, b"<end>"], xgrammar.VocabType.RAW, stop_token_ids=[END])
    return xgrammar.GrammarCompiler(tokens)


def xgrammar_accepts(schema: Mapping[str, Any], text: str) -> bool:
    """xgrammar, the default of vLLM, SGLang and TensorRT-LLM."""
    import xgrammar

    matcher = xgrammar.GrammarMatcher(_xgrammar_compiler().compile_json_schema(json.dumps(schema)))
    return bool(matcher.accept_string(text)) and bool(matcher.accept_token(END))


ENGINES: Mapping[str, Accepts] = {
    "llguidance": llguidance_accepts,
    "outlines_core": outlines_accepts,
    "xgrammar": xgrammar_accepts,
}


def is_installed(engine: str) -> bool:
    """Say if an engine's package is there: xgrammar needs triton, which has no place on machines without a GPU."""
    return importlib.util.find_spec(engine) is not None
