"""The card of an exported dataset: its head for `datasets`, and a page for people."""

from __future__ import annotations

from typing import Any

import yaml

from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.jobs.export.hf_columns import yaml_features
from kinodex.jobs.export.hf_settings import HfReport, HfSettings

SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B", "1B<n<10B", "10B<n<100B")
"""Categories of size as the hub names them, each of ten times as many rows as the one before."""


def card_text(
    name: str,
    settings: HfSettings,
    report: HfReport,
    space: Fingerprint,
    sample_fps: float | None,
    unpacked_bytes: int,
) -> str:
    head = _head(name, settings, report, space.dim, unpacked_bytes)
    rate = "" if sample_fps is None else f", {sample_fps:g} a second"
    vector = f"| `vector` | {space.dim} numbers, {settings.vectors} | of unit length, in the space `{space.name}` |\n"
    title = f"---\n{yaml.safe_dump(head, sort_keys=False, allow_unicode=True)}---\n\n# {name}\n"
    return f"""{title}
{report.frames:,} frames of {report.videos:,} videos{rate}; a frame that stays on screen is there once.
Exported by kinodex.

```python
from datasets import load_dataset

frames = load_dataset("path/to/this/folder", split="{settings.split}")
print(frames[0]["title"], frames[0]["time_s"], frames[0]["image"].size)
```

| column | type | contents |
|---|---|---|
| `video_id` | string | first 32 hex digits of the SHA-256 of the video file |
| `title` | string | of the video |
| `frame_no` | int32 | number of the first sample that shows the frame |
| `time_s` | float64 | when a player shows the frame, seconds from 0:00 |
| `width_px`, `height_px` | int32 | of the picture |
| `image` | image | JPEG |
{vector if settings.vectors != "none" else ""}
Rows are in the order of videos by title, and of time within a video. A video is never divided between files.
"""


def _head(name: str, settings: HfSettings, report: HfReport, dim: int, unpacked_bytes: int) -> dict[str, Any]:
    size = SIZES[min(max(len(str(report.frames)) - 3, 0), len(SIZES) - 1)]
    split = settings.split
    return {
        "pretty_name": name,
        "tags": ["video", "kinodex"],
        "size_categories": [size],
        "configs": [{"config_name": "default", "data_files": [{"split": split, "path": f"data/{split}-*"}]}],
        "dataset_info": {
            "features": yaml_features(settings.vectors, dim),
            "splits": [{"name": split, "num_bytes": unpacked_bytes, "num_examples": report.frames}],
            "download_size": report.stored_bytes,
            "dataset_size": unpacked_bytes,
        },
    }
