"""The image tower that embeds many pictures on this machine."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from kinodex.errors import KinodexError
from kinodex.index.errors import BadCheckpoint, StorageError, TowersDamaged, UnknownModel, WeightsMissing
from kinodex.index.library import Library
from kinodex.index.spaces.embedders import ImageEmbedder
from kinodex.index.spaces.fingerprint import NO_SPACE
from kinodex.index.spaces.load import load_image_tower
from kinodex.index.spaces.model_names import absolute_name, exported_folder
from kinodex.index.spaces.small_pictures import SmallPictures
from kinodex.index.spaces.space import Space
from kinodex.index.spaces.towers import SHIPPED
from kinodex.index.store.carried_towers import find_tower, shipped_tower
from kinodex.jobs.towers.export_process import export_in_child, is_small

if TYPE_CHECKING:
    from kinodex.index.spaces.image_tower import ImageTower


log = logging.getLogger(__name__)

GPU_DEVICES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""One of them is there where torch may find a GPU that it calls cuda; looking so takes no torch."""


def load_embedder(name: str, device: str = "auto", library: Library | None = None) -> ImageEmbedder:
    """Load the image tower of the space called `name` for many pictures: on a CPU, as exported.

    It is the one that was exported here, else the one that `library` carries, if it makes the vectors that the library
    holds; else that of the folder that is named, or one is exported now; else torch's, where none can be had or torch
    is quicker. Without a space small pictures stand in its place. Raises as `load_image_tower` does.
    """
    if name == NO_SPACE.name:
        return SmallPictures()
    is_exported = exported_folder(name) is not None
    on_cpu = device == "cpu" or (device == "auto" and (is_exported or not any(map(os.path.exists, GPU_DEVICES))))
    if name in SHIPPED or not on_cpu:
        return load_image_tower(name, device)
    if library is not None and (carried := _carried_tower(library)):
        return carried
    name = absolute_name(name)
    if is_exported or is_small(name):
        return load_image_tower(name, device)
    from kinodex.index.spaces.export import cached_image_tower, read_cached, recall
    from kinodex.index.spaces.trial import read_trial

    known, why = recall(name), ""
    if known is None or read_cached(known.digest, "image") is None:
        try:
            export_in_child(name, ["image", "text"], "image")
        except (UnknownModel, WeightsMissing, BadCheckpoint):
            raise  # so would loading it here
        except KinodexError as error:
            why = f"not exported to ONNX Runtime: {error}"
        known = recall(name)
    if known is not None and (tower := cached_image_tower(known)):
        return tower
    loaded = load_image_tower(name, device)
    if isinstance(loaded, Space):
        trial, held = read_trial(loaded.fingerprint.digest), read_cached(loaded.fingerprint.digest, "image")
        refused = held.refusals.get("image", "") if held else ""
        loaded.note = why or refused or (trial.why if trial and not trial.taken else "")
    return loaded


def _carried_tower(library: Library) -> ImageTower | None:
    """Open the image tower that a library or kinodex carries, as exported here or verified, unless torch is quicker."""
    from kinodex.index.spaces.export import cached_image_tower
    from kinodex.index.spaces.image_tower import IMAGE_ONNX, ImageTower
    from kinodex.index.spaces.trial import read_trial

    space = library.fingerprint
    if exported := cached_image_tower(space):
        return exported
    trial = read_trial(space.digest)
    if trial is None or trial.taken:
        with suppress(TowersDamaged, StorageError):
            if folder := shipped_tower(space.digest, "image") or find_tower(library.uri, space.digest, "image"):
                carried = ImageTower(space, folder / IMAGE_ONNX)
                return carried if _makes_stored_vectors(carried, library) else None
    return None


VERIFIED_FRAMES, VERIFIED_COSINE = 8, 0.9
"""Stored pictures by which a carried tower is verified, and the least mean cosine to their stored vectors: pictures are
stored smaller and compressed, and another tower's vectors have cosines about 0."""


def _makes_stored_vectors(tower: ImageTower, library: Library) -> bool:
    """Return True if a tower makes of stored pictures about the vectors that are stored.

    Return False too where none are stored.
    """
    from kinodex.jobs.library import stored_pictures

    video = next((row for row in library.videos() if row.frames), None)
    if video is None:
        return False
    first = next(stored_pictures(library, video, VERIFIED_FRAMES))
    stored = library.vectors(video.video_id)
    rows = [stored.frame_no.tolist().index(frame.frame_no) for frame, _ in first]
    made = tower.embed(np.stack([tower.prepare(np.asarray(picture)) for _, picture in first]))
    cosines = (made.astype(np.float32) * stored.vectors[rows].astype(np.float32)).sum(axis=1)
    return bool(cosines.mean() >= VERIFIED_COSINE)
