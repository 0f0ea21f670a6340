"""Parse replies of language models without guessing.

Every reply is parsed in the same way: JSON is searched for leniently (`loose_json`) and validated strictly; a reply
that fits nothing is shown to the model again with its problem. An object in a list is read as the object; of several
replies that differ none is picked.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from kinodex.agent.errors import InvalidReply
from kinodex.agent.models.loose_json import TOKEN, json_values
from kinodex.agent.prompts.reply_form import FORM, reply_form, reply_line
from kinodex.agent.protocol.reply import R, Reply
from kinodex.agent.protocol.request import Request
from kinodex.agent.replies.calls import flat_call
from kinodex.agent.replies.schema import DOTS, REASONING, WORDS, filled_in, words_of_form
from kinodex.agent.replies.thoughts import after_thought, in_one_form
from kinodex.index.nesting import MOST_DEPTH, values_within

SHOWN_PROBLEMS = 3
FORM_ALONE = "it repeats the form; write what you found about this question in the place of its words"
LONGEST_PROBLEM = 400
"""Characters of a complaint."""


def parse_reply(text: str, request: Request[R]) -> tuple[R | None, str | None]:
    """Parse and check what a model wrote: the reply, or one line with the problem."""
    text = in_one_form(text)
    if not text.strip():
        return None, "empty"
    try:
        if request.form != "text":
            return parse_json(text, request), None
        reply = request.Reply.from_text(text.strip())
        request.check(reply)
        return reply, None
    except InvalidReply as error:
        line = " ".join(str(error).split())  # it may quote the reply
        return None, line if len(line) <= LONGEST_PROBLEM else f"{line[: LONGEST_PROBLEM - 3]}..."


def parse_json(text: str, request: Request[R]) -> R:
    """Find the one reply in `text` that fits the request's schema and passes its check, as JSON or in plain words.

    Raises `InvalidReply` with the problem in one line: no JSON, broken JSON, a misfit, or several replies
    that differ.
    """
    problem, blank = "there is no JSON in it", words_of_form(request.Reply)
    fitting: list[R] = []
    if f'": {DOTS}' in text:
        raise InvalidReply(FORM_ALONE)
    values = [_without_copied_reasons(each, request) for each in json_values(text)]
    if any(each == WORDS for value in values for each in values_within(value, MOST_DEPTH)):
        raise InvalidReply(FORM_ALONE)
    parts = [part for value in values for part in (value if isinstance(value, list) else [value])]
    if not any(isinstance(part, dict) for part in parts):
        reply = request.in_words(after_thought(text))
        if reply is not None:
            return reply
    for value in values:
        try:
            json.dumps(value, ensure_ascii=False).encode()
            own = filled_in(value, blank)
            reply = request.interpret(_validated(request.Reply, flat_call(own)))
            request.check(reply)
        except UnicodeEncodeError:
            problem = "it holds an escape that is half a character"
        except ValidationError as error:
            problem = _first_misfits(error) if own == value else FORM_ALONE
        except InvalidReply as error:
            problem = str(error)
        else:
            if not any(_same(reply, each) for each in fitting):
                fitting.append(reply)
    if len(fitting) > 1:
        raise InvalidReply(f"it holds {len(fitting)} different replies; give one")
    if not fitting:
        raise InvalidReply(problem)
    return fitting[0]


def _without_copied_reasons(value: object, request: Request[R]) -> object:
    """Return a reply without reasons that repeat the form's; a copy of the whole form comes back as it is.

    A small model copies the words of the form and yet makes its own choice.
    """
    if not isinstance(value, dict) or value.get(REASONING) != WORDS:
        return value
    if json.dumps({**value, "evidence": []}) in {json.dumps({**each, "evidence": []}) for each in _forms(request)}:
        return value
    return {**value, REASONING: ""}


def _forms(request: Request[R]) -> list[dict[str, Any]]:
    """Return the form as the prompt shows it, and as the schema has it."""
    shown = reply_line(request).partition(f"{FORM} ")[2].splitlines()
    return [json.loads(each) for each in (*shown[:1], reply_form(request.schema()))]


def with_end(text: str, stops: Sequence[str]) -> str:
    """Return a reply with the closing tag at which it was stopped, that of the tag which was opened last.

    Endpoints leave it out. A tag that its thoughts mention is not open.
    """
    said = after_thought(text) or text
    opened = {each: said.rfind(each.replace("/", "")) for each in stops}
    last = max(stops, key=opened.__getitem__, default="")
    return f"{text}{last}" if last and opened[last] > said.rfind(last) else text


def parse_whole_parts(text: str, request: Request[R]) -> R | None:
    """Return the parts of a reply that was cut off which are whole, of a request that can ask for the others; else
    None.

    They are those before the last `}` in the outermost list of objects.
    """
    text = after_thought(text)
    open_ones: list[str] = []
    whole, depth = "", 0
    for match in TOKEN.finditer(text) if request.asks_for_rest else ():
        if match[0] in "{[":
            open_ones.append(match[0])
            depth = depth or (len(open_ones) if match[0] == "[" else 0)
        elif match[0] in "}]" and open_ones:
            open_ones.pop()
            if match[0] == "}" and depth and len(open_ones) == depth:
                whole = text[: match.end()] + "".join("}" if each == "{" else "]" for each in reversed(open_ones))
    return parse_reply(whole, request)[0]


def _validated(reply: type[R], value: object) -> R:
    """Validate a value, or the one object of a list where a list is no reply."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        try:
            return reply.model_validate(value)
        except ValidationError:
            return reply.model_validate(value[0])
    return reply.model_validate(value)


def _same(one: Reply, other: Reply) -> bool:
    """Return True if two replies say the same, whatever their reasons."""
    return one.model_dump(exclude={REASONING}) == other.model_dump(exclude={REASONING})


def _first_misfits(error: ValidationError) -> str:
    """Return the first few misfits with their paths: "segments.0.score: Input should be ..."."""
    misfits = [
        f"{'.'.join(map(str, each['loc'])) or 'reply'}: {each['msg'].removeprefix('Value error, ')}"
        for each in error.errors()
    ]
    more = len(misfits) - SHOWN_PROBLEMS
    return "; ".join(misfits[:SHOWN_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")
