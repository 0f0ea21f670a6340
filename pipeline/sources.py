"""Find videos in files, folders, globs and fsspec URIs, with the subtitle files beside them."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from kinodex.pipeline.errors import SourceForbidden, SourceMissing
from kinodex.pipeline.filesystems import attempt, filesystem_of, is_remote
from kinodex.pipeline.origins import may_read
from kinodex.pipeline.source import Source
from kinodex.pipeline.stamps import stamp_from_info

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

# fmt: off
VIDEO_SUFFIXES = frozenset([
    ".3g2", ".3gp", ".asf", ".avi", ".divx", ".f4v", ".flv", ".gif", ".m2ts", ".m2v", ".m4v", ".mkv", ".mov",
    ".mp4", ".mpeg", ".mpg", ".mts", ".mxf", ".ogm", ".ogv", ".qt", ".rm", ".rmvb", ".ts", ".vob", ".webm",
    ".wmv", ".y4m",
])
# fmt: on
GLOB = re.compile(r"[*?\[]")
SUBTITLE_SUFFIXES = frozenset([".srt", ".vtt", ".ass", ".ssa"])
SIDECAR_FLAGS = frozenset(["forced", "sdh", "cc", "hi", "default", "foreign", "full"])
"""Tags of a sidecar's name that are no language, though one, "hi" for the hard of hearing, could be one."""
DOWNLOADED = ("uploader", "channel", "upload_date", "license", "webpage_url", "tags", "categories", "view_count")
"""What is kept of the `.info.json` that yt-dlp writes beside a download."""
MOST_NOTE_BYTES = 64_000_000
"""Largest `.info.json` that is read; comments and formats of a film are a few megabytes."""
LANGUAGE_CODES = frozenset(Path(__file__).with_name("languages.txt").read_text(encoding="ascii").split())
"""Codes of ISO 639-1, and those of ISO 639-2 for the same languages."""


def list_sources(arguments: Sequence[str]) -> list[Source]:
    """List the videos that files, folders (in depth), globs and fsspec URIs name; sorted by URI, each once.

    A file that is named itself may have any suffix; of a folder or a glob, files with a video suffix count. A web
    address is not looked up: the web has no listings, and a dead address shows when it is read.

    Raises SourceMissing: an argument names or matches no video; SourceForbidden, SourceUnreachable: a remote argument
    cannot be looked up.
    """
    found = {source.uri: replace(source, is_named=True) for argument in arguments for source in _look_up(argument)}
    return [found[uri] for uri in sorted(found)]


def named_sources(uris: Iterable[str]) -> list[Source]:
    """Make sources of URIs that an earlier run listed, with the sidecars beside them now; one listing a folder."""
    sources: list[Source] = []
    folders: dict[str, list[str]] = defaultdict(list)
    for uri in uris:
        folders[_folder(uri)].append(uri)
    for of_folder in folders.values():
        if _on_the_web(of_folder[0]) or not may_read(of_folder[0]):  # what may not be read is a failure of its own
            sources += [Source(uri, title_of(uri)) for uri in of_folder]
            continue
        filesystem, _ = filesystem_of(of_folder[0])
        paths = [filesystem_of(uri)[1] for uri in of_folder]
        names = _names_in(filesystem, _folder(paths[0]))
        filesystem.invalidate_cache()
        for path in paths:
            is_folder = "file" in _protocols(filesystem) and Path(path).is_dir()
            sources += _below(filesystem, path)[0] if is_folder else [_source(filesystem, path, names)]
    return sources


def sidecar_tags(uri: str, video: str = "") -> tuple[str, str | None]:
    """Split a sidecar's name into its video's and the language: `film.pt-BR.sdh.srt` is "film" and "pt-BR".

    What follows the name of the `video`, its stem, are tags. Without one they are known by being codes at the end:
    those of "Up.in.the.Air.srt" are none.
    """
    name, video = composed(PurePosixPath(uri).stem), composed(video)
    if video and name.startswith(f"{video}."):
        title, tags = video, name[len(video) + 1 :].split(".")
    elif name == video:
        return name, None
    else:
        title, *rest = name.split(".")
        at = len(rest)
        while at and (rest[at - 1].lower() in SIDECAR_FLAGS or _is_language(rest[at - 1])):
            at -= 1
        languages = [number for number in range(at, len(rest)) if _is_language(rest[number])]
        if not languages:
            return name, None
        sure = [number for number in languages if rest[number].lower() not in SIDECAR_FLAGS] or languages
        at, tags = sure[-1], rest[sure[-1] :]
        while at and rest[at - 1].lower() in SIDECAR_FLAGS:
            at -= 1
        title = ".".join([title, *rest[:at]])
    return title, next((tag for tag in tags if _is_language(tag)), None)


def composed(name: str) -> str:
    """Return a name as it is compared: a letter and its accent are one character, which macOS writes as two."""
    return unicodedata.normalize("NFC", name)


def _is_language(tag: str) -> bool:
    code = tag.partition("-")[0]
    is_plain = bool(re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", tag)) and code in (code.lower(), code.upper())
    return is_plain and code.lower() in LANGUAGE_CODES


def download_info(uri: str) -> dict[str, Any]:
    """Return the columns from the `FILM.info.json` that yt-dlp wrote beside a local file; {} where it did not."""
    info = read_download(uri)
    found = {name: info[name] for name in DOWNLOADED if info.get(name) not in (None, "", [])}
    if isinstance(found.get("upload_date"), str):
        with suppress(ValueError):
            found["upload_date"] = datetime.strptime(found["upload_date"], "%Y%m%d").date()
    kinds: Mapping[str, type | tuple[type, ...]] = {
        "view_count": int,
        "upload_date": date,
        "tags": list,
        "categories": list,
    }
    return {name: value for name, value in found.items() if isinstance(value, kinds.get(name, str))}


def read_download(uri: str) -> dict[str, Any]:
    """Read all that yt-dlp wrote beside a local file; {} where it did not."""
    if is_remote(uri):
        return {}
    try:
        note = Path(uri).with_suffix(".info.json")
        if not note.is_file() or note.stat().st_size > MOST_NOTE_BYTES:  # a pipe never ends, a device has no size
            return {}
        info = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return info if isinstance(info, dict) else {}


def _look_up(argument: str) -> list[Source]:
    """List the sources of one argument; a name that exists is taken literally, even if it looks like a glob."""
    if not argument.strip():  # an unset variable in quotes; as a path it would be all of the current folder
        raise SourceMissing("got an empty name; give a file, a folder, a glob or a URI")
    filesystem, path = attempt(argument, lambda: filesystem_of(argument, is_named=True))
    if _on_the_web(argument):
        return [Source(argument, title_of(argument))]
    try:
        return _list_path(argument, filesystem, path)
    finally:
        filesystem.invalidate_cache()  # else the next listing is an old one, and a million objects take up a gigabyte


def _list_path(argument: str, filesystem: AbstractFileSystem, path: str) -> list[Source]:
    info = attempt(argument, lambda: _info(filesystem, path))
    if info["type"] == "file":
        found = {path: info}
        return _sources(filesystem, found, _names_beside(filesystem, found))
    if info["type"] == "directory":
        sources, unread = attempt(argument, lambda: _below(filesystem, path))
        if path in unread:
            raise SourceForbidden(f"{argument}: listing it is not permitted; ask for the right to read it")
        _require_some(sources, f"{argument}: a folder without a video")
        return sources
    if GLOB.search(argument):
        matches = attempt(argument, lambda: filesystem.glob(path, detail=True))
        # A link to a file counts, also to one that is not there: that shows when it is read.
        files = {
            name: each
            for name, each in matches.items()
            if each["type"] == "file" or (each.get("islink") and not Path(each["name"]).is_dir())
        }
        found = _videos(files)
        unread = [*_unlisted("/", path.split("/")[1:])] if "file" in _protocols(filesystem) else []
        matched = f"{len(files)} files but no video" if files else "nothing"
        _require_some(found or unread, f"{argument}: matches {matched}")
        return _sources(filesystem, found, _names_beside(filesystem, found)) + _folders(filesystem, unread)
    raise SourceMissing(f"{argument}: no such file or folder; give a file, a folder, a glob or a URI")


def _below(filesystem: AbstractFileSystem, path: str) -> tuple[list[Source], list[str]]:
    """Make sources of the videos below a folder and of the folders that may not be listed; returns these too."""
    unread: list[str] = []
    everything = _find(filesystem, path, unread)
    found = _videos(everything, below=path)
    return _sources(filesystem, found, _by_folder(everything)) + _folders(filesystem, unread), unread


def _find(filesystem: AbstractFileSystem, path: str, unread: list[str]) -> Mapping[str, Mapping[str, Any]]:
    """List all files below a folder with what the filesystem says of them; of local ones, which tell it later, none.

    That of a million takes a gigabyte. `unread` gets the local folders that may not be listed.
    """
    if "file" not in _protocols(filesystem):
        found: Mapping[str, Mapping[str, Any]] = filesystem.find(path, detail=True)
        return found
    nothing: Mapping[str, Any] = {}
    return {f"{folder}/{name}": nothing for folder, names in walk(path, unread) for name in names}


def _folders(filesystem: AbstractFileSystem, paths: Sequence[str]) -> list[Source]:
    """Make sources of folders that may not be listed: they fail where they are read, with the reason."""
    return [_source(filesystem, path.rstrip("/"), ()) for path in paths]


def walk(path: str, unread: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Walk through a local folder and those that it links to, each once, however many links lead to it.

    `unread` gets those that may not be listed.
    """
    seen = {os.path.realpath(path)}
    for folder, below, names in os.walk(path, onerror=lambda error: unread.append(error.filename), followlinks=True):
        real = {name: os.path.realpath(f"{folder}/{name}") for name in sorted(below)}
        new = {place: name for name, place in reversed(real.items()) if place not in seen}
        below[:] = sorted(new.values())
        seen.update(new)
        yield folder, names


def _unlisted(folder: str, pattern: Sequence[str]) -> Iterator[str]:
    """Yield the local folders that a glob, split at its slashes, has to list below a folder, and may not."""
    first, *rest = pattern
    if not GLOB.search(first):
        place = f"{folder.rstrip('/')}/{first}"
        yield from _unlisted(place, rest) if rest and Path(place).is_dir() else ()
        return
    try:
        with os.scandir(folder) as entries:
            below = sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=first != "**"))
    except PermissionError:
        yield folder
        return
    for path in below:
        if first == "**":
            yield from _unlisted(path, pattern)
        elif rest and fnmatchcase(PurePosixPath(path).name, first):
            yield from _unlisted(path, rest)


def _info(filesystem: AbstractFileSystem, path: str) -> Mapping[str, Any]:
    try:
        info: Mapping[str, Any] = filesystem.info(path)
    except FileNotFoundError:
        return {"type": None}
    return info


def _on_the_web(uri: str) -> bool:
    return uri.lower().startswith(("http://", "https://"))


def _require_some(paths: Collection[object], otherwise: str) -> None:
    if not paths:
        raise SourceMissing(f"{otherwise}; these suffixes count: {' '.join(sorted(VIDEO_SUFFIXES))}")


def _is_video(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in VIDEO_SUFFIXES


def _videos(infos: Mapping[str, Mapping[str, Any]], below: str = "") -> dict[str, Mapping[str, Any]]:
    """Keep the paths with a video suffix, none of them hidden (such as the `._film.mp4` that macOS leaves)."""
    return {
        path: info for path, info in infos.items() if _is_video(path) and not re.search(r"(^|/)\.", path[len(below) :])
    }


def _sources(
    filesystem: AbstractFileSystem, infos: Mapping[str, Mapping[str, Any]], names: Mapping[str, Names]
) -> list[Source]:
    return [_source(filesystem, path, names[_folder(path)], info) for path, info in infos.items()]


def _source(filesystem: AbstractFileSystem, path: str, names: Names, info: Mapping[str, Any] | None = None) -> Source:
    sidecars = [f"{_folder(path)}/{name}" for name in _sidecars(PurePosixPath(path).name, names)]
    if "file" in _protocols(filesystem):  # a listing rounds times of change, and a stat costs nothing
        path, *sidecars = (_as_text(name) for name in (path, *sidecars))
        return Source(path, PurePosixPath(path).stem, tuple(sidecars))
    path, *sidecars = (filesystem.unstrip_protocol(name) for name in (path, *sidecars))
    return Source(path, PurePosixPath(path).stem, tuple(sidecars), stamp=stamp_from_info(info or {}))


def _as_text(path: str) -> str:
    """Write bytes of a path that are not UTF-8 as `\\xff`, as no table takes them: the video becomes a failure."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def title_of(uri: str) -> str:
    return _name(uri).stem


def _name(uri: str) -> PurePosixPath:
    return PurePosixPath(re.sub(r"(?<=.)[?#].*" if is_remote(uri) else r"$^", "", uri).rpartition("/")[2])


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


Names = Sequence[tuple[str, str]]
"""The names of a folder in order, each as it is compared and as it is."""


def _by_folder(paths: Iterable[str]) -> dict[str, Names]:
    names: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        names[_folder(path)].append(PurePosixPath(path).name)
    return {folder: _in_order(of_folder) for folder, of_folder in names.items()}


def _in_order(names: Iterable[str]) -> Names:
    return sorted((composed(name), name) for name in names)


def _names_beside(filesystem: AbstractFileSystem, paths: Iterable[str]) -> dict[str, Names]:
    return {folder: _names_in(filesystem, folder) for folder in {_folder(path) for path in paths}}


def _names_in(filesystem: AbstractFileSystem, folder: str) -> Names:
    try:
        return _in_order(PurePosixPath(path).name for path in filesystem.ls(folder, detail=False))
    except (OSError, NotImplementedError):
        return []


def _sidecars(video: str, names: Names) -> list[str]:
    """Choose the subtitle files named after a video: its stem, perhaps tags such as `.en.forced`, a subtitle suffix.

    A file that fits two videos (`film.mp4`, `film.trailer.mp4`) belongs to the longer name.
    """
    stem = PurePosixPath(composed(video)).stem + "."
    after = stem[:-1] + "/"  # "/" follows "." in the alphabet, so these bounds hold all that begins with the stem
    near = names[bisect_left(names, (stem, "")) : bisect_left(names, (after, ""))]
    stems = {PurePosixPath(name).stem + "." for name, _ in near if _is_video(name)} - {stem}
    longer = tuple(other for other in stems if other.startswith(stem))
    fitting = [name for alike, name in near if not alike.startswith(longer)]
    return [name for name in fitting if PurePosixPath(name).suffix.lower() in SUBTITLE_SUFFIXES]


def _protocols(filesystem: AbstractFileSystem) -> tuple[str, ...]:
    return (filesystem.protocol,) if isinstance(filesystem.protocol, str) else tuple(filesystem.protocol)
