"""Published things: the wheel and the sdist, in empty environments too, the skill for assistants, `server.json`."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path, PurePosixPath
from string import Template

import pytest
import yaml

from tests.support.command import Kinodex
from tests.support.house.once import KEPT
from tests.support.servers.ray_node import environment
from tests.world.drawn_space import DRAWN

pytestmark = pytest.mark.slow
ROOMS = ("agent", "index", "jobs", "pipeline")
NOTICE = re.compile(r"[^/]*/licenses/(.*)/NOTICE\.md")
TRAP = "raise ImportError(__file__ + ' was imported')\n"
SCRIPT = """
import sys
import kinodex

if __name__ == "__main__":
    films, library, space = sys.argv[1:]
    print(kinodex.ingest(films, library=library, space=space).count("indexed"))
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
    command = [sys.executable, "script.py", str(films / "film-01.mp4"), str(tmp_path / "library"), DRAWN]
    variables = environment() | {"PYTHONPATH": str(place), "KINODEX_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=home, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    count, video, answer, path = done.stdout.splitlines()[-4:]
    assert (count, video, bool(answer)) == ("1", "film-01", True)
    assert path == str(place / "kinodex" / "__init__.py")


def uv(program: str, *arguments: str | Path, folder: Path) -> str:
    """Run uv or uvx in a folder outside the checkout, its cache kept between runs; returns what it printed."""
    kept = {"UV_CACHE_DIR": str(KEPT / "uv"), "KINODEX_CACHE": str(folder / "cache"), "COLUMNS": "200"}
    command = [str(Path(sys.executable).with_name(program)), *map(str, arguments)]
    ran = subprocess.run(command, cwd=folder, env=environment() | kept, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-3000:]
    return ran.stdout


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skips where there is no package index."""
    command = [str(Path(sys.executable).with_name("uv")), "pip", "compile", "--no-cache", "--quiet", "-"]
    ran = subprocess.run(command, input="packaging", capture_output=True, text=True)
    if ran.returncode:
        pytest.skip(f"there is no package index: {ran.stderr.strip()[-200:]}")


@pytest.mark.third_party
@pytest.mark.timeout(900)
def test_the_wheel_alone_searches_and_asks_in_an_empty_environment(
    root: Path, built: Path, films: Path, library: Path, index: None, tmp_path: Path
) -> None:
    wheel, bare = next(built.glob("*.whl")), tmp_path / "bare"
    uv("uv", "venv", "--python", sys.executable, bare, folder=tmp_path)
    uv("uv", "pip", "install", "--python", bare, "-c", root / "constraints.txt", wheel, folder=tmp_path)

    def kinodex(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [bare / "bin" / "kinodex", *arguments]
        variables = {"HOME": str(tmp_path), "COLUMNS": "200"}
        return subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)

    found = kinodex("search", library, "an orange anchor at sea", "--json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)
    answered = kinodex(
        "ask",
        library,
        "What colour is the bird at sea?",
        "--option",
        "red",
        "--option",
        "black",
        "--video",
        "film-01",
        "--json",
    )
    assert (answered.returncode, json.loads(answered.stdout)["status"]) == (0, "answered"), answered.stderr
    refused = kinodex("ingest", films / "film-01.mp4", "--library", tmp_path / "new", "--space", DRAWN)
    assert "pip install 'kinodex[" in refused.stderr
    assert "Traceback" not in refused.stderr
    frozen = uv("uv", "pip", "freeze", "--python", bare, folder=tmp_path)
    names = set(re.findall(r"^(\S+)==", frozen, re.MULTILINE))
    assert names.isdisjoint({"torch", "av", "ray", "onnx", "transformers"})
    planned = [*("uv", "pip", "install", "--dry-run", "--python", str(bare)), f"kinodex[ingest] @ {wheel.as_uri()}"]
    uv(*planned, folder=tmp_path)
    sbom = uv("uvx", "--from", "cyclonedx-bom", "cyclonedx-py", "environment", bare, folder=tmp_path)
    parts = {re.sub("[-_.]+", "-", each["name"]).lower(): each for each in json.loads(sbom)["components"]}
    assert len(names) > 30
    assert names <= parts.keys()
    (told,) = parts["kinodex"]["licenses"]  # cyclonedx-py takes an expression with a LicenseRef for a name
    assert told["license"]["name"] == tomllib.loads((root / "pyproject.toml").read_text())["project"]["license"]


@pytest.mark.third_party
@pytest.mark.timeout(900)
@pytest.mark.parametrize("package", ["*.whl", "*.tar.gz"])
def test_the_demo_is_one_command_anywhere(package: str, root: Path, built: Path, index: None, tmp_path: Path) -> None:
    source = f"kinodex[decode] @ {next(built.glob(package)).as_uri()}"
    out = uv("uvx", "-c", root / "constraints.txt", "--from", source, "kinodex", "demo", folder=tmp_path)
    assert re.search(r"searches, one for each of the 14 photographs, 1\d are right", out)
    assert (tmp_path / "demo" / "library" / "videos.lance").is_dir()


def test_the_model_data_in_the_wheel_is_described(built: Path) -> None:
    """Each file above 100 kB is in a notice with its size, and the notices are among the licences."""
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        large = {each.filename: each.file_size for each in wheel.infolist() if each.file_size > 100_000}
        notices = [match for name in wheel.namelist() if (match := NOTICE.fullmatch(name))]
        told = {
            f"kinodex/{notice[1]}/{name}": int(size.replace(",", ""))
            for notice in notices
            for name, size in re.findall(r"`([\w./]+)` \| ([\d,]+) \|", wheel.read(notice[0]).decode())
        }
    assert told == large


def test_what_is_published_has_one_version_and_one_name(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    entry = json.loads((root / "server.json").read_text())
    (package,) = entry["packages"]
    skill = yaml.safe_load((root / "skills" / "kinodex" / "SKILL.md").read_text().split("---")[1])
    versions = {project["version"], entry["version"], package["version"], skill["metadata"]["version"]}
    assert versions == {re.findall(r"^## ([\d.]+)", (root / "CHANGELOG.md").read_text(), re.MULTILINE)[0]}
    assert package["identifier"] == project["name"]
    assert f"<!-- mcp-name: {entry['name']} -->" in (root / "README.md").read_text()
    brought = {each["value"] for each in package["runtimeArguments"]}
    assert brought == {*project["optional-dependencies"]["mcp"]}


@pytest.mark.third_party
@pytest.mark.timeout(300)
def test_others_find_the_skill_and_the_entry_valid(root: Path, index: None, tmp_path: Path) -> None:
    """By the format's reference library, and by a linter that carries the registry's schemas."""
    for name in ("server.json", "pyproject.toml", "README.md"):
        (tmp_path / name).write_bytes((root / name).read_bytes())
    skill = shutil.copytree(root / "skills", tmp_path / "skills") / "kinodex"
    assert "Valid skill" in uv("uvx", "--from", "skills-ref==0.1.1", "agentskills", "validate", skill, folder=tmp_path)
    linted = uv("uvx", "skillsaw@0.22.0", "lint", "--strict", "--no-color", tmp_path, folder=tmp_path)
    assert "agentskills, mcp-registry" in linted


def test_the_commands_of_the_skill_run_as_they_stand(
    root: Path, films: Path, kinodex: Kinodex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process; its script, that finds the command, in processes of their own."""
    skill = root / "skills" / "kinodex"
    blocks = re.findall(r"^```bash\n(.*?)^```", (skill / "SKILL.md").read_text(), re.MULTILINE | re.DOTALL)
    places = {"FILMS": str(films / "film-01.mp4"), "LIBRARY": str(tmp_path / "library"), "OUT": str(tmp_path)}
    monkeypatch.setenv("KINODEX_INGEST_SPACE", DRAWN)
    for line in "".join(blocks).splitlines():
        program, *words = (Template(word).substitute(places) for word in shlex.split(line))
        ran = kinodex(*words)
        assert (program, ran.code) == ("scripts/kinodex", 0), (line, ran.err)
    assert len([*(tmp_path / "frames").rglob("*.jpg")]) == 3
    assert [*(tmp_path / "clips").glob("*.mp4")], "near hits are one clip"
    assert (tmp_path / "subtitles").exists()
    assert (tmp_path / "moments.csv").read_text().count("film-01") >= 1
    script = ["/bin/sh", "scripts/kinodex", "--version"]
    (tmp_path / "kinodex").write_text("#!/bin/sh\necho found: $*\n")
    (tmp_path / "kinodex").chmod(0o755)
    found, bare = (
        subprocess.run(script, cwd=skill, env={"PATH": path}, capture_output=True, text=True)
        for path in (str(tmp_path), "")
    )
    assert (found.returncode, found.stdout) == (0, "found: --version\n")
    assert (bare.returncode, bare.stderr) == (
        127,
        "neither kinodex nor uvx is on PATH: pip install 'kinodex[ingest,hf,mcp]'\n",
    )
