"""The query side as the base install has it: search, ask and view on a library that was made elsewhere.

The library's space is a model that this machine does not have, and neither torch nor anything else that ingest needs is
there; the library lies in a folder, and in an S3-compatible store. Hubs cannot be reached. It carries both towers.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from lance.file import LanceFileSession
from PIL import Image

from kinodex.index.library import Library
from kinodex.index.spaces.space import load_space
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.run import run_ingest
from kinodex.jobs.known_answers import read_known
from kinodex.pipeline.sources import list_sources
from tests.support.command_process import CommandProcess, command_process
from tests.support.processes import ending_process
from tests.support.servers.rule_server import MODEL, Rules, RuleServer
from tests.support.servers.s3_server import environment, s3_server, send
from tests.support.without_modules import MODULE

pytestmark = pytest.mark.slow
NOT_IN_THE_BASE = (
    "torch,torchvision,open_clip,timm,transformers,safetensors,huggingface_hub,sentencepiece,av,ray,onnx,"
    "openvino,pandas,scipy,matplotlib,decord,torchcodec,datasets,trl"
)
NOWHERE = "http://127.0.0.1:9"
QUERY = "a red boat"


@dataclass(frozen=True)
class Elsewhere:
    """A library whose model is not on this machine, and what torch's towers found in it by words and by a picture."""

    uri: str
    best: tuple[str, float]
    picture: Path
    alike: tuple[str, float]
    variables: Mapping[str, str]


@pytest.fixture(scope="module")
def made(films: Path, tiny_model: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Elsewhere:
    """Films ingested by a model that is deleted then."""
    folder = tmp_path_factory.mktemp("elsewhere")
    model = shutil.copytree(tiny_model("space"), folder / "model")
    config = IngestConfig(space=f"local-dir:{model}", fps=0.5, image_tower=True)
    report = run_ingest(config, list_sources([str(films)]), str(folder / "library"))
    assert report.count("indexed") == 3
    library = Library.open(str(folder / "library"))
    space, picture = load_space(config.space, device="cpu"), folder / "frame.jpg"
    (frame,) = library.frames_at(library.videos()[0].video_id, [10.0], mode="nearest")
    picture.write_bytes(frame.jpeg)
    by_picture = space.embed(space.prepare(np.asarray(Image.open(picture)))[None])[0]
    hits = [library.search.frames(each, k=1)[0] for each in (space.embed_text([QUERY])[0], by_picture)]
    shutil.rmtree(model)
    best, alike = ((hit.video_id, hit.time_s) for hit in hits)
    return Elsewhere(library.uri, best, picture, alike, {})


@pytest.fixture(scope="module")
def in_store(made: Elsewhere) -> Iterator[Elsewhere]:
    """A copy of its folder in a store."""
    uri, root = "s3://films/library", Path(made.uri)
    with s3_server() as address:
        send(f"{address}/films", "PUT")
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment(address).items():
                patch.setenv(name, value)
            session = LanceFileSession(uri)
            for file in filter(Path.is_file, root.rglob("*")):
                session.upload_file(file, str(file.relative_to(root)))
        yield replace(made, uri=uri, variables=environment(address))


@pytest.fixture(scope="module")
def variables(in_store: Elsewhere, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a machine whose caches are empty, and from which only this machine can be reached."""
    home = tmp_path_factory.mktemp("home")
    caches = {"XDG_CACHE_HOME": str(home / "cache"), "KINODEX_CACHE": str(home / "replies")}
    network = {"http_proxy": NOWHERE, "https_proxy": NOWHERE, "no_proxy": "127.0.0.1,localhost"}
    return {**os.environ, **caches, **network, "HF_HUB_OFFLINE": "1", "HF_HOME": str(home), **in_store.variables}


@pytest.fixture(scope="module")
def base(variables: dict[str, str]) -> Iterator[CommandProcess]:
    """A process of that machine, with the base install, for the commands of all tests."""
    with command_process(hidden=NOT_IN_THE_BASE, env=variables) as process:
        yield process


def output(base: CommandProcess, *arguments: object) -> str:
    ran = base.run(*arguments)
    assert ran.code == 0, ran.err
    return ran.out


def test_it_is_searched_there_and_in_a_folder_asked_and_viewed(
    made: Elsewhere, in_store: Elsewhere, base: CommandProcess, variables: dict[str, str], films: Path, tmp_path: Path
) -> None:
    for library in (in_store, made):
        (hit,) = json.loads(output(base, "search", library.uri, QUERY, "--in", "frames", "-k", 1, "--json"))
        assert (hit["video_id"], hit["time_s"]) == library.best
    trace = tmp_path / "trace.jsonl"
    question = read_known(films / "questions.jsonl")[0].question.text
    with RuleServer(Rules()) as server:
        model = ["--agent", "uniform", "--model", MODEL, "--base-url", server.base_url]
        assert output(base, "ask", library.uri, question, *model, "--trace", trace)
    with viewer(variables, trace, library.uri) as address:
        words = urlencode({"query": QUERY, "in": "frames"})
        best = _json(f"{address}/data/libraries/0/search?{words}")["groups"][0]["hits"][0]
        assert best["frame_no"] == hit["frame_no"]
        assert question in json.dumps(_json(f"{address}/data/traces/t0"))


@contextmanager
def viewer(variables: Mapping[str, str], *places: object) -> Iterator[str]:
    """Run the viewer; gives its address."""
    command = [sys.executable, "-m", MODULE, NOT_IN_THE_BASE, "serve", *places, "--port", 0, "--no-browser"]
    arguments = [*map(str, command)]
    with ending_process(arguments, env=dict(variables), stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            yield server.stderr.readline().split(" ")[0].rstrip("/")
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(timeout=60) == 0


def _json(address: str) -> Any:
    with urllib.request.urlopen(address) as answer:
        return json.load(answer)


def test_a_carried_tower_finds_by_a_picture_what_torch_finds(made: Elsewhere, base: CommandProcess) -> None:
    (hit,) = json.loads(output(base, "search", made.uri, "--image", made.picture, "-k", 1, "--json"))
    assert (hit["video_id"], hit["time_s"]) == made.alike


def test_what_is_missing_and_the_way_to_it_are_said(made: Elsewhere, base: CommandProcess, tmp_path: Path) -> None:
    bare = shutil.copytree(made.uri, tmp_path / "bare")
    shutil.rmtree(bare / "towers")
    for place, query, says in (
        (bare, (QUERY,), f"run `kinodex add text-tower {bare}` where the model is, or `pip install 'kinodex[clip]'`"),
        (bare, ("--image", made.picture), f"`kinodex add text-tower {bare} --with-image-tower` where the model is"),
    ):
        ran = base.run("search", place, *query)
        assert ran.code == 2 and says in ran.err, ran.err
