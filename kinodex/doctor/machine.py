"""Checks of this machine for `kinodex doctor`: each part is really tried, as far as that costs seconds."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from packaging.requirements import Requirement
from pydantic import BaseModel, ValidationError

from kinodex.agent.errors import InvalidReply, ModelError, ModelUnknown
from kinodex.agent.models import provider_errors
from kinodex.agent.models.accepted_form import CompletionRequest
from kinodex.agent.models.completion import thoughts_field
from kinodex.agent.models.endpoint import Endpoint
from kinodex.agent.models.loose_json import json_values
from kinodex.agent.models.roles import Role, api_key, read_roles
from kinodex.agent.models.sight import COLOUR, ProbeReply, coloured, names_colour, which_colour
from kinodex.agent.prompts.messages import user_message
from kinodex.doctor.alone import Lost, run_alone_within
from kinodex.errors import KinodexError
from kinodex.index.library import Library
from kinodex.index.maintain import health as check_health
from kinodex.index.spaces.model_names import BUILTIN_SPACE, DEFAULT_SPACE
from kinodex.jobs.errors import UsageError
from kinodex.jobs.models import cache_file
from kinodex.jobs.open import load_image_tower, load_text_tower
from kinodex.pipeline.decoding.open import DECODERS
from kinodex.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from huggingface_hub import CachedRepoInfo

    from kinodex.agent.models.completion import Completion


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line of the doctor's page.

    `missing` can be installed or configured; `broken` is there and does not work; `todo` says what to do about either.
    `name` is what `--need` takes.
    """

    section: str
    name: str
    state: Literal["ok", "missing", "broken"]
    said: str
    todo: str = ""


def failed_needs(found: Sequence[CheckResult], needed: Collection[str]) -> list[CheckResult]:
    """Needed lines that are not ok; raises UsageError for a name that no line has."""
    names = list(dict.fromkeys(each.name for each in found))
    if unknown := sorted({*needed}.difference(names)):
        raise UsageError(f"got --need {unknown[0]}; this page has lines for {', '.join(names)}")
    return [each for each in found if each.name in needed and each.state != "ok"]


# Software, cores and memory of the machine, and free space where models and caches go.

of_machine = partial(CheckResult, "machine")
MIN_FREE_BYTES = 2_000_000_000
"""A model of the default space takes 1.5 GB."""
CGROUP = Path("/sys/fs/cgroup")
"""Its files hold the limits of this container."""


def check_machine() -> list[CheckResult]:
    from huggingface_hub.constants import HF_HUB_CACHE

    python = f"Python {platform.python_version()}, {platform.platform()}"
    return [
        of_machine("kinodex", "ok", f"{version('kinodex')}, {python}"),
        of_machine("cores", "ok", _cores()),
        of_machine("memory", "ok", _memory()),
        _check_space("room for models", Path(HF_HUB_CACHE), "HF_HOME"),
        _check_space("room for replies", cache_file().parent, "KINODEX_CACHE"),
        _check_space("room for fetched videos", Path(tempfile.gettempdir()), "TMPDIR"),
    ]


def _cores() -> str:
    quota, _, period = _text(CGROUP / "cpu.max").strip().partition(" ")
    bound = f", limited to {int(quota) / int(period):g}" if quota.isdigit() else ""
    return f"{len(os.sched_getaffinity(0))} of {os.cpu_count()} usable{bound}"


def _memory() -> str:
    kilobytes = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    total, free = (int(kilobytes[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
    limit = _text(CGROUP / "memory.max").strip()
    bound = f", limited to {gigabytes(int(limit))}" if limit.isdigit() and int(limit) < total else ""
    return f"{gigabytes(total)}, {gigabytes(free)} available{bound}"


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _check_space(name: str, folder: Path, variable: str) -> CheckResult:
    """Check where a folder is, or will be; the environment's `variable` names another."""
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    free_bytes, todo = shutil.disk_usage(existing).free, f"set {variable} to a folder with room"
    message = f"{gigabytes(free_bytes)} free at {folder}"
    if not os.access(existing, os.W_OK):
        return of_machine(name, "broken", f"{folder} cannot be written", todo)
    if free_bytes < MIN_FREE_BYTES:
        return of_machine(name, "broken", message, f"free some; {todo}")
    return of_machine(name, "ok", message)


def gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB"


# GPUs: as the driver lists them, and with torch computing something on each.

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


# Packages that the base install and each extra need, by kinodex's own metadata.

of_packages = partial(CheckResult, "packages")
BASE = "base"
PURPOSES = {
    "ingest": "reading videos",
    "hf": "the default space, captions, detections, speech",
    "text": "text on screen",
    "ray": "ingest and eval on several processes and machines",
    "eval": "reports of kinodex eval",
    "train": "training a master",
    "decord": "another decoder",
    "torchcodec": "another decoder, NVDEC's too",
    "http": "videos on the web",
    "s3": "videos in object stores",
    "mcp": "a library as an assistant's tools",
    "metrics": "figures of an ingest for Prometheus",
}
FOR_DEVELOPERS = ("dev", "docs")


def check_packages() -> list[CheckResult]:
    wanted = [Requirement(text) for text in requires("kinodex") or ()]
    base = [each for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
    extras = [name for name in metadata("kinodex").get_all("Provides-Extra") or () if name not in FOR_DEVELOPERS]
    of_extra = {
        name: [each for each in wanted if each.marker and each.marker.evaluate({"extra": name}) and each not in base]
        for name in extras
    }
    return [_finding(BASE, base, "kinodex"), *(_finding(name, of_extra[name], f"kinodex[{name}]") for name in extras)]


def _finding(name: str, wanted: Sequence[Requirement], install: str) -> CheckResult:
    """Check one install. A missing base package counts as broken: kinodex does not start without it."""
    held = {each.name: _version(each.name) for each in wanted}
    missing = [each for each in wanted if held[each.name] is None]
    unfit = [
        f"{each.name} {number} is not {each.specifier}"
        for each in wanted
        if (number := held[each.name]) is not None and not each.specifier.contains(number, prereleases=True)
    ]
    here = ", ".join(f"{package} {number}" for package, number in held.items() if number is not None)
    purpose = f" ({PURPOSES[name]})" if name in PURPOSES else ""
    if unfit:
        return of_packages(name, "broken", f"{'; '.join(unfit)}{purpose}", f"pip install -U '{install}'")
    if missing:
        brings = ", ".join(f"{each.name}{each.specifier}" for each in missing)
        message = (f"has {here}" if here else "not installed") + purpose
        todo = f"pip install '{install}', which brings {brings}"
        return of_packages(name, "broken" if name == BASE else "missing", message, todo)
    return of_packages(name, "ok", here + purpose)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


# Ray: the package, and the resources of a cluster if one is named.

of_ray = partial(CheckResult, "tasks", "cluster")


def check_ray(address: str | None) -> list[CheckResult]:
    """Check the cluster at `address`, or at RAY_ADDRESS; "local" starts one here. Without either nothing is started."""
    if importlib.util.find_spec("ray") is None:
        return [of_ray("missing", "ray is not installed", "pip install 'kinodex[ray]'")]
    address = address or os.environ.get("RAY_ADDRESS")
    if not address:
        message = f"ray {version('ray')} is installed; no cluster was named"
        return [of_ray("missing", message, "kinodex doctor --ray local")]
    import ray

    from kinodex.jobs.workers import connected

    api: Any = ray
    try:
        with connected(address):
            has = api.cluster_resources()
            nodes = len([node for node in api.nodes() if node["Alive"]])
    except UsageError as error:
        return [of_ray("broken", str(error), "ray start --head")]
    offers = f"{has.get('CPU', 0):g} CPUs, {has.get('GPU', 0):g} GPUs, {has.get('memory', 0) / 1e9:.1f} GB"
    return [of_ray("ok", f"ray {version('ray')} at {address}: nodes: {nodes}, {offers}")]


# Decoders, each tried on a drawn film of a few seconds in a process of its own.

of_decoders = partial(CheckResult, "decoders")
PACKAGES = {"pyav": "av", "decord": "decord", "torchcodec": "torchcodec", "nvdec": "torchcodec"}
EXTRAS = PACKAGES | {"pyav": "ingest"}
DECODER_LIMIT_S = 60.0
"""decord may hang, and loading torch from a slow disk takes its time."""


def check_decoders() -> list[CheckResult]:
    """Check all decoders. Without PyAV, which also makes the film, the others cannot be tried either."""
    found = {name: _find_missing(name) for name in DECODERS}
    installed = [name for name in DECODERS if found[name] is None]
    if installed:
        from kinodex.sketch.script import render_film, write_script

        script = write_script("doctor", 30.0, seed=0)
        with (
            tempfile.TemporaryDirectory(prefix="kinodex-doctor-") as folder,
            ThreadPoolExecutor(len(installed)) as pool,
        ):
            film = Path(folder) / "film.mp4"
            render_film(replace(script, shots=script.shots[:1]), film)
            found |= zip(installed, pool.map(lambda name: _try_decoder(name, film), installed), strict=True)
    return [each for each in found.values() if each is not None]


def _find_missing(name: str) -> CheckResult | None:
    if importlib.util.find_spec("av") is None and name != "pyav":
        return of_decoders(name, "missing", "not tried without PyAV", "pip install 'kinodex[ingest]'")
    if importlib.util.find_spec(PACKAGES[name]) is None:
        return of_decoders(name, "missing", "not installed", f"pip install 'kinodex[{EXTRAS[name]}]'")
    if name == "nvdec" and shutil.which("nvidia-smi") is None:
        return of_decoders(name, "missing", "no NVIDIA GPU", "PyAV reads everything; --decoder auto takes it")
    return None


def _try_decoder(name: str, film: Path) -> CheckResult:
    todo = f"pip install -U 'kinodex[{EXTRAS[name]}]'; see docs/decoders.md"
    try:
        frames, reason = run_alone_within(DECODER_LIMIT_S, read_film, str(film), name)
    except Lost as error:
        return of_decoders(name, "broken", str(error), todo)
    except (PipelineError, ImportError, OSError) as error:
        return of_decoders(name, "broken", f"{type(error).__name__}: {error}", todo)
    if reason is not None:
        return of_decoders(name, "broken", f"PyAV had to take over ({reason})", todo)
    return of_decoders(name, "ok", f"read {frames} frames of a film that was drawn for it")


def read_film(film: str, decoder: str) -> tuple[int, str | None]:
    from kinodex.pipeline.decoding.open import open_video

    with open_video(Path(film), decoder=decoder) as video:
        frames = sum(1 for _ in video.samples(4.0))
        return frames, video.fell_back


# Models: the built-in one is loaded, those in the hub's cache are listed.

of_models = partial(CheckResult, "models")
MODELS_LISTED = 12
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth")
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt")


def check_models() -> list[CheckResult]:
    builtin = _check_builtin()
    if importlib.util.find_spec("open_clip") is None:
        return [
            builtin,
            of_models("default space", "missing", "open_clip is not installed", "pip install 'kinodex[clip]'"),
        ]
    cached = _cached_models()
    return [builtin, _check_hub(), *list_cached(cached), check_default_space(cached)]


def _check_builtin() -> CheckResult:
    from kinodex.index.spaces import load

    try:
        dim = load.load_text_tower("builtin").embed_text(["a red kite"]).shape[1]
    except (KinodexError, ImportError, OSError, RuntimeError) as error:
        todo = "pip install -U --force-reinstall kinodex, and torch and torchvision of one build"
        return of_models("builtin", "broken", f"{type(error).__name__}: {error}", todo)
    return of_models("builtin", "ok", f"loaded, embeds a text in {dim} dimensions; knows drawings alone")


def _check_hub() -> CheckResult:
    from huggingface_hub.constants import ENDPOINT, HF_HUB_OFFLINE

    from kinodex.index.spaces.quick_hub import quick_hub

    only = "only models that are cached, or here as folders (local-dir:FOLDER), load"
    if HF_HUB_OFFLINE:
        return of_models("hub", "missing", "not asked: HF_HUB_OFFLINE is set", f"{only}; unset it to fetch more")
    with quick_hub() as answers:
        if answers:
            return of_models("hub", "ok", f"{ENDPOINT} answers: models that are not here can be fetched")
    return of_models("hub", "missing", f"{ENDPOINT} is not reached", f"{only}; or set HF_ENDPOINT to a mirror")


def _cached_models() -> list[CachedRepoInfo]:
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repos = scan_cache_dir().repos
    except CacheNotFound:
        return []
    return sorted((each for each in repos if each.repo_type == "model"), key=lambda each: -each.size_on_disk)


def list_cached(cached: Iterable[CachedRepoInfo]) -> list[CheckResult]:
    found = [_describe(each) for each in cached]
    if len(found) > MODELS_LISTED:
        others = of_models("further", "ok", f"{len(found) - MODELS_LISTED} smaller models in the cache")
        return [*found[:MODELS_LISTED], others]
    if not found:
        todo = "they are fetched when first used; or copy them here and name folders"
        return [of_models("cached", "missing", "none in the hub's cache", todo)]
    return found


def _describe(repo: CachedRepoInfo) -> CheckResult:
    """Describe a cached model by its kind and size; one without weights is missing."""
    files = _files(repo)
    kind = "open_clip" if "open_clip_config.json" in files else "other"
    if kind == "other" and "config.json" in files:
        kind = f"transformers, {_architecture(files['config.json'])}"
    size = f"{gigabytes(repo.size_on_disk)} ({kind})"
    if not any(name.endswith(WEIGHTS) for name in files):
        return of_models(repo.repo_id, "missing", f"{size} without weights", "it is fetched when first used")
    return of_models(repo.repo_id, "ok", size)


def _files(repo: CachedRepoInfo) -> dict[str, Path]:
    return {file.file_name: file.file_path for revision in repo.revisions for file in revision.files}


def _architecture(config: Path) -> str:
    try:
        settings = json.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return "config unreadable"
    return str((settings.get("architectures") or [settings.get("model_type", "unknown")])[0])


def check_default_space(cached: Iterable[CachedRepoInfo]) -> CheckResult:
    """Check that its weights are cached, which an ingest needs, and its tokenizer, which a search by words needs."""
    from kinodex.index.spaces.import_torch import import_open_clip

    architecture, _, tag = DEFAULT_SPACE.partition("/")
    open_clip = import_open_clip()
    repo = str(open_clip.get_pretrained_cfg(architecture, tag).get("hf_hub", "")).strip("/")
    tokenizer = str(open_clip.get_model_config(architecture)["text_cfg"].get("hf_tokenizer_name", ""))
    held = {each.repo_id: _files(each).keys() for each in cached}
    if any(name.endswith(WEIGHTS) for name in held.get(repo, ())):
        if not tokenizer or any(name in held.get(tokenizer, ()) for name in TOKENIZERS):
            return of_models("default space", "ok", f"{DEFAULT_SPACE}, cached ({repo})")
        message = f"{DEFAULT_SPACE}: its weights are cached, its tokenizer is not; a search by words needs it"
        todo = f"the next ingest fetches it from the hub ({tokenizer})"
        return of_models("default space", "missing", message, todo)
    todo = f"the first ingest fetches it from the hub ({repo}); without one, give it as a folder, local-dir:FOLDER"
    return of_models("default space", "missing", f"{DEFAULT_SPACE} is not cached", todo)


# An OpenAI-compatible endpoint, tried with six small requests.
#
# They ask for a reply, about a picture, about several, by a JSON schema, by a tool, and with a system message.

of_endpoint = partial(CheckResult, "endpoint")
CHAT, LISTING = "chat", "model list"
USAGE, IMAGES, SEVERAL, SCHEMA, TOOLS = ABILITIES = "usage", "images", "several images", "json_schema", "tools"
SYSTEM, THOUGHTS = SPEAKERS = "system role", "thoughts"
MAX_TOKENS = 512
"""Models that think before they answer need some."""
TIMEOUT_S = 60.0
COLOURS = ("red", "green", "yellow", COLOUR)
LISTED, QUOTED = 8, 60
ECHO = "Reply with the one word: ready"
WHICH_COLOURS = "Name the colour of each of these pictures, in order, one word each."
SKY = "Which colour is the sky on a clear day? Reply as asked for."


class NameColour(BaseModel):
    """Name the colour that is asked for."""

    tool: Literal["name_colour"]
    colour: str


def check_endpoint(base_url: str, model: str | None, key_env: str | None) -> list[CheckResult]:
    """Check what a server lists and can do with `model`, or with the first that it lists; raises BadSettings."""
    settings: dict[str, object] = {"base_url": base_url, "model": model or "?", "max_tokens": MAX_TOKENS}
    settings |= {"attempts": 1, "timeout_s": TIMEOUT_S} | ({"key_env": key_env} if key_env else {})
    role = read_roles({"default": settings})["default"]
    return asyncio.run(_probe(role, model))


async def _probe(role: Role, model: str | None) -> list[CheckResult]:
    try:
        listed, names = await _list_models(role)
        chosen = model or (names[0] if names else None)
        if chosen is None:
            raise ModelUnknown(f"{role.place} lists no model; name one with --model")
        endpoint = Endpoint(role.model_copy(update={"model": chosen}))
        try:
            tried = [*await _try_chat(endpoint), *await _try_abilities(endpoint)]
            return [listed, *tried, *await _try_speakers(endpoint)]
        finally:
            await endpoint.close()
    except ModelError as error:
        todo = "fix that and run this again"
        untried = (of_endpoint(name, "missing", "not tried", todo) for name in (*ABILITIES, *SPEAKERS))
        return [of_endpoint(CHAT, "broken", str(error), todo), *untried]


async def _list_models(role: Role) -> tuple[CheckResult, list[str]]:
    import openai

    from kinodex.agent.models.bounded_http import BoundedClient
    from kinodex.agent.models.endpoint import trusted_certificates

    try:
        http = BoundedClient(verify=trusted_certificates())
        timeout_s, key = role.timeout_s, api_key(role)
        async with openai.AsyncOpenAI(
            base_url=role.base_url, api_key=key, timeout=timeout_s, max_retries=0, http_client=http
        ) as client:
            names = [each.id async for each in await client.models.list()]
    except openai.APIConnectionError as error:
        raise provider_errors.connection_error(role, error) from error
    except (openai.OpenAIError, ValueError, AttributeError, TypeError) as error:  # its reply is no list
        return of_endpoint(LISTING, "missing", f"none listed ({provider_errors.clip(error, role)})", "name --model"), []
    shown = ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
    return of_endpoint(LISTING, "ok", f"{role.place} lists {shown or 'none'}"), names


def _request(
    text: str, colours: Sequence[str] = (), form: Literal["text", "json", "tools"] = "text"
) -> CompletionRequest:
    tools = (NameColour,) if form == "tools" else ()
    pictures = [coloured(each) for each in colours]
    return CompletionRequest([user_message(text, pictures, None)], ProbeReply, 0.0, form, tools)


async def _try_chat(endpoint: Endpoint) -> list[CheckResult]:
    """The line of a reply, and the one of the tokens that the server counts for it."""
    began = time.monotonic()
    reply = await endpoint.complete(_request(ECHO))
    took = f"{time.monotonic() - began:.1f} s, {reply.input_tokens} tokens in, {reply.output_tokens} out"
    usage = of_endpoint(USAGE, "ok", "counts the tokens of a request")
    if not reply.usage_known:
        usage = of_endpoint(USAGE, "missing", "counts no tokens", "nothing: kinodex estimates and says so")
    return [of_endpoint(CHAT, "ok", f"{endpoint.role.model} said {_quoted(reply)} ({took})"), usage]


Judge = Callable[[Endpoint, "Completion"], CheckResult]
"""Judges the reply to a request that was made to see what a model can do."""
SEES = "agents that look at frames need a model that sees; those that read do not"
NO_TOOLS = "nothing: agents with tools ask it for JSON instead"


async def _try(
    endpoint: Endpoint, name: str, request: CompletionRequest, judge: Judge, todo: str, refused: str = "{}"
) -> CheckResult:
    """Send a request, and judge the reply; a refusal says so, and what is `todo`."""
    try:
        reply = await endpoint.complete(request)
    except ModelError as error:
        return of_endpoint(name, "missing", refused.format(error), todo)
    return judge(endpoint, reply)


async def _try_abilities(endpoint: Endpoint) -> list[CheckResult]:
    """Show a picture, several in one request, ask by a schema and by a tool."""
    return [
        await _try(endpoint, IMAGES, which_colour(), _judge_image, SEES, "takes no picture ({})"),
        await _try(endpoint, SEVERAL, _request(WHICH_COLOURS, COLOURS), _judge_images, "a model that sees"),
        await _try(endpoint, SCHEMA, _request(SKY, form="json"), _judge_schema, ""),
        await _try(endpoint, TOOLS, _request(SKY, form="tools"), _judge_tool, NO_TOOLS),
    ]


def _judge_image(_: Endpoint, reply: Completion) -> CheckResult:
    """A model that cannot name the one colour of a picture does not see."""
    said = f"says of a {COLOUR} picture: {_quoted(reply)}"
    return of_endpoint(IMAGES, "ok", said) if names_colour(reply) else of_endpoint(IMAGES, "missing", said, SEES)


def _judge_images(endpoint: Endpoint, reply: Completion) -> CheckResult:
    if most := endpoint.form.images:
        todo = f"set images = {most} for the role: more frames are then shown as contact sheets from the first request"
        return of_endpoint(SEVERAL, "missing", f"takes {most} in a request", todo)
    named = [each for each in COLOURS if each in reply.text.lower()]
    if len(named) < len(COLOURS):
        todo = "set images = 1 for the role if it reads one alone: frames are then shown as contact sheets"
        message = f"takes {len(COLOURS)} in a request, and names {len(named)} of their colours: {_quoted(reply)}"
        return of_endpoint(SEVERAL, "missing", message, todo)
    return of_endpoint(SEVERAL, "ok", f"takes and tells apart {len(COLOURS)} in a request")


def _judge_schema(endpoint: Endpoint, reply: Completion) -> CheckResult:
    if endpoint.form.rung != SCHEMA:
        message = f"takes none; kinodex asks it for {endpoint.form.rung} and checks each reply"
        return of_endpoint(SCHEMA, "missing", message, "nothing; more replies may be invalid")
    try:
        if any(ProbeReply.model_validate(value) for value in json_values(reply.text)):
            return of_endpoint(SCHEMA, "ok", "keeps to a schema")
    except (InvalidReply, ValidationError):
        pass
    todo = "kinodex will ask again for a reply that does not fit; another server or model may keep to schemas"
    return of_endpoint(SCHEMA, "missing", f"takes one, and says {_quoted(reply)}", todo)


def _judge_tool(endpoint: Endpoint, reply: Completion) -> CheckResult:
    if not endpoint.form.supports_tools:
        return of_endpoint(TOOLS, "missing", "takes none", NO_TOOLS)
    if not reply.calls:
        return of_endpoint(TOOLS, "missing", f"takes some, called none and said {_quoted(reply)}", NO_TOOLS)
    return of_endpoint(TOOLS, "ok", f"called {_quoted(reply)}")


async def _try_speakers(endpoint: Endpoint) -> list[CheckResult]:
    """Try a message of the role "system", and look for thoughts beside the reply.

    kinodex sends no such message, so a server that takes none loses nothing; other tools may need to know.
    """
    plain = _request(ECHO)
    request = replace(plain, messages=[{"role": "system", "content": "Be brief."}, *plain.messages])
    system = of_endpoint(SYSTEM, "ok", "takes a system message; kinodex sends none")
    try:
        answer = await _raw_answer(endpoint, request)
    except ModelError as error:
        message = f"takes no system message ({error})"
        system = of_endpoint(SYSTEM, "missing", message, "nothing: kinodex sends none")
        try:
            answer = await _raw_answer(endpoint, plain)
        except ModelError as second:
            return [system, of_endpoint(THOUGHTS, "missing", str(second))]
    thoughts = "returns none beside the reply"
    if name := thoughts_field(answer):
        thoughts = f"returns them in {name}: kinodex reads a reply there if there is none beside them"
        thoughts += "; max_tokens has to hold both"
    return [system, of_endpoint(THOUGHTS, "ok", thoughts)]


async def _raw_answer(endpoint: Endpoint, request: CompletionRequest) -> object:
    """Complete a request; gives the server's answer as it was sent."""
    answers: list[object] = []

    async def send(body: dict[str, object]) -> object:
        answers.append(await endpoint.post(body))
        return answers[-1]

    await Endpoint(endpoint.role, send).complete(request)
    return answers[-1]


def _quoted(reply: Completion) -> str:
    return repr(" ".join(reply.text.split())[:QUOTED])


# Keys, and a library.

of_keys = partial(CheckResult, "keys")
of_library = partial(CheckResult, "library", "library")
KEYS = {
    "OPENAI_API_KEY": "for language models that are not on this machine or a private network",
    "HF_TOKEN": "for models of the hub that ask for consent",
    "AWS_ACCESS_KEY_ID": "for s3://, unless a profile or role gives access",
    "AWS_SECRET_ACCESS_KEY": "for s3://, unless a profile or role gives access",
}


def check_keys(extra: str | None = None) -> list[CheckResult]:
    variables = KEYS if extra is None or extra in KEYS else {extra: "for the endpoint", **KEYS}
    return [
        of_keys(name, "ok", f"set, {purpose}")
        if os.environ.get(name, "").strip()
        else of_keys(name, "missing", f"not set, {purpose}", f"export {name}=... where it is needed")
        for name, purpose in variables.items()
    ]


def check_library(uri: str) -> list[CheckResult]:
    try:
        library = Library.open(uri)
        health = check_health(library)
    except KinodexError as error:
        return [of_library("broken", str(error))]
    frames = sum(row.frames for row in library.videos())
    at_work = f", at work: {', '.join(map(str, health.at_work))}" if health.at_work else ""
    size = f"{uri}: {health.audit.videos:,} videos, {frames:,} frames, {health.data_bytes / 1e9:.2f} GB{at_work}"
    if health.problems:
        more = f" and {len(health.problems) - 1:,} more" if len(health.problems) > 1 else ""
        return [of_library("broken", f"{size}; {health.problems[0]}{more}", f"kinodex maintain {uri}")]
    return [of_library("ok", f"{size}; every row is where it should be")]


# The verdict by task: what can be done on this machine, each with the command that mends it.

of_tasks = partial(CheckResult, "tasks")
INDEX, WORDS, PICTURE, ASK, SERVE = "index", "search by words", "search by picture", "ask", "serve"
INGEST = "kinodex ingest FILMS --library {} --space local-dir:FOLDER    # a copy of the model's repository"
BY_MODEL = 'kinodex ask {} "..." --model NAME --base-url http://HOST:8000/v1    # a server with a vision-language model'


def run_checks(
    library: str | None, base_url: str | None, model: str | None, key_env: str | None, ray_address: str | None
) -> list[CheckResult]:
    """All lines of the page, the verdicts by task first; raises BadSettings for a URL that is none."""
    found = [*check_machine(), *check_packages(), *check_decoders(), *check_gpu()]
    found += [*check_models(), *check_keys(key_env)]
    found += check_endpoint(base_url, model, key_env) if base_url is not None else []
    found += check_library(library) if library is not None else []
    return [*check_tasks(found, library), *check_ray(ray_address), *found]


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
    for name, what in (("pyav", "no video can be read"), ("clip", "no model can be run")):
        if found[name].state != "ok":
            return of_tasks(INDEX, found[name].state, f"{what}: {found[name].said}", "pip install -U 'kinodex[ingest]'")
    space, hub = found["default space"], found.get("hub")
    if hub is None:  # which open_clip alone asks
        return of_tasks(INDEX, space.state, f"no model can be run: {space.said}", "pip install -U 'kinodex[ingest]'")
    if space.state == "ok" or hub.state == "ok":
        fetched = "is here" if space.state == "ok" else "is fetched from the hub by the first ingest"
        return of_tasks(INDEX, "ok", f"the default space, {DEFAULT_SPACE}, {fetched}")
    said = f"the default space, {DEFAULT_SPACE}, is not here, and {hub.said}"
    return of_tasks(INDEX, "missing", said, INGEST.format("LIBRARY"))


def _search(library: Library, name: str, index: CheckResult) -> CheckResult:
    """Search a library once, by words or by a picture."""
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
    if noise := library.noise():
        todo = "kinodex ingest FILMS --library ANOTHER" if index.state == "ok" else INGEST.format("ANOTHER")
        return of_tasks(name, "broken", noise, todo)
    return of_tasks(name, "ok", f"in {library.uri}, by its space {library.space_name}")


def _ask(found: Mapping[str, CheckResult], library: Library | None) -> CheckResult:
    place = library.uri if library is not None else "LIBRARY"
    if CHAT in found:
        chat, images = found[CHAT], found[IMAGES]
        worse = chat if chat.state != "ok" else images
        said = "the endpoint's model answers, and sees pictures" if worse.state == "ok" else worse.said
        return of_tasks(ASK, worse.state, said, BY_MODEL.format(place))
    if library is not None and library.space_name == BUILTIN_SPACE and not library.noise():
        return of_tasks(ASK, "ok", "the built-in model answers about these drawn films, and about no others")
    if os.environ.get("OPENAI_API_KEY", "").strip():
        return of_tasks(ASK, "ok", "OPENAI_API_KEY is set: --model names a model there, which was not tried")
    return of_tasks(ASK, "missing", "no model was named that sees pictures and answers", BY_MODEL.format(place))


def _serve(found: Mapping[str, CheckResult]) -> CheckResult:
    if found["pyav"].state != "ok":
        todo = "pip install -U 'kinodex[decode]'"
        return of_tasks(SERVE, found["pyav"].state, "pages are shown, films are not played", todo)
    return of_tasks(SERVE, "ok", "pages are shown, films are played; a question needs what `ask` needs")
