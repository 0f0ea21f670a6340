"""Measures of how a library's figures tell what is there from what is not.

`python -m tests.support.verdicts LIBRARY SEARCHES`: lines of JSON with `text` and the `relevant` ranges, none of what
no film shows. Each of what is there is searched again without the films that show it, where it is absent too.
Printed by figure: the AUROC, the share of absent searches that are rejected where 95 % of the present ones are kept,
and by coverage (the share of searches that are called present, surest first) the share of these calls that are wrong.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from kinodex.index.library import Library
from kinodex.index.spaces.towers import Sigmoid
from kinodex.jobs.eval.moments.ranges import auroc
from kinodex.jobs.grounding.evidence import EVERYDAY, shown_times, smoothed
from kinodex.jobs.open import open_environment
from kinodex.jobs.verdicts import LIKELY

KINDS = ("present", "absent")
COVERAGES = (0.1, 0.25, 0.5)
SOFTMAX_SCALE = 100.0
"""The greatest that CLIP learns (arXiv 2103.00020, section 2.5)."""


def figures(library: Library, texts: list[str]) -> dict[str, dict[str, Any]]:
    """Each figure of the texts [t] in each video.

    The greatest cosine of a single frame, of which the space's sigmoid makes the probability of a hit; and two that
    compare averages over two seconds with everyday texts: the evidence of `ground`, and a softmax.
    """
    environment = open_environment(library)
    vectors = environment.source.embed_texts([*texts, *EVERYDAY])
    videos = [video.video_id for video in environment.videos]
    units = {each: environment.source.in_memory(each).units.astype(np.float64) for each in videos}
    single = {each: units[each] @ vectors[: len(texts)].T.astype(np.float64) for each in videos}
    smooth = {each: smoothed(units[each] @ vectors.T, *shown_times(environment, each)) for each in videos}
    together = np.concatenate(list(smooth.values()))
    median = np.median(together, axis=0)
    spread = np.median(np.abs(together - median), axis=0)[len(texts) :].mean()
    found: dict[str, dict[str, Any]] = {"greatest cosine": {}, "deviation from the usual": {}, "softmax": {}}
    for each, cosines in smooth.items():
        centred = SOFTMAX_SCALE * (cosines - median)
        against = np.log(np.exp(centred[:, len(texts) :]).sum(axis=1, keepdims=True))
        found["greatest cosine"][each] = single[each].max(axis=0)
        found["deviation from the usual"][each] = ((cosines - median) / spread)[:, : len(texts)].max(axis=0)
        found["softmax"][each] = (centred[:, : len(texts)] - against).max(axis=0)
    return found


def main(folder: str, searches: str) -> None:
    library = Library.open(folder)
    rows = [json.loads(line) for line in Path(searches).read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row.get("text")]
    shown = [{library.video(place[0]).video_id for place in row.get("relevant", [])} for row in rows]
    sigmoids = [library.sigmoid(library.fingerprint, row["text"]) for row in rows]
    print("| figure | present | absent | AUROC | rejected, 95 % kept | wrong of the surest 10 % | 25 % | 50 % |")
    for name, by_video in figures(library, [row["text"] for row in rows]).items():
        present: list[float] = []
        absent: list[float] = []
        likely: tuple[list[bool], list[bool]] = [], []
        for at, films in enumerate(shown):
            others = [values[at] for video_id, values in by_video.items() if video_id not in films]
            whole = [max(values[at] for values in by_video.values())] if films else []
            without = [max(others)] if others else []
            present, absent = present + whole, absent + without
            for each, part in zip(likely, (whole, without), strict=True):
                each += [_is_likely(sigmoids[at], cosine) for cosine in part]
        least = np.quantile(present, 0.05)
        rejected = np.mean(np.array(absent) < least)
        called = sorted([(value, False) for value in present] + [(value, True) for value in absent], reverse=True)
        risks = [np.mean([wrong for _, wrong in called[: max(1, round(share * len(called)))]]) for share in COVERAGES]
        values = " | ".join(f"{each:.3f}" for each in (auroc(present, absent), rejected, *risks))
        print(f"| {name} | {len(present)} | {len(absent)} | {values} |")
        known = next((each for each in sigmoids if each is not None), None)
        if name == "greatest cosine" and known is not None:
            shares = ", ".join(f"{np.mean(each):.3f} {kind}" for each, kind in zip(likely, KINDS, strict=True))
            print(f"likely by scale {known.scale}, bias {known.bias}: {shares}")


def _is_likely(sigmoid: Sigmoid | None, cosine: float) -> bool:
    """True if a search calls what has this cosine likely; a text that training never met has no probability."""
    return sigmoid is not None and sigmoid.probability(cosine) >= LIKELY


if __name__ == "__main__":
    main(*sys.argv[1:])
