"""Types of fields that rows of several benchmarks have."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Letter = Annotated[str, Field(pattern="^[A-Z]$")]
Options = Annotated[tuple[str, ...], Field(min_length=2)]
LengthS = Annotated[float, Field(gt=0)]
TimeRange = tuple[float, float]
"""A start and an end in seconds."""
Name = Annotated[str, Field(min_length=1)]
