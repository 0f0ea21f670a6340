"""Imports of the process from which `warm_processes` are forked: no Lance, whose threads a fork would lose."""

from __future__ import annotations

from importlib import import_module

from kinodex.pipeline.models.hub import import_transformers

import_transformers()
import_module("open_clip")
