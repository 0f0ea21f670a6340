"""Thoughts that a reasoning model writes before its reply: in each form that is known, made into `<think>...</think>`.

Drafts in them are no replies. So every reply is read from what stands after them, whatever it is: JSON, tags or words.
"""

from __future__ import annotations

import re

OPENING, CLOSING = "<think>", "</think>"
FORMS = (
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),  # Seed-OSS
    ("<longcat_think>", "</longcat_think>"),
    ("[THINK]", "[/THINK]"),  # Magistral
    ("◁think▷", "◁/think▷"),  # Kimi-VL
    ("<|begin_of_thought|>", "<|end_of_thought|>"),  # Sky-T1, OpenThinker
    ("<|START_THINKING|>", "<|END_THINKING|>"),  # Command A
)
"""Marks at the beginning and the end of thoughts, beside those of DeepSeek, Qwen and most others."""
_MARKS = {mark.casefold(): own for pair in FORMS for mark, own in zip(pair, (OPENING, CLOSING), strict=True)}
_MARK = re.compile("|".join(map(re.escape, _MARKS)), re.IGNORECASE)
_ANALYSIS = re.compile(r"(?:<\|start\|>assistant)?<\|channel\|>analysis<\|message\|>(.*?)(?:<\|end\|>|\Z)", re.DOTALL)
"""Harmony, the form of gpt-oss: each message has a channel, and the last one is the reply."""
_HARMONY = re.compile(r"<\|start\|>\w*|<\|channel\|>\w*|<\|constrain\|>\w*|<\|(?:message|end|return)\|>")
_SPAN = re.compile(rf"{OPENING}.*?{CLOSING}", re.DOTALL | re.IGNORECASE)


def in_one_form(text: str) -> str:
    """Return a reply with its thoughts as `<think>...</think>`, or `<think>...` where they have no end.

    >>> in_one_form("[THINK]Red?[/THINK]B")
    '<think>Red?</think>B'
    """
    if "<|channel|>" in text:
        text = _ANALYSIS.sub(lambda found: f"{OPENING}{found[1]}{CLOSING if _is_ended(found) else ''}", text)
        text = _HARMONY.sub("", text)
    return _MARK.sub(lambda found: _MARKS[found[0].casefold()], text)


def after_thought(text: str) -> str:
    """Return what stands after the thoughts of a reply, or before them if nothing does.

    >>> after_thought("Let me see.</think> B")
    'B'
    """
    text = in_one_form(text)
    reply = text.rpartition(CLOSING)[2].strip()
    return reply or _without_spans(text).strip()


def is_thinking(text: str) -> bool:
    """Return True for a reply that ends within its thoughts: it holds no reply yet."""
    return _without_spans(in_one_form(text)).lstrip().startswith(OPENING)


def _without_spans(text: str) -> str:
    """Return a text without thoughts that end; a chat template may have opened the first."""
    return _SPAN.sub("", text).rpartition(CLOSING)[2]


def _is_ended(found: re.Match[str]) -> bool:
    return found[0].endswith("<|end|>")
