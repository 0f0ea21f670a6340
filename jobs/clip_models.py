"""Models of clips: windows of frames, texts, and a text with a picture as vectors of one space.

One is a video-text model of transformers, loaded here; the other stands behind `/v1/embeddings` and takes messages with
pictures, as vLLM serves Qwen3-VL-Embedding. What an endpoint embedded is kept as replies are: nothing is paid twice.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.errors import SpaceMismatch
from kinodex.index.library import LibraryReader
from kinodex.index.spaces.fingerprint import SERVED, Fingerprint
from kinodex.index.spaces.named_models import OF_TRANSFORMERS, check_named, is_named
from kinodex.index.store.carried_towers import open_text_tower
from kinodex.index.store.held_tables import space_tables
from kinodex.index.store.schema import CLIPS_PREFIX
from kinodex.redaction import redact_uri

if TYPE_CHECKING:
    from kinodex.agent.models.endpoint import Endpoint
    from kinodex.agent.models.response_cache import ResponseCache
    from kinodex.agent.models.roles import Role
    from kinodex.agent.protocol.exchange import Usage
    from kinodex.index.spaces.video_text import VideoTextModel

INSTRUCTION = "Represent the user's input."
"""The instruction that Qwen3-VL-Embedding was trained with."""
ENDPOINT = "KINODEX_EMBEDDINGS_URL"
"""Environment variable with the endpoint for queries, where it is no longer at the address that clips were made at."""
PROBE = "a photograph"
QUERY_S = 20.0


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model behind an endpoint that makes vectors of messages with pictures."""

    model: str
    base_url: str
    instruction: str = INSTRUCTION
    """Before each message, which then ends where the model's reply would begin; "": the message alone."""
    at_once: int = 8
    input_price: float = 0.0
    is_query: bool = False
    """Somebody waits for the vector: one attempt, which is not long."""
    has_key: bool = True
    """False of an address that a library names: it gets nobody's key."""
    frames: int = 8
    """Of a window, unless somebody says otherwise."""
    arithmetic: str = ""
    """That of a served model is not known."""

    @property
    def role(self) -> Role:
        from kinodex.agent.models.roles import read_roles

        short: dict[str, object] = {"attempts": 1, "timeout_s": QUERY_S, "give_up_after_s": QUERY_S}
        waits = short if self.is_query else {}
        settings = {
            **waits,
            **({} if self.has_key else {"key_env": None}),
            "model": self.model,
            "base_url": self.base_url,
            "at_once": self.at_once,
            "price": {"input": self.input_price},
        }
        return read_roles({"default": settings})["default"]

    def body(self, words: str, jpegs: Sequence[bytes]) -> dict[str, object]:
        """Return the body of the request for one vector."""
        from kinodex.agent.prompts.parts import data_url

        parts: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": data_url(each)}} for each in jpegs]
        parts += [{"type": "text", "text": words}] if words or self.instruction else []
        messages: list[dict[str, Any]] = [{"role": "user", "content": parts}]
        body: dict[str, object] = {"model": self.model, "messages": messages, "encoding_format": "float"}
        if self.instruction:
            before = {"role": "system", "content": [{"type": "text", "text": self.instruction}]}
            after = {"role": "assistant", "content": [{"type": "text", "text": ""}]}
            body |= {"messages": [before, *messages, after], "continue_final_message": True, "add_special_tokens": True}
        return body

    def tokens(self, jpegs: Sequence[bytes]) -> int:
        """About how many tokens a window has."""
        from kinodex.agent.prompts.tokens import estimate_tokens

        messages: Any = self.body("", jpegs)["messages"]
        return estimate_tokens(messages)

    def embed(
        self, asked: Sequence[tuple[str, Sequence[bytes]]], dim: int | None = None
    ) -> tuple[NDArray[np.float32], Usage]:
        """Make unit vectors [n, dim] of texts with pictures, and say what those cost that were not kept.

        Without `dim` the server chooses their length, so one text at a time can be embedded.
        """
        from kinodex.jobs.models import run_now

        return run_now(self._embed_all(asked, dim))

    async def _embed_all(
        self, asked: Sequence[tuple[str, Sequence[bytes]]], dim: int | None
    ) -> tuple[NDArray[np.float32], Usage]:
        from kinodex.agent.limits.parallel_calls import gather_all
        from kinodex.agent.models.endpoint import Endpoint
        from kinodex.agent.models.response_cache import ResponseCache
        from kinodex.agent.protocol.exchange import Usage
        from kinodex.jobs.models import cache_file

        endpoint = Endpoint(self.role)
        with ResponseCache(cache_file()) as kept:
            try:
                made = await gather_all([self._embed_one(endpoint, kept, words, jpegs, dim) for words, jpegs in asked])
            finally:
                await endpoint.close()
        vectors = np.array([vector for vector, _ in made], np.float64)
        units = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        return units, sum((usage for _, usage in made), Usage())

    async def _embed_one(
        self, endpoint: Endpoint, kept: ResponseCache, words: str, jpegs: Sequence[bytes], dim: int | None
    ) -> tuple[list[float], Usage]:
        from kinodex.agent.models.provider_errors import other_dimensions
        from kinodex.agent.protocol.exchange import Usage

        body = self.body(words, jpegs)
        key = hashlib.sha256(json.dumps(["embeddings", self.role.place, body], sort_keys=True).encode()).hexdigest()
        async with kept.lock(key):
            held = kept.get(key)
            vector = held.get("embedding") if held is not None else None
            if isinstance(vector, list) and len(vector) == (dim or len(vector)):
                return vector, Usage()
            made = await endpoint.embed(body, len(jpegs))
            if dim is not None and len(made.vector) != dim:
                raise other_dimensions(self.role, len(made.vector), dim)
            kept.put(key, {"embedding": made.vector}, instead=held)
        return made.vector, self.role.price.usage(made.input_tokens, 0, 0)

    @property
    def space(self) -> Fingerprint:
        """The identity of the model, as far as it is known; asks for one vector, once in a process."""
        return _space_of(self)


@lru_cache(maxsize=8)
def _space_of(served: ServedModel) -> Fingerprint:
    vectors, _ = served.embed([(PROBE, ())])
    facts = json.dumps({"instruction": served.instruction}, sort_keys=True)
    name = hashlib.sha256(served.model.encode()).hexdigest()
    return Fingerprint(served.model, SERVED, name, facts, vectors.shape[1])


@dataclass(frozen=True)
class ClipQueries:
    """Queries as vectors of the model that made a library's clips, which is loaded for the first one that needs it."""

    library: LibraryReader
    space: Fingerprint

    def embed(self, words: str, jpeg: bytes | None = None) -> NDArray[np.float32]:
        """Return the unit vector `[dim]` of words, of a picture, or of both.

        A served model embeds both itself, else their sum is taken.
        """
        if self.space.is_served:
            vectors, _ = served_of(self.library, self.space).embed([(words.strip(), [jpeg] if jpeg else [])])
            if vectors.shape[1] != self.space.dim:
                raise SpaceMismatch(
                    f"{self.space.name} gives vectors of {vectors.shape[1]} dimensions, and the clips of "
                    f"{self.library.uri} have {self.space.dim}: serve the model that made them, or set {ENDPOINT} to "
                    "where it is served"
                )
            served: NDArray[np.float32] = vectors[0]
            return served
        if jpeg is None:
            return self._of_words(words)
        model = self._model
        seen: NDArray[np.float32] = model.embed_windows([[jpeg] * model.frames])[0].astype(np.float32)
        if not words.strip():
            return seen
        both = seen + self._of_words(words)
        joined: NDArray[np.float32] = both / np.linalg.norm(both)
        return joined

    def _of_words(self, words: str) -> NDArray[np.float32]:
        tower = open_text_tower(self.library.uri, self.space.digest)
        vectors = self._model.embed_texts([words]) if tower is None else tower.embed_text([words])
        vector: NDArray[np.float32] = vectors[0]
        return vector

    @cached_property
    def _model(self) -> VideoTextModel:
        from kinodex.index.spaces.video_text import load_video_text_model

        check_named(self.space.name, self.library.uri, OF_TRANSFORMERS)
        model = load_video_text_model(self.space.name, "auto")
        if model.space.digest != self.space.digest:
            raise SpaceMismatch(
                f"got the video-text model {model.space}, but {self.library.uri} holds clips by {self.space}: here the "
                "same name stands for other weights; use those that made the clips"
            )
        return model


def served_of(library: LibraryReader, space: Fingerprint) -> ServedModel:
    """Return the served model that made a library's clips, where it is served now; raises ModelUnreachable.

    An address that stands in the library, which somebody else may have made, gets no query unless the user named it on
    this machine, and never a key.
    """
    from kinodex.agent.errors import ModelUnreachable

    stored: Mapping[str, Any] = library.additions.settings("clips", space.digest)
    given, held = os.environ.get(ENDPOINT, "").strip(), str(stored.get("base_url") or "")
    if not given and not is_named(redact_uri(held)):
        raise ModelUnreachable(
            f"the clips of {library.uri} were made by {space.name} at {held}, an address that the library names; to "
            f"have queries sent to it, or to where the model is served now, set {ENDPOINT}"
        )
    instruction = json.loads(space.preprocess)["instruction"]
    return ServedModel(space.name, given or held, instruction, is_query=True, has_key=bool(given))


def clip_spaces(library: LibraryReader) -> list[Fingerprint]:
    """Return the models whose clips a library holds."""
    return list(space_tables(library.tables, CLIPS_PREFIX).values())
