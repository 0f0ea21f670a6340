"""Frames of a library for training and analysis: planned once at a fixed state, read in pieces by many processes.

May import the rest of `index` but `maintain`; torch is loaded by `torch_frames` alone, which nothing imports early.
"""

from __future__ import annotations
