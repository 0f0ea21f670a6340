"""Processes of tests that have torch and transformers from the start: forked from one that did no more than load them.

A process of its own would take 5 s of a processor for that.
"""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess


def start(target: Callable[..., object], *arguments: object) -> ForkServerProcess:
    """Start a process that calls a function of a module with arguments that can be pickled."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.support.models.warm_imports"])
    process = context.Process(target=target, args=arguments)
    process.start()
    return process
