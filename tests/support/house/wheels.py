"""Wheels of every package of an extra, for other machines: `python -m tests.support.house.wheels`, with uv.

pip would take the markers of the machine that it runs on, so that macOS seemed to need CUDA; uv takes the platform's.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PLATFORMS = {"Linux x86-64": "x86_64-manylinux_2_31", "Linux ARM": "aarch64-manylinux_2_31", "macOS ARM": "macos"}
PYTHONS = ("3.11", "3.13")
LEAST_MACOS = "14.0"
"""The oldest that torch's wheels are for."""
NOT_FOR_USERS = ("dev",)


def resolved(platform: str, python: str, extra: str | None) -> str:
    """The number of packages where each has a wheel in its tested version, else the reason why not."""
    command = ["uv", "pip", "compile", "--quiet", "--only-binary", ":all:", "--no-header", "--no-annotate"]
    command += ["--python-platform", platform, "--python-version", python, "-c", "constraints.txt"]
    command += ["pyproject.toml", *(["--extra", extra] if extra else [])]
    environment = {**os.environ, "MACOSX_DEPLOYMENT_TARGET": LEAST_MACOS}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    if ran.returncode == 0:
        return str(ran.stdout.count("=="))
    why = re.search(r"Because (\S+ has no [\w -]+?)(?: with|,| and)", ran.stderr.replace("\n", " "))
    return why[1] if why else " ".join(ran.stderr.split())[:200]


def main() -> int:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    columns = [(name, platform, python) for name, platform in PLATFORMS.items() for python in PYTHONS]
    print("| packages, all with wheels | " + " | ".join(f"{name}, {python}" for name, _, python in columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for extra in [None, *(each for each in extras if each not in NOT_FOR_USERS)]:
        found = [resolved(platform, python, extra) for _, platform, python in columns]
        print(f"| {f'`[{extra}]`' if extra else 'base'} | " + " | ".join(found) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
