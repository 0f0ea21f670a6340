"""Video-text models: windows of a video and texts as unit vectors of one space, by transformers.

X-CLIP (Ni et al. 2022), and Meta's PE for video (`pe_video`, and the half of `pe_audio_video` that sees). X-CLIP's
text tower is exported, for searches without torch. What X-CLIP adds to a text for one given video (its prompts) is left
out: vectors that are stored know no text.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.errors import BadCheckpoint
from kinodex.index.pictures import stored_picture
from kinodex.index.spaces.arithmetic import arithmetic_of
from kinodex.index.spaces.fingerprint import Fingerprint, sha256_of_json
from kinodex.index.spaces.named_models import note_model
from kinodex.index.spaces.space import chosen_device, unit
from kinodex.index.spaces.transformers_models import (
    OF_THE_WRITER,
    hub_of,
    load_error,
    quiet,
    weights_sha256,
    with_transformers,
)
from kinodex.index.utf8 import checked_text

if TYPE_CHECKING:
    import torch

XCLIP, PE, PE_WITH_SOUND = "xclip", "pe_video", "pe_audio_video"
KINDS = (XCLIP, PE, PE_WITH_SOUND)
"""Kinds of models that are covered, by their `model_type`."""
USUAL_FRAMES = 8
TEXT_BATCH = 64
LONGEST = 512
"""Tokens of a text that count where the model's tokenizer names no number."""


class VideoTextModel:
    """A loaded video-text model."""

    def __init__(self, space: Fingerprint, model: Any, processor: Any, device: torch.device) -> None:
        self.space = space
        self.model = model
        self._processor = processor
        self._device = device

    @property
    def kind(self) -> str:
        """The model's `model_type`."""
        return str(self.model.config.model_type)

    @property
    def fixed_frames(self) -> int | None:
        """Frames of a window, of which X-CLIP takes this many and no others; None of a model that takes any number."""
        return int(self.model.config.vision_config.num_frames) if self.kind == XCLIP else None

    @property
    def frames(self) -> int:
        """Frames of a window, unless somebody says otherwise."""
        return self.fixed_frames or USUAL_FRAMES

    @property
    def arithmetic(self) -> str:
        """The arithmetic that makes vectors."""
        return arithmetic_of(self.model)

    def embed_windows(self, windows: Sequence[Sequence[bytes]]) -> NDArray[np.float16]:
        """Embed windows, each the JPEGs of its frames in order, as unit vectors float16 [n, dim]."""
        import torch

        pictures = {jpeg: _pixels(jpeg) for jpeg in {each for window in windows for each in window}}
        shown = [[pictures[jpeg] for jpeg in window] for window in windows]
        with torch.inference_mode():
            return unit(self._video_features(shown)).half().cpu().numpy()

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts as unit vectors float32 [n, dim]."""
        import torch

        batches = [np.empty((0, self.space.dim), np.float32)]
        with torch.inference_mode():
            for first in range(0, len(texts), TEXT_BATCH):
                some = [checked_text(text) for text in texts[first : first + TEXT_BATCH]]
                settings = {"padding": True, "truncation": True, "max_length": self.text_length}
                inputs = self.tokenizer(some, return_tensors="pt", **settings).to(self._device)
                tokens = {name: inputs[name] for name in ("input_ids", "attention_mask")}
                batches.append(unit(text_features(self.model, tokens)).cpu().numpy())
        return np.concatenate(batches)

    @property
    def tokenizer(self) -> Any:
        """The tokenizer of its texts."""
        return self._processor.tokenizer

    @property
    def text_length(self) -> int:
        """Tokens of a text that count, its marks of start and end among them."""
        places = int(getattr(self.model.config.text_config, "max_position_embeddings", LONGEST))
        return min(int(self.tokenizer.model_max_length), places, LONGEST)

    def _video_features(self, windows: list[list[NDArray[np.uint8]]]) -> torch.Tensor:
        if self.kind == XCLIP:
            pixels = self._processor.image_processor(windows, return_tensors="pt")["pixel_values"]
            pooled: torch.Tensor = self.model.get_video_features(pixels.to(self._device)).pooler_output
            return pooled
        whole = [np.stack(window) for window in windows]
        prepared = self._processor.video_processor(whole, do_sample_frames=False, return_tensors="pt")
        seen = self.model.video_encoder(prepared["pixel_values_videos"].to(self._device)).pooler_output
        features: torch.Tensor = self.model.video_head(seen)
        return features


def text_features(model: Any, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
    """Compute the features of texts by a whole video-text model."""
    if model.config.model_type == XCLIP:
        pooled: torch.Tensor = model.get_text_features(**tokens).pooler_output
        return pooled
    # As the model's own `forward` computes it: its `get_text_features` is no method in transformers 5.23.
    states = model.text_model(**tokens, output_hidden_states=True).hidden_states[-1]
    features: torch.Tensor = model.text_video_head(states[:, 0])
    return features


def _pixels(jpeg: bytes) -> NDArray[np.uint8]:
    with stored_picture(jpeg) as picture:
        return np.array(picture.convert("RGB"))


def load_video_text_model(name: str, device: str = "auto") -> VideoTextModel:
    """Load a model by hub id or folder; raises WeightsMissing, BadCheckpoint, DeviceMissing or TorchMissing."""
    name, transformers = with_transformers("the video-text model", name)
    what = f"the video-text model {name}"
    place = chosen_device(device)
    with hub_of(name), quiet(), redirect_stdout(io.StringIO()):  # transformers 5.23 prints of its own docstrings
        try:
            config = transformers.AutoConfig.from_pretrained(name, trust_remote_code=False)
            _check_kind(what, config.model_type)
            processor = transformers.AutoProcessor.from_pretrained(name, trust_remote_code=False)
            model, found = _loaded(transformers, name, config)
        except BadCheckpoint:
            raise
        except Exception as error:  # the errors of loaders for foreign or damaged files cannot be listed
            raise load_error(what, error, f"the kind {', '.join(KINDS)}") from error
    if missing := sorted(found["missing_keys"]):
        raise BadCheckpoint(f"got {what}, whose weights lack {missing[0]}; fetch it again")
    note_model(name)
    return VideoTextModel(_fingerprint(name, model, processor), model.eval().to(place), processor, place)


def _loaded(transformers: Any, name: str, config: Any) -> tuple[Any, Any]:
    """Load a model, of one that hears too the half that sees: the whole is larger, and more than is needed."""
    kind, half = transformers.AutoModel, {}
    if config.model_type == PE_WITH_SOUND:
        kind = transformers.PeVideoModel
        half = {"config": config.video_config, "key_mapping": {r"^video_model\.": ""}}
    model, found = kind.from_pretrained(
        name, **half, output_loading_info=True, trust_remote_code=False, use_safetensors=True
    )
    return model, found


def _check_kind(what: str, kind: str) -> None:
    if kind not in KINDS:
        raise BadCheckpoint(
            f"got {what} of the kind {kind}; give one of {', '.join(KINDS)}, such as microsoft/xclip-base-patch32, or "
            "serve it behind /v1/embeddings and give --base-url"
        )


def _fingerprint(name: str, model: Any, processor: Any) -> Fingerprint:
    config = {key: value for key, value in model.config.to_dict().items() if key not in OF_THE_WRITER}
    identity = sha256_of_json(
        {"config": json.loads(json.dumps(config, default=str)), "words": processor.tokenizer.get_vocab()}
    )
    is_xclip = model.config.model_type == XCLIP
    pictures = (processor.image_processor if is_xclip else processor.video_processor).to_dict()
    dim = model.config.projection_dim if is_xclip else model.config.text_config.hidden_size
    prepared = json.dumps(pictures, sort_keys=True, default=str)
    return Fingerprint(name, identity[:12], weights_sha256(model), prepared, int(dim))
