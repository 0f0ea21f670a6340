"""Errors of the agent. A bad reply of a model is data (`Exchange.invalid`), not one of these.

    KinodexError
      AgentError
        BadQuestion       the question or its options cannot be asked
        BadSettings       an agent's parameters or budget make no sense
        UnknownAgent      no agent of that name
        InvalidReply      raised by `Request.check`; a model turns it into `Exchange.invalid`
        ModelError        no reply came at all
          ModelUnreachable    nobody answers there, or not in time
          ModelRejected       the endpoint refuses the request: key, model name, size, content
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
    """There is no agent of that name."""


class InvalidReply(AgentError):
    """A well-formed reply says something impossible: an unknown segment, an unknown option."""


class ModelError(AgentError):
    """No reply came at all."""


class ModelUnreachable(ModelError):
    """Nobody answers at the endpoint, or not in time."""


class ModelRejected(ModelError):
    """The endpoint refuses the request: its key, model name, size or content."""


class TraceError(AgentError):
    """A trace cannot be read or replayed."""


class NotATrace(TraceError):
    """The file is not a trace that this version can read."""


class NotInTrace(TraceError):
    """A replayed run asked something that was never recorded."""
