"""ONNX Runtime as exported towers use it: on the CPU, without telemetry, and with no file but the tower's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kinodex.index.errors import TowersDamaged

NO_TELEMETRY = "ORT_DISABLE_TELEMETRY"


def import_onnxruntime() -> Any:
    """Import ONNX Runtime without its telemetry, which would write an id of the machine and send events.

    `ORT_DISABLE_TELEMETRY=0` brings that back.
    """
    is_set = NO_TELEMETRY in os.environ
    if not is_set:
        os.environ[NO_TELEMETRY] = "1"
    try:
        import onnxruntime
    finally:
        if not is_set:
            os.environ.pop(NO_TELEMETRY, None)
    return onnxruntime


def open_session(graph: bytes, folder: Path, threads: int = 0, *, once: bool = False) -> Any:
    """Open an ONNX graph of a folder with this many threads, 0 being one a core; raises TowersDamaged if it is none.

    A graph that is run `once` is not made quicker first: that takes longer than running it, and twice the memory. ONNX
    Runtime knows no operators but its own, and reads weights outside the graph from no other folder.
    """
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4  # what goes wrong is raised
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads leave the cores to others
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder.absolute()))
    if once:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.enable_cpu_mem_arena = options.enable_mem_pattern = False
        options.add_session_config_entry("session.disable_prepacking", "1")
    try:
        return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its classes are the compiled module's own, one for each way to be damaged
        raise TowersDamaged(f"cannot read a graph in {folder}: {str(error).splitlines()[0][:200]}") from error
