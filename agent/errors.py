"""Errors of the agent. A bad reply of a model is data (`Exchange.invalid`), not one of these."""

from __future__ import annotations

from kinodex.errors import KinodexError


class AgentError(KinodexError):
    """An error of the agent; all others here are kinds of it."""


class BadQuestion(AgentError):
    """The question or its options cannot be asked."""


class BadSettings(AgentError, ValueError):
    """An agent's parameters or budget make no sense."""


class UnknownAgent(AgentError):
    """There is no agent of that name, or in that file or module."""


class BadAnswer(AgentError):
    """An agent returned something that is not an answer to its question, or nothing for long."""


class InvalidReply(AgentError):
    """A well-formed reply says something impossible: an unknown segment, an unknown option."""


class ModelError(AgentError):
    """No reply came at all."""


class ModelUnreachable(ModelError):
    """The endpoint does not answer, or not in time."""


class NoCompletion(ModelUnreachable):
    """A server answers with success, but not with a chat completion; a gateway does so if what is behind it fails."""


class ModelRejected(ModelError):
    """The endpoint refuses the request: its size, content or settings."""


class Filtered(ModelRejected):
    """A filter of the server objects to what the request holds; others pass, so it is a reply that cannot be used."""


class ReplyRefused(ModelRejected):
    """A reply that is not read: longer or deeper than any is, or one that sends the request on to another server."""


class TakesNoPictures(ModelRejected):
    """The model takes no pictures, and a request, or an agent, has some; `what` is the message without what to do."""

    def __init__(self, what: str, todo: str = "") -> None:
        super().__init__(f"{what}; {todo}" if todo else what)
        self.what = what


class ContextSpent(ModelRejected):
    """Request and reply are longer than the model's context; `limit_tokens` is its length, if the server names it."""

    def __init__(self, message: str, limit_tokens: int | None = None) -> None:
        super().__init__(message)
        self.limit_tokens = limit_tokens


class AllRejected(ModelRejected):
    """The endpoint would refuse any other request too: a wrong key, or no chat completions there."""


class PromptCut(AllRejected):
    """The server reads a part of a request and says so in its count of tokens alone; so it would with the others."""


class KeyMissing(AllRejected):
    """The endpoint wants a key, and the environment holds none."""


class ModelUnknown(AllRejected):
    """The endpoint has no model of that name."""


class CacheDamaged(AgentError):
    """The file of stored replies cannot be read or written."""


class NeedsLanguage(AgentError):
    """A request that needs language is put to `similarity`, which has none."""


class NeedsPictures(AgentError):
    """A video has no frames for an agent or a tool that looks at them, or neither frames nor words."""


class OutOfBudget(AgentError):
    """A budget is spent (its name is the message); `ask` turns this into the best answer so far."""


class NoUsableReply(AgentError):
    """Models reply, but in several rounds in a row nothing that could be used; `ask` asks for the best answer so far.

    An evaluation ends with it after several such questions.
    """


class TraceError(AgentError):
    """A trace cannot be read or replayed."""


class NotATrace(TraceError):
    """The file is not a trace that this version can read."""


class NotInTrace(TraceError):
    """A replayed run asked something that was never recorded."""


ENDS_ALL = (AllRejected, CacheDamaged)
"""Errors that every other question would meet too; of many, no further one is begun."""
