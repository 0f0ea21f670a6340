"""`kinodex eval`: agents measured against each other on the questions of a benchmark."""

from __future__ import annotations

import typer
from click import Command, Context
from typer.core import TyperGroup


class BenchmarkOrCommand(TyperGroup):
    """`kinodex eval BENCHMARK LIBRARY` is short for `kinodex eval run BENCHMARK LIBRARY`."""

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        known = args[0] in self.commands
        return super().resolve_command(ctx, args if known else ["run", *args])


app = typer.Typer(cls=BenchmarkOrCommand, no_args_is_help=True, help="Measure agents against each other on benchmarks.")
