"""Errors of the agent. A bad reply of a model is data (`Exchange.invalid`), not one of these.

KinodexError
  AgentError
    BadQuestion       the question or its options cannot be asked
    BadSettings       an agent's parameters or budget make no sense
    UnknownAgent      no agent of that name, or none in a file or module
    BadAnswer         an agent of one's own gave back what is no answer to its question
    InvalidReply      raised by `Request.check`; a model turns it into `Exchange.invalid`
    ModelError        no reply came at all
      ModelUnreachable    nobody answers there, or not in time
        NoCompletion        somebody answers, but not with a chat completion
      ModelRejected       the endpoint refuses the request: size, content, settings
        AllRejected         it would refuse any other request too: this ends a run, other refusals are data
          KeyMissing          the endpoint wants a key and the environment holds none
          ModelUnknown        the endpoint has no model of that name
    CacheDamaged      the file of stored replies cannot be read or written
    NeedsLanguage     the built-in model, which has no language, is asked what needs one
    NeedsPictures     an agent, or a tool of one, that looks at frames is asked about a video without any
    OutOfBudget       inside a run only: `ask` turns it into the best answer so far
    TraceError
      NotATrace         the file is not a trace this version can read
      NotInTrace        a replayed run asked something that was never recorded
"""

from __future__ import annotations

from index.errors import KinodexError


class AgentError(KinodexError):
    """Anything the agent cannot do."""


class BadQuestion(AgentError):
    """The question or its options cannot be asked."""


class BadSettings(AgentError):
    """An agent's parameters or budget make no sense."""


class UnknownAgent(AgentError):
    """There is no agent of that name, or in that file or module."""


class BadAnswer(AgentError):
    """An agent gave back what is no answer to its question: it would be counted, and could not be read again."""


class InvalidReply(AgentError):
    """A well-formed reply says something impossible: an unknown segment, an unknown option."""


class ModelError(AgentError):
    """No reply came at all."""


class ModelUnreachable(ModelError):
    """Nobody answers at the endpoint, or not in time."""


class NoCompletion(ModelUnreachable):
    """A server answers with success, but not with a chat completion; a gateway does so if what is behind it fails."""


class ModelRejected(ModelError):
    """The endpoint refuses the request: its size, content or settings."""


class AllRejected(ModelRejected):
    """The endpoint refuses whatever is asked of it in this way: a wrong key, or no chat completions there."""


class KeyMissing(AllRejected):
    """The endpoint wants a key, and the environment holds none."""


class ModelUnknown(AllRejected):
    """The endpoint has no model of that name."""


class CacheDamaged(AgentError):
    """The file of stored replies cannot be read or written."""


class NeedsLanguage(AgentError):
    """The built-in model, which has no language, is asked what needs one."""


class NeedsPictures(AgentError):
    """What looks at frames is asked about a video that has none, or a video has neither frames nor words."""


class OutOfBudget(AgentError):
    """A budget is spent (its name is the message); `ask` turns this into the best answer so far."""


class TraceError(AgentError):
    """A trace cannot be read or replayed."""


class NotATrace(TraceError):
    """The file is not a trace that this version can read."""


class NotInTrace(TraceError):
    """A replayed run asked something that was never recorded."""
