"""The figures of `kinodex bench gpu` as one table in Markdown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from jobs.bench.gpu.bench import GpuFigures, Stage, WholeWay
from jobs.bench.gpu.end_to_end import MIN_COSINE

HEAD = "| what | frames/s | times real time | of the slower stage | busy | GPU | memory, MB | rows | remark |"
GPU_NAMES = {"utilization.gpu": "cores {:.0f} %", "utilization.decoder": "NVDEC {:.0f} %", "memory.used": "{:,.0f} MiB"}
ABSENT = "–"


def table(figures: GpuFigures) -> str:
    """Write the figures, with what was left out and why."""
    lines = [
        f"{figures.picture}; {figures.space}, {figures.fps:g} frames a second sampled",
        f"{figures.machine}; {figures.versions}; measured in {figures.seconds:,.0f} s",
        "",
        HEAD,
        "|" + "---|" * (HEAD.count("|") - 1),
        *(_stage_line(stage, figures.fps) for stage in figures.stages),
        *(_way_line(whole) for whole in figures.ways),
        "",
        "times real time: seconds of video a second; busy: part of their time that workers decoded, embedded and "
        "wrote; GPU: averages by nvidia-smi; memory: resident at its peak, of the process and of its largest child; "
        f"rows: against those of the CPU, which they equal if all times do and no cosine is below {MIN_COSINE}",
    ]
    return "\n".join(lines)


def write_files(figures: GpuFigures, folder: Path) -> None:
    """Write gpu.md and gpu.json to a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gpu.md").write_text(table(figures) + "\n", encoding="utf-8")
    text = json.dumps(asdict(figures), ensure_ascii=False, indent=2)
    (folder / "gpu.json").write_text(text + "\n", encoding="utf-8")


def _stage_line(stage: Stage, fps: float) -> str:
    rate = stage.rate
    if rate is None:
        return _line(stage.name, remark=_left_out(stage.missing))
    return _line(
        stage.name,
        f"{rate.frames_a_s:,.1f}",
        f"{rate.frames_a_s / fps:,.0f}",
        gpu=_gpu(rate.gpu),
        memory=f"{rate.parent_mb:,.0f} + {rate.child_mb:,.0f}",
        remark=rate.remark,
    )


def _way_line(whole: WholeWay) -> str:
    name, done = f"**end to end, {whole.way.name}**", whole.ingest
    if done is None:
        return _line(name, remark=_left_out(whole.missing))
    fell_back = [f"PyAV read {count}: {reason}" for reason, count in done.fell_back.items()]
    return _line(
        name,
        f"{done.frames / done.seconds:,.1f}",
        f"{done.video_s / done.seconds:,.0f}",
        f"{whole.part:.2f}" if whole.part is not None else ABSENT,
        ", ".join(f"{stage} {part:.0%}" for stage, part in done.busy.items()),
        _gpu(done.gpu),
        f"{done.parent_mb:,.0f} + {done.child_mb:,.0f}",
        _rows(whole),
        "; ".join([f"{done.films} films, {done.frames:,} frames committed", done.arithmetic, *fell_back]),
    )


def _rows(whole: WholeWay) -> str:
    equality = whole.equality
    if equality is None:
        return ABSENT
    times = "times equal" if equality.same_times else "**times differ**"
    cosine = f"cosine at least {equality.min_cosine:.5f}, on average {equality.mean_cosine:.5f}"
    verdict = "equal" if equality.holds else "**not equal**"
    psnr_db = equality.min_psnr_db
    pictures = "pictures equal" if psnr_db is None else f"pictures at least {psnr_db:.1f} dB"
    return f"{verdict}: {times}, {cosine}, {pictures}, of {equality.frames} frames"


def _gpu(means: Mapping[str, float]) -> str:
    return ", ".join(GPU_NAMES[name].format(value) for name, value in means.items()) or ABSENT


def _left_out(reason: str | None) -> str:
    return f"left out: {reason}"


def _line(
    what: str,
    rate: str = ABSENT,
    speed: str = ABSENT,
    part: str = ABSENT,
    busy: str = ABSENT,
    gpu: str = ABSENT,
    memory: str = ABSENT,
    rows: str = ABSENT,
    remark: str = "",
) -> str:
    return f"| {' | '.join([what, rate, speed, part, busy, gpu, memory, rows, remark.replace('|', '/')])} |"
