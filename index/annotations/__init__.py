"""Annotations of videos as readers see them: voices, text on screen, chapters, notes of agents, and all lines."""

from __future__ import annotations
