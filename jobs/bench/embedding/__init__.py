"""Measurements of the models that embed pictures."""

from __future__ import annotations
