"""Command lines that one process of its own runs one after another, for a start of each takes most of its time.

python -m tests.support.command_process torch,open_clip   hides these packages, and reads a list of words a line
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

from tests.support.processes import ending_process
from tests.support.without_modules import hide

if TYPE_CHECKING:
    from tests.support.command import Ran


class CommandProcess:
    """A process that runs commands."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, *arguments: object) -> Ran:
        from tests.support.command import Ran  # it imports the product, of which a child hides a part first

        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([*map(str, arguments)]) + "\n")
        self._process.stdin.flush()
        return Ran(*json.loads(self._process.stdout.readline()))


@contextmanager
def command_process(before: Sequence[str] = (), hidden: str = "", **options: Any) -> Iterator[CommandProcess]:
    """Start such a process by the words `before` its own, without the packages in `hidden`; options are `Popen`'s."""
    command = [*before, sys.executable, "-m", "tests.support.command_process", hidden]
    pipe = subprocess.PIPE
    with ending_process(command, stdin=pipe, stdout=pipe, text=True, **options) as process:
        yield CommandProcess(process)
        process.communicate()


def main() -> None:
    """Run the command lines of standard input, and print of each its exit code, its output and its errors."""
    hide(list(filter(None, sys.argv.pop(1).split(","))))
    from kinodex.cli.main import main as kinodex

    for line in sys.stdin:
        sys.argv[:], code = ["kinodex", *json.loads(line)], 0
        with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
            try:
                kinodex()
            except SystemExit as done:
                code = int(str(done.code or 0))
        print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)


if __name__ == "__main__":
    main()
