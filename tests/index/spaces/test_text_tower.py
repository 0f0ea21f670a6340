"""The text tower of a folder: its vectors, several threads, and damage."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinodex.index.errors import BadCheckpoint, TowersDamaged
from kinodex.index.spaces.arrays import ArrayFile, write_arrays
from kinodex.index.spaces.text_tower import GRAPHS, PART, TEXT_BATCH, WEIGHTS, WORDS, TextTower
from kinodex.index.spaces.towers import TOWER_JSON
from tests.support.late import late
from tests.world.drawn_space import FOLDER

onnx = late("onnx")


@pytest.fixture(scope="module")
def tower() -> TextTower:
    return TextTower.open(FOLDER)


@pytest.fixture
def copied(tmp_path) -> Path:
    return Path(shutil.copytree(FOLDER, tmp_path / "towers"))


def test_a_text_has_one_vector_in_whatever_company_and_thread(tower):
    texts = [f"{'dog ' * (number % 11)}{number}" for number in range(2 * TEXT_BATCH + 3)]
    together = tower.embed_text(texts)
    for number in (0, 10, 20, len(texts) - 1):
        np.testing.assert_allclose(tower.embed_text([texts[number]])[0], together[number], atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-5)
    assert (together.dtype.name, tower.name, tower.dim, tower.embed_text([]).shape) == (
        "float32",
        "drawn",
        256,
        (0, 256),
    )
    several = [["a red boat", "two dogs"], ["snow on a roof"]] * 8
    with ThreadPoolExecutor(8) as pool:
        for vectors, asked in zip(pool.map(tower.embed_text, several), several, strict=True):
            np.testing.assert_array_equal(vectors, tower.embed_text(asked))


def test_graphs_stay_in_memory_from_the_second_batch_on(tower):
    once, twice, at_once = (TextTower.open(FOLDER) for _ in range(3))
    vectors = [once.embed_text(["two dogs"]), [twice.embed_text([text]) for text in ("a red boat", "two dogs")][1]]
    vectors.append(at_once.embed_text(["two dogs", *map(str, range(TEXT_BATCH))])[:1])
    assert [bool(each._kept) for each in (once, twice, at_once)] == [False, True, True]
    for each in vectors:
        np.testing.assert_allclose(each, tower.embed_text(["two dogs"]), atol=1e-5)


def test_a_folder_without_a_text_tower(tmp_path, copied):
    with pytest.raises(TowersDamaged, match="holds no text tower"):
        TextTower.open(tmp_path)
    facts = json.loads((copied / TOWER_JSON).read_text())
    later = json.loads(json.dumps(facts))
    later["text"]["settings"]["rotary"] = True
    (copied / TOWER_JSON).write_text(json.dumps(later))
    with pytest.raises(TowersDamaged, match=r"the settings of the text tower .* are not known here: .*rotary"):
        TextTower.open(copied)
    (copied / TOWER_JSON).write_text(json.dumps(facts | {"text": None}))
    with pytest.raises(TowersDamaged, match="holds no text tower"):
        TextTower.open(copied)


@pytest.mark.parametrize("name", ["text.safetensors", "graphs.safetensors", "tokenizer.json", "vocabulary.safetensors"])
def test_damaged_files_are_refused(copied, name):
    content = (copied / name).read_bytes()
    (copied / name).write_bytes(content[:-3])
    with pytest.raises(TowersDamaged, match=name.replace(".", r"\.")):
        TextTower.open(copied)
    (copied / name).write_bytes(bytes(len(content)))
    with pytest.raises(BadCheckpoint, match="make the text tower again"):
        TextTower.open(copied)


# Graphs that were changed after the export, by whoever made the library: refused, and no other file is read for them.


def changed(folder: Path, change: Any) -> TextTower:
    """The tower of a folder whose first graph is another, of the same size in the description."""
    graph = onnx.load_from_string(ArrayFile(folder / GRAPHS).map(PART.format(0)).tobytes())
    change(graph.graph)
    write_arrays(folder / GRAPHS, {PART.format(0): np.frombuffer(graph.SerializeToString(), np.uint8)})
    facts = json.loads((folder / TOWER_JSON).read_text())
    facts["text"]["files"][GRAPHS]["bytes"] = (folder / GRAPHS).stat().st_size
    (folder / TOWER_JSON).write_text(json.dumps(facts))
    return TextTower.open(folder)


def read_weights_from(place: str) -> Any:
    def change(graph: Any) -> None:
        for entry in graph.initializer[0].external_data:
            if entry.key == "location":
                entry.value = place

    return change


@pytest.mark.parametrize("place", ["../secret", "/etc/passwd", "/dev/zero", "link"])
def test_weights_are_read_from_no_other_folder(copied, place):
    content = (copied / WEIGHTS).read_bytes()
    (copied.parent / "secret").write_bytes(content)
    (copied / "link").symlink_to(copied.parent / "secret")
    tower = changed(copied, read_weights_from(place))
    with pytest.raises(TowersDamaged, match=r"cannot read a graph in .*towers: .*[Ee]xternal data"):
        tower.embed_text(["a red boat"])
    (copied / "within").write_bytes(content)
    assert changed(copied, read_weights_from("within")).embed_text(["a red boat"]).shape == (1, 256)


def name_operator(graph: Any) -> None:
    graph.node[0].domain, graph.node[0].op_type = "com.example", "Run"


def name_output(graph: Any) -> None:
    graph.output[0].name = graph.node[0].output[0]


@pytest.mark.parametrize(
    ("change", "says"),
    [(name_operator, "cannot read a graph in .*com.example"), (name_output, "makes no vectors of 256 dimensions")],
)
def test_graphs_of_another_kind_are_refused(copied, change, says):
    with pytest.raises(TowersDamaged, match=says):
        changed(copied, change).embed_text(["a red boat"])


def test_a_graph_that_fails_and_a_table_that_is_too_short(copied):
    weights = ArrayFile(copied / WEIGHTS)
    tower = TextTower.open(copied)
    tower._words = weights.map(WORDS)[:, :7]
    with pytest.raises(TowersDamaged, match="cannot compute with the text tower in "):
        tower.embed_text(["a red boat"])
    tower._words = weights.map(WORDS)[:100]
    with pytest.raises(BadCheckpoint, match=r"got word 4\d+ of 100 in .*: its tokenizer is another's"):
        tower.embed_text(["a red boat"])
