"""Annotations of videos as readers see them.

Voices, text on screen, chapters, notes of agents, and all lines. Uses store, videos.
"""

from __future__ import annotations
