"""Verdicts of `kinodex doctor`: the tasks that this machine can do, each with the command that mends it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from kinodex.doctor.check_result import CheckResult
from kinodex.doctor.endpoint import CHAT, IMAGES
from kinodex.errors import KinodexError
from kinodex.index.errors import NoVectors, vectors_command
from kinodex.index.library import Library
from kinodex.index.spaces.model_names import DEFAULT_SPACE, PHOTO_SPACE
from kinodex.jobs.open import load_image_tower, load_text_tower

of_tasks = partial(CheckResult, "tasks")
INDEX, WORDS, PICTURE, ASK, SERVE = "index", "search by words", "search by picture", "ask", "serve"
BY_MODEL = 'kinodex ask {} "..." --model NAME --base-url http://HOST:8000/v1    # a server with a vision-language model'


def check_tasks(details: Sequence[CheckResult], uri: str | None) -> list[CheckResult]:
    """Judge each task by the lines of the details, and by a search of the library at `uri`, if one is named."""
    found = {each.name: each for each in details}
    library = _opened(uri)
    index = _index(found)
    words, picture = (
        replace(index, name=name) if library is None else _search(library, name, index) for name in (WORDS, PICTURE)
    )
    if picture.state == "ok" and found["pyav"].state == "ok":
        index = replace(picture, name=INDEX)
    return [index, words, picture, _ask(found, library), _serve(found)]


def _opened(uri: str | None) -> Library | None:
    try:
        return None if uri is None else Library.open(uri)
    except KinodexError:
        return None  # the details say why


def _index(found: Mapping[str, CheckResult]) -> CheckResult:
    """Judge an ingest: it needs a decoder, and takes `photo` where the model of the default space cannot be had."""
    if (reader := found["pyav"]).state != "ok":
        return of_tasks(INDEX, reader.state, f"no video can be read: {reader.said}", "pip install -U 'kinodex[ingest]'")
    clip, space, hub = found["clip"], found["default space"], found.get("hub")
    if clip.state == space.state == "ok":
        return of_tasks(INDEX, "ok", f"the default space, {DEFAULT_SPACE}, is here")
    if clip.state == "ok" and hub is not None and hub.state == "ok":
        return of_tasks(INDEX, "ok", f"the default space, {DEFAULT_SPACE}, is fetched from the hub by the first ingest")
    why = clip.said if clip.state != "ok" else space.said if hub is None else f"it is not here, and {hub.said}"
    instead = f"in {PHOTO_SPACE}, the small space that comes with kinodex"
    return of_tasks(INDEX, "ok", f"{instead}, not in the default one, {DEFAULT_SPACE}: {why}")


def _search(library: Library, name: str, index: CheckResult) -> CheckResult:
    """Search a library once, by words or by a picture."""
    if not library.fingerprint.has_vectors:
        missing = NoVectors.of(library.uri, "a search by picture")
        if name == WORDS:
            return of_tasks(name, "ok", f"in the words of {library.uri}; {missing}")
        return of_tasks(name, "missing", str(missing), vectors_command(library.uri))
    try:
        if name == WORDS:
            vector = load_text_tower(library, None).embed_text(["a dog"])[0]
        else:
            tower = load_image_tower(library, None)
            vector = tower.embed(tower.prepare(np.zeros((64, 64, 3), np.uint8))[None])[0]
        library.search.frames(vector, k=1)
    except (KinodexError, ImportError, OSError, RuntimeError) as error:
        carried = " --with-image-tower" if name == PICTURE else ""  # what another machine could give it
        todo = f"kinodex add text-tower {library.uri}{carried}    # on a machine that has torch and the space's model"
        return of_tasks(name, "broken", str(error), todo)
    return of_tasks(name, "ok", f"in {library.uri}, by its space {library.space_name}")


def _ask(found: Mapping[str, CheckResult], library: Library | None) -> CheckResult:
    place = library.uri if library is not None else "LIBRARY"
    if CHAT in found:
        chat, images = found[CHAT], found[IMAGES]
        worse = chat if chat.state != "ok" else images
        said = "the endpoint's model answers, and sees pictures" if worse.state == "ok" else worse.said
        return of_tasks(ASK, worse.state, said, BY_MODEL.format(place))
    if os.environ.get("OPENAI_API_KEY", "").strip():
        return of_tasks(ASK, "ok", "OPENAI_API_KEY is set: --model names a model there, which was not tried")
    return of_tasks(
        ASK,
        "missing",
        "no language model was named; without one, options are chosen by similarity",
        BY_MODEL.format(place),
    )


def _serve(found: Mapping[str, CheckResult]) -> CheckResult:
    if found["pyav"].state != "ok":
        todo = "pip install -U 'kinodex[decode]'"
        return of_tasks(SERVE, found["pyav"].state, "pages are shown, films are not played", todo)
    return of_tasks(SERVE, "ok", "pages are shown, films are played; a question needs what `ask` needs")
