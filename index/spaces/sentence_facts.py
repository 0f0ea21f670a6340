"""Facts of a sentence model that its weights do not show, from the files that sentence-transformers keeps beside them.

`modules.json` lists what is computed, `1_Pooling/config.json` how a text's tokens become one vector,
`sentence_bert_config.json` how many tokens count, and `config_sentence_transformers.json` what is written before a
query and before a line that is searched (sentence-transformers 6.2, `sentence_transformer/model.py`, `encode_query`
and `encode_document`). A folder without them is a plain transformer: the mean of its tokens, nothing before a text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any, Literal

from kinodex.index.errors import BadCheckpoint
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.utf8 import checked_text

Pooling = Literal["mean", "cls", "lasttoken"]
ReadJson = Callable[[str], Any]
"""Reads one of the model's files by its path there; None where the model has no such file."""
POOLINGS: Mapping[str, Pooling] = {"mean": "mean", "cls": "cls", "lasttoken": "lasttoken"}
OLD_POOLINGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""Switches of files that sentence-transformers wrote before its version 5.4."""
COVERED_PARTS = ("Transformer", "Pooling", "Normalize")
QUERY_PROMPTS, LINE_PROMPTS = ("query",), ("document", "passage", "corpus")
LONGEST = 512
"""Tokens that count where no file says how many: what BERT was trained with."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The facts of a sentence model that its vectors depend on, beside its weights."""

    pooling: Pooling
    max_length: int
    """Tokens of a text that count, its marks of start and end among them."""
    query_prompt: str
    """Written before a query ("query: ")."""
    line_prompt: str
    """Written before a line that is searched ("passage: ")."""
    pad_token: str

    @classmethod
    def of(cls, fingerprint: Fingerprint) -> ModelFacts:
        """Read the facts that the fingerprint of a sentence model holds."""
        return cls(**json.loads(fingerprint.preprocess))

    def as_json(self) -> str:
        """Write the facts for a fingerprint."""
        return json.dumps(asdict(self), sort_keys=True)

    def query(self, text: str) -> str:
        """Make the model's input of a query."""
        return self.query_prompt + self._plain(text)

    def line(self, text: str) -> str:
        """Make the model's input of a line that is searched."""
        return self.line_prompt + self._plain(text)

    def _plain(self, text: str) -> str:
        """Take out the word for padding, which would be hidden in some towers and not in others."""
        plain = checked_text(text)
        return (plain.replace(self.pad_token, " ") if self.pad_token else plain).strip()


def read_facts(name: str, read: ReadJson, pad_token: str, longest: int) -> ModelFacts:
    """Read the facts of a model that takes at most `longest` tokens; raises BadCheckpoint if it computes more."""
    pooling_path = "1_Pooling"
    for module in read("modules.json") or ():
        kind = str(module["type"]).rsplit(".", 1)[-1]
        if kind not in COVERED_PARTS:
            raise BadCheckpoint(
                f"got the sentence model {name}, which has a {kind}; give one of {', '.join(COVERED_PARTS)} alone, "
                "such as sentence-transformers/all-MiniLM-L6-v2"
            )
        if kind == "Pooling":
            pooling_path = str(module["path"])
    pooling = read(str(PurePosixPath(pooling_path) / "config.json")) or {}
    config = read("config_sentence_transformers.json") or {}
    prompts = {key: text for key, text in (config.get("prompts") or {}).items() if text}
    default = str(prompts.get(config.get("default_prompt_name") or "", ""))
    query, line = (
        next((prompts[name] for name in names if name in prompts), default) for names in (QUERY_PROMPTS, LINE_PROMPTS)
    )
    if (query or line) and not pooling.get("include_prompt", True):
        raise BadCheckpoint(f"got the sentence model {name}, whose pooling leaves its prompts out; give another")
    limit = (read("sentence_bert_config.json") or {}).get("max_seq_length") or longest
    return ModelFacts(_pooling(name, pooling), min(int(limit), longest), query, line, pad_token)


def _pooling(name: str, config: Mapping[str, Any]) -> Pooling:
    """Find the one way in which the tokens of a text become its vector."""
    modes: Any = config.get("pooling_mode") or [mode for key, mode in OLD_POOLINGS.items() if config.get(key)] or "mean"
    found = [modes] if isinstance(modes, str) else list(modes)
    if len(found) != 1 or found[0] not in POOLINGS:
        raise BadCheckpoint(
            f"got the sentence model {name}, which pools by {' and '.join(found)}; give one that pools by "
            f"{', '.join(POOLINGS)}"
        )
    return POOLINGS[found[0]]
