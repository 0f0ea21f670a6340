"""Make the towers of the space `photo` from an image graph and a table of words.

    python -m tests.bench.photo_towers ../shared/photo/ship index/spaces/photo/towers

The folder SHIP holds image.onnx (pixels float [n, 3, h, w] from -1 to 1 to unit vectors), words.safetensors (rows int8
[words, dim], scales, a bias) and words.txt. A text's vector is the mean of the rows of its words and the bias, at unit
length. Both towers are written in the form of every exported tower, so kinodex runs them by the same code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import onnx
import tokenizers
import transformers
import typer
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file
from tokenizers import models, normalizers, pre_tokenizers

from kinodex.index.spaces.arrays import write_arrays
from kinodex.index.spaces.export_tokenizer import export_plain_tokenizer
from kinodex.index.spaces.fingerprint import Fingerprint, sha256_of_json
from kinodex.index.spaces.image_tower import IMAGE_ONNX, PIXELS, VECTORS
from kinodex.index.spaces.text_tower import GRAPHS, IDS, PART, ROWS, WEIGHTS, WORDS, TextSettings
from kinodex.index.spaces.tokenizer import TOKENIZER_JSON, VOCABULARY
from kinodex.index.spaces.towers import SpaceCard, SpaceTowers, tower_facts, write_towers

OPSET = 17
PAD, UNKNOWN = "[PAD]", "[UNK]"
CARD = SpaceCard("small, for everyday scenes", "50 searches of 21 real clips", 0.40, 0.78)
"""As `python -m docs.measure search-clips` measured it (docs/results/search-clips.json)."""
LONGEST_TEXT = 64
"""Words and pieces of words; what stands after them does not count."""


def main(
    ship: Annotated[Path, typer.Argument(help="Folder with the image graph and the table of words.")],
    out: Annotated[Path, typer.Argument(help="Folder of the towers.")],
    name: str = "photo",
) -> None:
    """Write both towers and their description."""
    out.mkdir(parents=True, exist_ok=True)
    table = load_file(ship / "words.safetensors")
    words = (ship / "words.txt").read_text(encoding="utf-8").split()
    image, size_px = image_graph(onnx.load(ship / "image.onnx"))
    (out / IMAGE_ONNX).write_bytes(image)
    settings = write_text(table, words, out)
    space = Fingerprint(
        name,
        sha256_of_json({"image": "EfficientNet-lite2, pooled, linear", "text": "mean of words"})[:12],
        hashlib.sha256(image + b"".join(table[key].tobytes() for key in sorted(table))).hexdigest(),
        json.dumps(preprocess(size_px), sort_keys=True),
        int(table["bias"].shape[0]),
    )
    text = tower_facts(out, (WEIGHTS, GRAPHS, TOKENIZER_JSON, VOCABULARY), asdict(settings), 0, 1.0)
    image_facts = tower_facts(out, (IMAGE_ONNX,), {"weights": "int8"}, 0, 1.0)
    write_towers(out, SpaceTowers(space, text, image_facts, card=CARD))
    typer.echo(f"{sum(each.stat().st_size for each in out.iterdir()):,} bytes in {out}")


def preprocess(size_px: int) -> dict[str, Any]:
    """Return the settings by which a picture is brought to size, as open_clip writes them."""
    half = [0.5, 0.5, 0.5]
    return {
        "size": size_px,
        "mode": "RGB",
        "mean": half,
        "std": half,
        "interpolation": "bicubic",
        "resize_mode": "squash",
        "fill_color": 0,
    }


def image_graph(model: onnx.ModelProto) -> tuple[bytes, int]:
    """Return the graph with bytes in and the names that towers have, and the side of its pictures in pixels."""
    graph = model.graph
    taken, made = graph.input[0].name, graph.output[0].name
    size_px = graph.input[0].type.tensor_type.shape.dim[2].dim_value
    dim = graph.output[0].type.tensor_type.shape.dim[1].dim_value
    weights = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    nodes = [plain for node in graph.node for plain in _plain(node, weights)]
    for node in nodes:
        node.input[:] = ["normal" if name == taken else name for name in node.input]
        node.output[:] = [VECTORS if name == made else name for name in node.output]
    weights |= {"scale": np.array(1 / 127.5, np.float32), "one": np.array(1, np.float32)}
    normalised = [
        helper.make_node("Cast", [PIXELS], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["numbers", "scale"], ["scaled"]),
        helper.make_node("Sub", ["scaled", "one"], ["normal"]),
    ]
    pictures = helper.make_tensor_value_info(PIXELS, TensorProto.UINT8, ["n", 3, size_px, size_px])
    vectors = helper.make_tensor_value_info(VECTORS, TensorProto.FLOAT, ["n", dim])
    return _serialised([*normalised, *nodes], [pictures], [vectors], weights), size_px


def _plain(node: onnx.NodeProto, weights: dict[str, NDArray[Any]]) -> list[onnx.NodeProto]:
    """Write a weight of int8 as a product, which ONNX Runtime computes when it opens the graph.

    By DequantizeLinear it would compute with int8 wherever it can, which takes twice as long.
    """
    if node.op_type != "DequantizeLinear":
        return [node]
    weight, scale, zero = node.input
    weights[scale] = weights[scale].reshape(-1, *[1] * (weights[weight].ndim - 1))
    weights.pop(zero)
    cast = helper.make_node("Cast", [weight], [f"{weight}_float"], to=TensorProto.FLOAT)
    return [cast, helper.make_node("Mul", [f"{weight}_float", scale], node.output)]


def write_text(table: dict[str, NDArray[Any]], words: Sequence[str], out: Path) -> TextSettings:
    """Write the text tower: its tokenizer, the rows of its words, and the graph that takes their mean."""
    specials = (PAD, UNKNOWN)
    tokenizer = _tokenizer({word: number for number, word in enumerate((*specials, *words))})
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=PAD, unk_token=UNKNOWN)
    settings = export_plain_tokenizer(fast, LONGEST_TEXT, out)
    rows = np.concatenate([np.zeros((len(specials), table["rows"].shape[1]), np.int8), table["rows"]])
    scales = np.concatenate([np.zeros(len(specials), np.float32), table["scales"]])
    write_arrays(out / WEIGHTS, {WORDS: rows})
    write_arrays(out / GRAPHS, {PART.format(0): np.frombuffer(text_graph(scales, table["bias"]), np.uint8)})
    return TextSettings(settings, ((IDS, ROWS),), trims=True, is_table=True)


def _tokenizer(vocabulary: dict[str, int]) -> tokenizers.Tokenizer:
    """Make the tokenizer: lower case, no accents, letters and figures, then whole words or the longest pieces."""
    made = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token=UNKNOWN, continuing_subword_prefix="##"))
    made.normalizer = normalizers.Sequence(
        [
            normalizers.NFKD(),
            normalizers.StripAccents(),
            normalizers.Lowercase(),
            normalizers.Replace("'s", ""),
            normalizers.Replace(tokenizers.Regex("[^a-z0-9]+"), " "),
        ]
    )
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return made


def text_graph(scales: NDArray[np.float32], bias: NDArray[np.float32]) -> bytes:
    """Return the graph that makes a unit vector of the rows of a text's words; those of padding count nothing."""
    weights: dict[str, NDArray[Any]] = {
        "scales": scales,
        "bias": bias,
        "none": np.array(0, np.float32),
        "one": np.array(1, np.float32),
        "last": np.array([-1], np.int64),
        "words": np.array([1], np.int64),
    }
    nodes = [
        helper.make_node("Gather", ["scales", IDS], ["scale_of_each"]),
        helper.make_node("Greater", ["scale_of_each", "none"], ["is_word"]),
        helper.make_node("Unsqueeze", ["scale_of_each", "last"], ["scale_of_row"]),
        helper.make_node("Mul", [ROWS, "scale_of_row"], ["scaled"]),
        helper.make_node("ReduceSum", ["scaled", "words"], ["sum"], keepdims=0),
        helper.make_node("Cast", ["is_word"], ["counted"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["counted", "words"], ["count"], keepdims=1),
        helper.make_node("Max", ["count", "one"], ["divisor"]),
        helper.make_node("Div", ["sum", "divisor"], ["mean"]),
        helper.make_node("Add", ["mean", "bias"], ["moved"]),
        helper.make_node("LpNormalization", ["moved"], [VECTORS], axis=-1, p=2),
    ]
    ids = helper.make_tensor_value_info(IDS, TensorProto.INT64, ["n", "length"])
    rows = helper.make_tensor_value_info(ROWS, TensorProto.FLOAT, ["n", "length", len(bias)])
    vectors = helper.make_tensor_value_info(VECTORS, TensorProto.FLOAT, ["n", len(bias)])
    return _serialised(nodes, [ids, rows], [vectors], weights)


def _serialised(
    nodes: Sequence[Any], taken: Sequence[Any], made: Sequence[Any], weights: dict[str, NDArray[Any]]
) -> bytes:
    numbers = [numpy_helper.from_array(np.ascontiguousarray(each), name) for name, each in weights.items()]
    graph = helper.make_graph(nodes, "tower", taken, made, numbers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


if __name__ == "__main__":
    typer.run(main)
