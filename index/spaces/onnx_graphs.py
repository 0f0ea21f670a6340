"""ONNX graphs of torch's modules: traced without weights, and cut into parts that hold them. Needs torch and onnx."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.errors import ExportRefused
from kinodex.index.spaces.arrays import ArrayFile

OPSET = 18
HALVED_FROM_NUMBERS = 1024
Weights = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class GraphPart:
    """A graph that computes some of the values that later ones take."""

    takes: tuple[str, ...]
    graph: bytes


def trace(what: str, module: Any, values: Mapping[str, Any], output: str, axes: Mapping[str, dict[int, str]]) -> Any:
    """Trace a module as an ONNX graph of named values with axes of any length, whose weights are inputs too.

    By TorchScript and without the weights: 2.3 CPU s for the pictures of ViT-B-32, where torch.export takes 12 and its
    own folding of the weights 4. Raises ExportRefused with the reason if the exporter cannot follow.
    """
    import onnx
    import torch

    buffer = BytesIO()
    export: Any = torch.onnx.export  # which takes a buffer too
    fast_path: Any = torch.backends.mha
    is_fast = fast_path.get_fastpath_enabled()
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fast_path.set_fastpath_enabled(False)  # its operator has no counterpart in ONNX
            export(
                module,
                tuple(values.values()),
                buffer,
                input_names=list(values),
                output_names=[output],
                dynamic_axes=dict(axes),
                export_params=False,
                do_constant_folding=False,
                opset_version=OPSET,
                dynamo=False,
            )
    except Exception as error:  # a tower that the exporter cannot follow says so in a hundred ways
        cause = error.__cause__ or error
        why = f"{type(cause).__name__}: {str(cause).strip()}".splitlines()[0][:200]
        raise ExportRefused(f"torch cannot export {what}: {why}") from error
    finally:
        fast_path.set_fastpath_enabled(is_fast)
    return onnx.load_from_string(buffer.getvalue())


def weights_of(module: Any, graph: Any) -> dict[str, NDArray[Any]]:
    """Return the weights of a module that its graph takes, by their names there."""
    named = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    values, inputs = dict(named), [each.name for each in graph.graph.input]
    return {name: values[name].detach().contiguous().numpy() for name in inputs if name in values}


def halved(weights: Weights) -> Weights:
    """Bring weights to half precision, but for the few and those that are too large for it, infinity among them."""
    return {name: each.astype(np.float16) if _fits_half(each) else each for name, each in weights.items()}


def _fits_half(numbers: NDArray[Any]) -> bool:
    is_large = numbers.dtype == np.float32 and numbers.size >= HALVED_FROM_NUMBERS
    return bool(is_large and np.abs(numbers).max() < np.finfo(np.float16).max)


def within(name: str, numbers: NDArray[Any]) -> Any:
    """Make a tensor of a graph that holds its numbers."""
    from onnx import numpy_helper

    return numpy_helper.from_array(numbers, name)


def beside(file: ArrayFile) -> Callable[[str, NDArray[Any]], Any]:
    """Return what makes tensors of a graph whose numbers are in a file beside it, from where they are only mapped."""
    from onnx import TensorProto, helper

    def tensor(name: str, numbers: NDArray[Any]) -> Any:
        kind = helper.np_dtype_to_tensor_dtype(numbers.dtype)
        made = TensorProto(name=name, dims=numbers.shape, data_type=kind, data_location=TensorProto.EXTERNAL)
        place = {"location": file.path.name, "offset": str(file.place(name)), "length": str(numbers.nbytes)}
        for key, value in place.items():
            made.external_data.add(key=key, value=value)
        return made

    return tensor


def cut(
    graph: Any, weights: Weights, tensor: Callable[[str, NDArray[Any]], Any] = within, most_bytes: float = math.inf
) -> list[GraphPart]:
    """Cut a traced graph into parts that run one after another, each with at most `most_bytes` of weights.

    A weight that is larger than that has a part of its own.

    Weights in half precision are cast to float32 where they are used. What depends only on weights is computed in
    every part that uses it.
    """
    from onnx import helper, shape_inference

    whole = shape_inference.infer_shapes(graph)
    types = {each.name: each for each in (*whole.graph.input, *whole.graph.value_info, *whole.graph.output)}
    fixed = _fixed(whole.graph.node, weights)
    nodes = [node for node in whole.graph.node if node.output[0] not in fixed]
    groups = _groups(nodes, fixed, weights, most_bytes)
    needed = [_needed(group, fixed) for group in groups]
    parts = []
    for number, group in enumerate(groups):
        made = {name for node in group for name in node.output}
        later = set().union({each.name for each in whole.graph.output}, *needed[number + 1 :])
        known = weights.keys() | fixed.keys()
        takes = sorted(name for name in needed[number] - made - known if name in types)
        body = [*_fixed_nodes(needed[number], whole.graph.node, fixed), *group]
        tensors, casts = _tensors({name: weights[name] for name in sorted(needed[number] & weights.keys())}, tensor)
        inputs, outputs = ([types[name] for name in names] for names in (takes, sorted(made & later)))
        part = helper.make_graph([*casts, *body], "part", inputs, outputs, tensors)
        model = helper.make_model(part, opset_imports=whole.opset_import, ir_version=whole.ir_version)
        parts.append(GraphPart(tuple(takes), model.SerializeToString()))
    return parts


def _fixed(nodes: Iterable[Any], weights: Weights) -> dict[str, Any]:
    """Find the nodes whose values depend only on weights, by the names of these values."""
    fixed: dict[str, Any] = {}
    for node in nodes:
        if all(name in weights or name in fixed for name in _inputs(node)):
            fixed |= dict.fromkeys(node.output, node)
    return fixed


def _inputs(node: Any) -> set[str]:
    """Name the values that a node takes, those within its own graphs too."""
    graphs = [graph for each in node.attribute for graph in (each.g, *each.graphs)]
    return set(filter(None, node.input)).union(*(_inputs(inner) for graph in graphs for inner in graph.node))


def _needed(nodes: Iterable[Any], fixed: Mapping[str, Any]) -> set[str]:
    """Name the values that nodes take, and those that the fixed ones among these are made of."""
    needed: set[str] = set()
    left = [name for node in nodes for name in _inputs(node)]
    while left:
        name = left.pop()
        if name not in needed:
            needed.add(name)
            left += _inputs(fixed[name]) if name in fixed else ()
    return needed


def _groups(nodes: Sequence[Any], fixed: Mapping[str, Any], weights: Weights, most_bytes: float) -> list[list[Any]]:
    groups: list[list[Any]] = [[]]
    used: set[str] = set()
    for node in nodes:
        own = _needed([node], fixed) & weights.keys()
        if groups[-1] and sum(weights[name].nbytes for name in used | own) > most_bytes and own - used:
            groups.append([])
            used = set()
        groups[-1].append(node)
        used |= own
    return groups


def _fixed_nodes(needed: set[str], nodes: Iterable[Any], fixed: Mapping[str, Any]) -> list[Any]:
    return [node for node in nodes if node.output[0] in fixed and needed.intersection(node.output)]


def _tensors(weights: Weights, tensor: Callable[[str, NDArray[Any]], Any]) -> tuple[list[Any], list[Any]]:
    """Make the tensors of weights, and the nodes that cast those in half precision."""
    from onnx import TensorProto, helper

    tensors, casts = [], []
    for name, numbers in weights.items():
        tensors.append(tensor(name, numbers))
        if numbers.dtype == np.float16:
            tensors[-1].name = f"{name}.half"
            casts.append(helper.make_node("Cast", [tensors[-1].name], [name], to=TensorProto.FLOAT))
    return tensors, casts
