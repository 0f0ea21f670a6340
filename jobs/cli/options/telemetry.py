"""The option that sends runs of agents to a collector."""

from __future__ import annotations

from typing import Annotated

import typer

OtlpOption = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Send the run as OpenTelemetry spans to this collector: http://127.0.0.1:4318."),
]
