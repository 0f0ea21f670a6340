"""The query side with the base install alone: what each command imports, and what it may never look for."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

NOT_IN_BASE = (
    *("torch", "open_clip", "torchvision", "transformers", "timm", "safetensors"),  # clip and hf
    *("av", "charset_normalizer", "onnx", "onnxscript", "openvino"),  # decode and ingest
    *("ray", "lancedb", "pandas", "matplotlib", "scipy", "prometheus_client", "pynvml", "s3fs"),
    *("datasets", "trl", "peft", "sentencepiece", "llguidance", "decord", "torchcodec", "aiohttp"),
)
PYARROW_LOOKS_FOR = {"pandas"}
"""pyarrow itself tries to import it, and does without."""

RUN = """
import json, os, sys
from importlib import import_module
from importlib.machinery import ModuleSpec

class Refuse:
    tried = set()

    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self) if name.partition(".")[0] in REFUSED else None  # looking for it is no import

    def create_module(self, spec):
        self.tried.add(spec.name.partition(".")[0])
        raise ModuleNotFoundError(f"No module named {spec.name!r}", name=spec.name)

    def exec_module(self, module):
        raise AssertionError

def run(report, *arguments):
    sys.argv[:], code = ["kinodex", *arguments], 1
    try:
        if sys.argv[1] == "-c":
            exec(sys.argv.pop(2), {})
        else:
            from kinodex.cli.main import main
            main()
        code = 0
    except SystemExit as done:
        code = done.code or 0
    finally:
        imported = [name for name, module in sys.modules.items() if module is not None]
        with open(report, "w") as file:
            json.dump({"tried": sorted(Refuse.tried), "imported": imported, "code": code}, file)

REFUSED, first, lines = json.loads(sys.argv[1])
sys.meta_path.insert(0, Refuse())
for name in first:
    import_module(name)
for line in lines:
    if os.fork() == 0:
        try:
            run(*line)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
    os.wait()
"""
"""Runs command lines, each in a fork of a process that has imported some modules first."""


class Imports(NamedTuple):
    """Modules that a process imported, and those of NOT_IN_BASE that it looked for."""

    imported: set[str]
    tried: set[str]


class Command(NamedTuple):
    """A command of the query side, and modules of the base install that it has no use for."""

    arguments: tuple[str, ...]
    useless: tuple[str, ...]


NO_TABLES = ("numpy", "pyarrow", "lance", "tokenizers", "onnxruntime", "PIL")
NO_MODELS = ("openai", "httpx2", "jinja2", "starlette", "uvicorn", "kinodex.agent.variants", "kinodex.jobs.eval.run")
COMMANDS = {
    "help": Command(("--help",), (*NO_TABLES, *NO_MODELS, "kinodex.index.library", "asyncio", "urllib.request")),
    "version": Command(
        ("--version",), (*NO_TABLES, *NO_MODELS, "pydantic", "rich", "kinodex.index.library", "asyncio")
    ),
    "info": Command(
        ("info", "LIBRARY"),
        (*NO_MODELS, "tokenizers", "onnxruntime", "PIL", "kinodex.agent", "kinodex.pipeline.sources"),
    ),
    "export frames": Command(
        ("export", "frames", "LIBRARY", "SCRATCH/frames", "--video", "film-01", "--from", "3", "--to", "4"),
        (*NO_MODELS, "tokenizers"),
    ),
    "agents": Command(
        ("agents",), (*(set(NO_TABLES) - {"numpy"}), "openai", "jinja2", "kinodex.index.library", "starlette")
    ),
    "search": Command(("search", "LIBRARY", "an orange anchor at sea", "--json"), (*NO_MODELS, "kinodex.agent.ask")),
    "ground": Command(("ground", "LIBRARY", "an orange anchor at sea", "--json"), (*NO_MODELS, "PIL")),
    "ask": Command(
        ("ask", "LIBRARY", "What colour is the ball?", "--video", "film-03", "--trace", "SCRATCH/trace.jsonl"),
        ("openai", "httpx2", "starlette", "kinodex.jobs.eval.run"),
    ),
    "export page": Command(("export", "page", "LIBRARY", "SCRATCH/page.html"), ("openai", "httpx2", "jinja2")),
    "servers": Command(
        ("-c", "import kinodex.mcp.server, kinodex.mcp.server, kinodex.web.pages"), ("openai", "jinja2")
    ),
    "open": Command(
        ("-c", "import sys, kinodex; kinodex.open(sys.argv[2]).info()", "LIBRARY"),
        (*NO_MODELS, "pydantic", "typer", "rich", "tokenizers", "PIL", "kinodex.agent.protocol", "jobs"),
    ),
}


def run(names: Sequence[str], first: Sequence[str], library: Path, scratch: Path) -> dict[str, Imports]:
    """Run commands, each in a process of its own where nothing but the base install can be imported."""
    reports = {name: scratch / f"{name}.json" for name in names}
    lines = []
    for name, report in reports.items():
        words = COMMANDS[name].arguments
        named = [each.replace("LIBRARY", str(library)).replace("SCRATCH", str(scratch)) for each in words]
        lines.append([str(report), *named])
    environment = {**os.environ, "KINODEX_CACHE": str(scratch / "cache")}
    command = [sys.executable, "-c", RUN, json.dumps([NOT_IN_BASE, first, lines])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    found = {name: json.loads(report.read_text()) for name, report in reports.items()}
    assert {name: each["code"] for name, each in found.items()} == dict.fromkeys(names, 0), done.stderr[-2000:]
    return {name: Imports(set(each["imported"]), set(each["tried"])) for name, each in found.items()}


@pytest.fixture(scope="module")
def imports(library: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Imports]:
    """The imports of each command; those that may import Lance get it from one process that has imported it."""
    scratch = tmp_path_factory.mktemp("scratch")
    bare = [name for name, command in COMMANDS.items() if "lance" in command.useless]
    others = [name for name in COMMANDS if name not in bare]
    return run(bare, (), library, scratch) | run(others, ("lance",), library, scratch)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_needs_the_base_install_alone_and_imports_what_it_uses(
    name: str, imports: dict[str, Imports]
) -> None:
    assert imports[name].tried <= PYARROW_LOOKS_FOR
    assert not {each for each in COMMANDS[name].useless if each in imports[name].imported}


UNIX_MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "ctypes"}
LINUX_CALLS = {
    *("fork", "forkpty", "sync", "sched_getaffinity", "sched_setaffinity", "posix_fadvise", "memfd_create", "splice"),
    *("copy_file_range", "eventfd", "pidfd_open", "setns", "unshare", "getrandom", "getxattr", "setxattr", "O_DIRECT"),
}
LINUX_FOLDERS = ("/proc", "/sys", "/dev")
SUSPECT = re.compile(rf"\b(?:{'|'.join(UNIX_MODULES | LINUX_CALLS)})\b|{'|'.join(LINUX_FOLDERS)}")
"""Is in each source that may have a use of them."""
PORTABLE_ANYWAY = {
    ("jobs/towers/export_process.py", "/proc"): "the child that exports a tower runs in an ingest alone",
    ("index/spaces/arithmetic.py", "/proc"): "without it Python names the processor, and bf16 is tried",
    ("index/store/processes.py", "/proc"): "without it no process is taken for dead: a lease runs out by its time",
    ("index/store/memory.py", "/proc"): "without it half of all memory counts as free",
    ("index/store/memory.py", "/sys"): "without it there is no container with a limit",
    ("index/videos/writer.py", "sync"): "ingest alone completes videos",
    ("index/additions.py", "sync"): "the stages of `kinodex add` alone complete additions",
}


@pytest.mark.slow
def test_nothing_on_the_query_side_is_linux_alone(imports: dict[str, Imports], root: Path) -> None:
    names = set.union(*(each.imported for each in imports.values()))
    files = {root / f"{name.replace('.', '/')}.py" for name in names if name.partition(".")[0] == "kinodex"}
    sources = {file.resolve() for file in files if file.exists()}
    assert len(sources) > 50
    texts = {str(file.relative_to(root)): file.read_text() for file in sources}
    found = {(file, use) for file, text in texts.items() if SUSPECT.search(text) for use in linux_uses(text)}
    assert found - PORTABLE_ANYWAY.keys() == set()
    assert PORTABLE_ANYWAY.keys() - found == set(), "is portable by now"


def linux_uses(source: str) -> set[str]:
    """Modules imported with a module, calls and folders anywhere in it, that some systems lack."""
    tree = ast.parse(source)
    inside = {child for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) for child in ast.walk(each)}
    uses: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and node not in inside:
            named = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            uses |= UNIX_MODULES.intersection(named)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            uses |= LINUX_CALLS & {node.attr}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            uses |= {folder for folder in LINUX_FOLDERS if node.value.startswith(f"{folder}/")}
    return uses
