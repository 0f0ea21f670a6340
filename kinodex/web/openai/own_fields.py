"""Fields of a request that OpenAI's form has no place for."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field, model_validator

from kinodex.agent.protocol.question import MAX_OPTIONS
from kinodex.jobs.errors import UsageError
from kinodex.requests import Ask
from kinodex.web.bodies import remote

NO_QUESTION = Ask(question="")


class OwnFields(BaseModel):
    """Fields that OpenAI's form has no place for (`extra_body={"kinodex": {...}}`): those of `Ask`, and three more.

    `options` None: those that the text lists; an empty list: none, whatever the text looks like. `reasoning`: say each
    round as a sentence. `cite`: end the text with film and time of the evidence; None: where there are no options,
    for programs compare the text of an answer to options.
    """

    request: Ask = NO_QUESTION
    """The question's other fields; its words come from the messages."""
    options: list[str] | None = Field(default=None, max_length=MAX_OPTIONS + 1)
    reasoning: bool = True
    cite: bool | None = None

    @model_validator(mode="before")
    @classmethod
    def _split(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "request" in given:
            return given
        own = {name: given[name] for name in ("options", "reasoning", "cite") if name in given}
        try:
            asking = remote(Ask, {name: value for name, value in given.items() if name not in own}, ("question",))
        except UsageError as error:
            raise ValueError(str(error)) from error
        return own | {"request": asking}
