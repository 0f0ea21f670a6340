"""Every error that a user can meet, and the exit code that it gives.

Each room owns its branch of the tree, because the rooms do not know each other; here at the roof they meet::

    KinodexError                        kinodex/errors.py, beneath all rooms
    ├── LibraryError                    a library that cannot be opened or written               4
    │   └── UnknownVideo, TimeOutside, QueryError, MetadataConflict                           2
    ├── SpaceError                      an embedding space that cannot be had                    2
    ├── AgentError                      agent/errors.py
    │   ├── BadQuestion, BadSettings, UnknownAgent, CacheDamaged, TraceError                     2
    │   ├── ModelError                  a language model that gives no reply                     5
    │   ├── NoUsableReply               models that reply, but never make sense                  6
    │   └── InvalidReply, OutOfBudget   never seen outside: data of an answer
    ├── UsageError                      jobs/errors.py: a command line that makes no sense       2
    ├── CostReached                     jobs/errors.py: models have cost as much as they may     5
    ├── UnreadableText                  never seen outside: data of an import
    └── PipelineError                   pipeline/errors.py
        ├── SourceError                 something that is not there, or not to be had            2
        ├── ModelUnusable               a model of an optional stage that cannot be had          2
        └── VideoError, SubtitleError   what a file holds; in an ingest these are failure rows   3

Exit code 0 is success and 3 says that some of it is not as it should be: some videos of a batch failed and the rest is
indexed, a library lacks rows (`maintain`), what a machine needs is not there (`doctor`). Anything that is not in
this tree is a fault of the program: it keeps its traceback and exits with 1.
"""

from __future__ import annotations

from errno import EMFILE, ENFILE
from importlib.util import find_spec

from kinodex.errors import KinodexError

OK, CRASHED, BAD_INPUT, SOME_FAILED, LIBRARY_UNUSABLE, MODEL_UNUSABLE, REPLIES_UNUSABLE = range(7)
INTERRUPTED, PIPE_CLOSED = 130, 141
"""As a shell has it for a process that a signal ends: SIGINT, and SIGPIPE once nobody reads its output."""

EXTRAS = {
    "torch": "clip",
    "open_clip": "clip",
    "onnx": "clip",
    "onnxscript": "clip",
    "av": "ingest",
    "charset_normalizer": "ingest",
    "transformers": "hf",
    "rapidocr": "text",
    "scipy": "eval",  # hf brings it too, but what tracks detections has met transformers first
    "duckdb": "sql",
    "opentimelineio": "edit",
    "otio_cmx3600_adapter": "edit",
    "yt_dlp": "watch",
    "mcp": "mcp",
    "opentelemetry": "otel",
    "opentelemetry.sdk": "otel",
    "opentelemetry.exporter": "otel",
    "opentelemetry.exporter.otlp": "otel",
    "matplotlib": "eval",
    "prometheus_client": "metrics",
    "pynvml": "metrics",
    "ray": "ray",
    "trl": "train",
    "datasets": "train",
    "decord": "decord",
    "torchcodec": "torchcodec",
    "aiohttp": "http",
    "s3fs": "s3",
}
"""What the base install leaves out, and the extra that brings it."""


def check_packages(*names: str) -> None:
    """Raise ModuleNotFoundError for a package that is missing, before work begins that needs it at its end.

    >>> check_packages("json")
    """
    for name in names:
        if find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


class UsageError(KinodexError):
    """The command line asks for something that makes no sense."""


class CostReached(KinodexError):
    """A run has cost as much as it may, and is not at its end."""


class UnreadableText(KinodexError):
    """A file that an import can make nothing of; the import goes on with the others."""


def exit_code(error: Exception) -> int:
    """Return the exit code for an error of the tree above."""
    from kinodex.agent.errors import ModelError, NoUsableReply
    from kinodex.index.errors import LibraryError, MetadataConflict, QueryError, TimeOutside, UnknownVideo
    from kinodex.pipeline.errors import ModelUnusable, PipelineError, SourceError

    if isinstance(error, ModelError | CostReached):
        return MODEL_UNUSABLE
    if isinstance(error, NoUsableReply):
        return REPLIES_UNUSABLE
    if isinstance(error, LibraryError) and not isinstance(
        error, (UnknownVideo, TimeOutside, QueryError, MetadataConflict)
    ):
        return LIBRARY_UNUSABLE
    of_a_file = isinstance(error, PipelineError) and not isinstance(error, SourceError | ModelUnusable)
    return SOME_FAILED if of_a_file or not isinstance(error, KinodexError) else BAD_INPUT


NO_MEMORY = ("can't start new thread", "failed to map segment", "bad_alloc", "Cannot allocate memory")
"""Words of Python, the loader, C++ and the system."""


def lacks_files(error: BaseException) -> bool:
    """Return True for an error that says that this process, or the machine, may open no further file."""
    known = isinstance(error, OSError) and error.errno in (EMFILE, ENFILE)
    return known or "too many open files" in str(error).lower()


def lacks_memory(error: BaseException) -> bool:
    """Return True for an error that says no more than that no memory is left."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in NO_MEMORY)
