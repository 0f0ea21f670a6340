"""One import name: what is installed, and a script beside files that bear the names of our rooms."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from tests.support.servers.ray_node import environment

pytestmark = pytest.mark.slow
ROOMS = ("agent", "index", "jobs", "pipeline")
TRAP = "raise ImportError(__file__ + ' was imported')\n"
SCRIPT = """
import sys
import kinodex

if __name__ == "__main__":
    films, library = sys.argv[1:]
    print(kinodex.ingest(films, library=library, space="builtin").count("indexed"))
    opened = kinodex.open(library)
    hit = opened.search("a bird at sea", k=1)[0]
    print(opened.video(hit.video_id).title)
    print(opened.ask("What colour is the bird at sea?").text)
    print(kinodex.__file__)
"""


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel made of this checkout, an sdist, and the wheel that is made of the sdist, without a network."""
    folder = tmp_path_factory.mktemp("built")
    _hatchling(root, "-t", "wheel", "-t", "sdist", "-d", str(folder))
    with tarfile.open(next(folder.glob("*.tar.gz"))) as sdist:
        sdist.extractall(folder, filter="data")
    _hatchling(next(folder.glob("kinodex-*/")), "-t", "wheel", "-d", str(folder / "from_sdist"))
    return folder


def _hatchling(root: Path, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "hatchling", "build", *arguments], cwd=root, check=True, capture_output=True)


def test_wheels_hold_every_file_below_kinodex_and_nothing_beside_it(root: Path, built: Path) -> None:
    files = [file for folder in (*ROOMS, "kinodex") for file in (root / folder).rglob("*") if file.is_file()]
    names = [PurePosixPath(file.relative_to(root)) for file in files if "__pycache__" not in file.parts]
    expected = {str(PurePosixPath("kinodex", *name.parts[name.parts[0] == "kinodex" :])) for name in names}
    for place in (built, built / "from_sdist"):
        with zipfile.ZipFile(next(place.glob("*.whl"))) as wheel:
            held = {name for name in wheel.namelist() if ".dist-info/" not in name}
        assert held == expected, place


@pytest.mark.parametrize("installed", ["a wheel", "the checkout"])
def test_a_script_beside_files_with_the_names_of_rooms(
    installed: str, root: Path, built: Path, films: Path, tmp_path: Path
) -> None:
    """A user keeps an `agent.py`, an `index.py` and `tests/` beside a script that ingests, searches and asks."""
    home, place = tmp_path / "home", root
    (home / "tests").mkdir(parents=True)
    for name in (*(f"{room}.py" for room in ROOMS), "tests/__init__.py"):
        (home / name).write_text(TRAP)
    (home / "script.py").write_text(SCRIPT)
    if installed == "a wheel":
        place = tmp_path / "site"
        with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
            wheel.extractall(place)
    command = [sys.executable, "script.py", str(films / "film-01.mp4"), str(tmp_path / "library")]
    variables = environment() | {"PYTHONPATH": str(place), "KINODEX_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=home, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    count, video, answer, path = done.stdout.splitlines()[-4:]
    assert (count, video, bool(answer)) == ("1", "film-01", True)
    assert path == str(place / "kinodex" / "__init__.py")
