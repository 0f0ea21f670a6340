"""The commands of `kinodex eval`."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from kinodex.cli.eval.check import check
from kinodex.cli.eval.judge import judge
from kinodex.cli.eval.moments import ground, search
from kinodex.cli.eval.predictions import import_answers
from kinodex.cli.eval.report import compare, report
from kinodex.cli.eval.run import eval_run
from kinodex.cli.meant import Group

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="Compare agents on a benchmark. `eval BENCHMARK LIBRARY` is short for `eval run BENCHMARK LIBRARY`.",
)
app.command("run")(eval_run)
app.command("report")(report)
app.command("compare")(compare)
app.command("check")(check)
app.command("import")(import_answers)
app.command("judge")(judge)
app.command("search")(search)
app.command("ground")(ground)


def with_run(arguments: Sequence[str]) -> list[str]:
    """Insert `run` into a command line after `eval` if no other of its commands follows."""
    names = {command.name for command in app.registered_commands}
    if len(arguments) > 1 and arguments[0] == "eval" and not {arguments[1], arguments[1][:1]} & {*names, "-"}:
        return ["eval", "run", *arguments[1:]]
    return list(arguments)
