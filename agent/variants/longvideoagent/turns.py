"""Parse the turns of a LongVideoAgent master: one action as a tag of Algorithm 1, after its thoughts.

    <think>...</think><visual_query>what to look for</visual_query>
    <think>...</think><request_grounding>what to find</request_grounding>
    <think>...</think><answer>B</answer>

Read besides: `<watch>` (section 3.1) and `<search>` (the published code) for a visual query, `<reasoning>` (the
published code) for thinking, `<request_grounding>` without an end (Tables 1 and 3), and a JSON object that says the
same, `{"action": "visual_query", "query": "..."}`. A turn ends with its action's closing tag, as Algorithm 1 ends it:
what a model that cannot be stopped writes after it is not read. No action, or another one before that, is malformed,
and so is thinking within an action. Where a chat template has opened the thinking, a turn begins inside it, without
`<think>`.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping

from kinodex.agent.replies.calls import flat_call
from kinodex.agent.replies.values import says_nothing
from kinodex.index.nesting import parse_json

ACTIONS = {
    "visual_query": "visual_query",
    "watch": "visual_query",
    "search": "visual_query",
    "request_grounding": "request_grounding",
    "answer": "answer",
    "insufficient_evidence": "insufficient_evidence",
}
ENDS = ("</visual_query>", "</request_grounding>", "</answer>")
AROUND = " \t\r\n.,;:!?\"'"
NOT_ONE = (
    "it does not hold exactly one action; take one, which ends with </visual_query>, </request_grounding> or </answer>"
)

_OPENING = re.compile(r"<(visual_query|watch|search|request_grounding|answer)\s*/?>", re.IGNORECASE)
_ENDING = re.compile(r"</(visual_query|watch|search|request_grounding|answer)>", re.IGNORECASE)
_THINKING = re.compile(r"<(?:think|reasoning)>", re.IGNORECASE)
_ALOUD = r"(?:(?!<(?:think|reasoning)>).)*?</(?:think|reasoning)>"
_OPEN = r"<(?:think|reasoning)>"
_THOUGHT = re.compile(rf"\s*(?:{_OPEN})?{_ALOUD}(?:\s*{_OPEN}{_ALOUD})*", re.IGNORECASE | re.DOTALL)
_BARE_INDEX = re.compile(r"^a(\d)$", re.IGNORECASE)
_INDEX = re.compile(r"^a\d+\s*[:.)]\s*(?=\S)", re.IGNORECASE)


def thought(text: str) -> str:
    thoughts = _aloud(text)
    opening = _OPENING.search(text, len(thoughts))
    thoughts += text[len(thoughts) : opening.start() if opening else len(text)]
    return re.sub(r"</?(?:think|reasoning)>", "", thoughts, flags=re.IGNORECASE).strip()


def until_action(text: str) -> str:
    """Return a turn up to the end of its action.

    That is where Algorithm 1 stops generating (line 8), which not every model can.
    """
    end = _ENDING.search(text, len(_aloud(text)))
    return text[: end.end()] if end else text


def action_values(value: object) -> object:
    """Return an action as JSON values, `{"action", "query", "option", "answer", "evidence"}`, from a turn's text or
    from JSON.

    Raises `ValueError` saying in one line what is wrong; what is no object comes back as it is.
    """
    if isinstance(value, str):
        text = value[len(_aloud(value)) :].strip()
        value = _object(text) or _tagged(until_action(text))
    value = flat_call(value)
    if not isinstance(value, Mapping):
        return value
    values = {str(name).casefold(): each for name, each in value.items() if each is not None}
    if "action" not in values and "tool" in values:
        values["action"] = values["tool"]
    if "action" not in values:
        named = [name for name in values if name in ACTIONS]
        values = {"query": values[named[0]], **values, "action": named[0]} if len(named) == 1 else values
    if (name := str(values.get("action", "")).casefold()) not in ACTIONS:
        raise ValueError(NOT_ONE)
    values["action"] = ACTIONS[name]
    if values["action"] == "answer":
        values |= _answer(str(values.get("answer", values.get("option", ""))), values.get("option"))
    return {"query": "", "option": None, "answer": None, **values, "evidence": []}


def _aloud(text: str) -> str:
    found = _THOUGHT.match(text)
    return found[0] if found else ""


def _object(text: str) -> Mapping[str, object] | None:
    try:
        value = parse_json(text.removeprefix("```json").strip("`").strip())
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _tagged(text: str) -> dict[str, object]:
    if _THINKING.match(text):
        raise ValueError("the thinking has no end; close it with </think> before the action")
    if _THINKING.search(text):
        raise ValueError("it thinks within an action; think before the action, and take one")
    openings = list(_OPENING.finditer(text))
    if len(openings) != 1:
        raise ValueError(NOT_ONE)
    name = openings[0][1].casefold()
    if re.match(r"\s*(?:\.\.\.|…)\s*</", text[openings[0].end() :]):
        raise ValueError("it repeats the form; write your own words in the place of the dots")
    inside, end, _ = text[openings[0].end() :].partition(f"</{openings[0][1]}>")
    if name == "request_grounding":
        return {"action": name, "query": inside if end else ""}
    if not end:
        raise ValueError(f"<{name}> has no end; close it with </{name}>")
    return {"action": name, "answer" if name == "answer" else "query": inside}


def _answer(text: str, option: object) -> dict[str, object]:
    """Return the answer without spaces and punctuation around it (line 21), and the option that it names.

    The options of TVQA are a0 to a4. In "a3: a bus stop" the words after the index name the option; "a3" alone is
    the fourth, D.
    """
    text = text.strip(AROUND)
    if re.sub(r"[\s_-]+", " ", text.casefold()) == "insufficient evidence":
        return {"action": "insufficient_evidence", "query": ""}
    if bare := _BARE_INDEX.match(text):
        letter = string.ascii_uppercase[int(bare[1])]
        if not says_nothing(option) and str(option).strip(AROUND).upper() not in (letter, text.upper()):
            raise ValueError(f"option {option!r} and answer {text!r} do not say the same")
        return {"answer": text, "option": letter, "query": ""}
    return {"answer": text, "option": option or _INDEX.sub("", text), "query": ""}
