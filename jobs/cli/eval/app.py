"""`kinodex eval`: compare agents on the questions of a benchmark."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from jobs.cli.eval import check as eval_check_command
from jobs.cli.eval import import_answers as eval_import_command
from jobs.cli.eval import judge as eval_judge_command
from jobs.cli.eval import moments as eval_moments_command
from jobs.cli.eval import report as eval_report_command
from jobs.cli.eval import run as eval_run_command
from jobs.cli.eval import simulate as eval_simulate_command

app = typer.Typer(
    no_args_is_help=True,
    help="Compare agents on a benchmark. `eval BENCHMARK LIBRARY` is short for `eval run BENCHMARK LIBRARY`.",
)
app.command("run")(eval_run_command.eval_run)
app.command("check")(eval_check_command.check)
app.command("import")(eval_import_command.import_answers)
app.command("judge")(eval_judge_command.judge)
app.command("search")(eval_moments_command.search)
app.command("ground")(eval_moments_command.ground)
app.command("report")(eval_report_command.report)
app.command("compare")(eval_report_command.compare)
app.command("simulate")(eval_simulate_command.simulate)


def with_run(arguments: Sequence[str]) -> list[str]:
    """Insert `run` into a command line after `eval` if no other of its commands follows."""
    names = {command.name for command in app.registered_commands}
    if len(arguments) > 1 and arguments[0] == "eval" and not {arguments[1], arguments[1][:1]} & {*names, "-"}:
        return ["eval", "run", *arguments[1:]]
    return list(arguments)
