"""Checks of GPUs for `kinodex doctor`: as the driver lists them, and with torch computing something on each."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from functools import partial

from kinodex.doctor.check_result import CheckResult

of_gpu = partial(CheckResult, "GPU")
FIELDS = "name,driver_version,memory.total,memory.used"
GPU_LIMIT_S = 20.0
NEEDS_NONE = "everything runs on the CPU too, more slowly"


def check_gpu() -> list[CheckResult]:
    driver = _check_driver()
    return [driver, _check_torch(has_gpu=driver.state == "ok")]


def _check_driver() -> CheckResult:
    if shutil.which("nvidia-smi") is None:
        return of_gpu("driver", "missing", "no nvidia-smi here", NEEDS_NONE)
    command = ["nvidia-smi", f"--query-gpu={FIELDS}", "--format=csv,noheader"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=GPU_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return of_gpu("driver", "broken", f"nvidia-smi: {error}", "look at the driver's installation")
    lines = [line.strip() for line in (ran.stdout + ran.stderr).splitlines() if line.strip()]
    if ran.returncode or not lines:
        reason = lines[-1] if lines else "lists no GPU"
        return of_gpu("driver", "broken", f"nvidia-smi: {reason}", "look at the driver's installation")
    return of_gpu("driver", "ok", "; ".join(f"{line} (name, driver, memory, used)" for line in lines))


def _check_torch(has_gpu: bool) -> CheckResult:
    if importlib.util.find_spec("torch") is None:
        return of_gpu("cuda", "missing", "torch is not installed", "pip install 'kinodex[clip]'")
    import torch

    build = f"torch {torch.__version__}, " + (f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "CPU")
    if not torch.cuda.is_available():
        if not has_gpu:
            return of_gpu("cuda", "missing", f"{build}; no GPU", NEEDS_NONE)
        todo = "install torch's CUDA build (https://pytorch.org/get-started), and a driver new enough for it"
        return of_gpu("cuda", "broken", f"{build}, which does not see the GPU", todo)
    names = []
    for number in range(torch.cuda.device_count()):
        try:
            ones = torch.ones(64, 64, device=f"cuda:{number}", dtype=torch.float16)
            right = bool((ones @ ones == 64).all().item())
        except RuntimeError as error:
            message = f"{build}; GPU {number}: {str(error).splitlines()[0]}"
            return of_gpu("cuda", "broken", message, "install another torch build, or free the GPU")
        if not right:
            return of_gpu("cuda", "broken", f"{build}; GPU {number} computes wrongly", "look at the GPU")
        names.append(torch.cuda.get_device_name(number))
    return of_gpu("cuda", "ok", f"{build}; computed on {', '.join(names)}")
