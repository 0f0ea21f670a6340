"""Find videos in files, folders, globs and fsspec URIs, with the subtitle files beside them."""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from pipeline.errors import SourceMissing
from pipeline.sources.fetch import Source, attempt, filesystem_of, is_remote, stamp_from_info

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

# fmt: off
VIDEO_SUFFIXES = frozenset([
    ".3g2", ".3gp", ".asf", ".avi", ".divx", ".f4v", ".flv", ".gif", ".m2ts", ".m2v", ".m4v", ".mkv", ".mov",
    ".mp4", ".mpeg", ".mpg", ".mts", ".mxf", ".ogm", ".ogv", ".qt", ".rm", ".rmvb", ".ts", ".vob", ".webm",
    ".wmv", ".y4m",
])
# fmt: on
SUBTITLE_SUFFIXES = frozenset([".srt", ".vtt", ".ass", ".ssa"])


def list_sources(arguments: Sequence[str]) -> list[Source]:
    """List the videos that files, folders (in depth), globs and fsspec URIs name; sorted by URI, each once.

    A file that is named itself may have any suffix; of a folder or a glob, files with a video suffix count.
    A web address is not looked up: the web has no listings, and a dead address shows when it is read.

    Raises:
        SourceMissing: an argument names or matches no video.
        SourceForbidden, SourceUnreachable: a remote argument cannot be looked up.
    """
    found = {source.uri: source for argument in arguments for source in _look_up(argument)}
    return [found[uri] for uri in sorted(found)]


def named_sources(uris: Iterable[str]) -> list[Source]:
    """Make sources of URIs that an earlier run listed, with the sidecars that lie beside them now.

    A video that is missing shows when it is read. One listing a folder.
    """
    sources: list[Source] = []
    folders: dict[str, list[str]] = defaultdict(list)
    for uri in uris:
        folders[_folder(uri)].append(uri)
    for of_folder in folders.values():
        filesystem, _ = filesystem_of(of_folder[0])
        if _on_the_web(filesystem):
            sources += [Source(uri, _name(uri).stem) for uri in of_folder]
            continue
        paths = [filesystem_of(uri)[1] for uri in of_folder]
        names = _names_in(filesystem, _folder(paths[0]))
        filesystem.invalidate_cache()
        sources += [_source(filesystem, path, names) for path in paths]
    return sources


def sidecar_language(uri: str) -> str | None:
    """Return the language in a sidecar's name: `film.en.vtt` and `film.pt-BR.sdh.srt` have one, `film.srt` not."""
    for part in PurePosixPath(uri).name.split(".")[1:-1]:
        if re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", part):
            return part
    return None


def _look_up(argument: str) -> list[Source]:
    """List the sources of one argument; a name that exists is taken literally, even if it looks like a glob."""
    if not argument.strip():  # an unset variable in quotes; as a path it would be all of the current folder
        raise SourceMissing("got an empty name; give a file, a folder, a glob or a URI")
    filesystem, path = attempt(argument, lambda: filesystem_of(argument))
    if _on_the_web(filesystem):
        return [Source(argument, _name(argument).stem)]
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
        everything = attempt(argument, lambda: _find(filesystem, path))
        found = _videos(everything, below=path)
        _require_some(found, f"{argument}: a folder without a video")
        return _sources(filesystem, found, _by_folder(everything))
    if re.search(r"[*?\[]", argument):
        matches = attempt(argument, lambda: filesystem.glob(path, detail=True))
        files = {name: each for name, each in matches.items() if each["type"] == "file"}
        found = _videos(files)
        _require_some(found, f"{argument}: matches {f'{len(files)} files but no video' if files else 'nothing'}")
        return _sources(filesystem, found, _names_beside(filesystem, found))
    raise SourceMissing(f"{argument}: no such file or folder; give a file, a folder, a glob or a URI")


def _find(filesystem: AbstractFileSystem, path: str) -> Mapping[str, Mapping[str, Any]]:
    """List all files below a folder with what the filesystem says of them; of local ones, which tell it later, none.

    That of a million takes a gigabyte.
    """
    if "file" not in _protocols(filesystem):
        found: Mapping[str, Mapping[str, Any]] = filesystem.find(path, detail=True)
        return found
    nothing: Mapping[str, Any] = {}
    folders = filesystem.walk(path, detail=True)
    return {info["name"]: nothing for _, _, files in folders for info in files.values()}


def _info(filesystem: AbstractFileSystem, path: str) -> Mapping[str, Any]:
    """Look up a path in the filesystem; type None where nothing is."""
    try:
        info: Mapping[str, Any] = filesystem.info(path)
    except FileNotFoundError:
        return {"type": None}
    return info


def _on_the_web(filesystem: AbstractFileSystem) -> bool:
    return bool({"http", "https"} & set(_protocols(filesystem)))


def _require_some(paths: Mapping[str, Any], otherwise: str) -> None:
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
    filesystem: AbstractFileSystem, infos: Mapping[str, Mapping[str, Any]], names: Mapping[str, Sequence[str]]
) -> list[Source]:
    return [_source(filesystem, path, names[_folder(path)], info) for path, info in infos.items()]


def _source(
    filesystem: AbstractFileSystem, path: str, names: Sequence[str], info: Mapping[str, Any] | None = None
) -> Source:
    sidecars = [f"{_folder(path)}/{name}" for name in _sidecars(PurePosixPath(path).name, names)]
    if "file" in _protocols(filesystem):  # a listing rounds times of change, and a stat costs nothing
        path, *sidecars = (_as_text(name) for name in (path, *sidecars))
        return Source(path, PurePosixPath(path).stem, tuple(sidecars))
    path, *sidecars = (filesystem.unstrip_protocol(name) for name in (path, *sidecars))
    return Source(path, PurePosixPath(path).stem, tuple(sidecars), stamp=stamp_from_info(info or {}))


def _as_text(path: str) -> str:
    """Write bytes of a path that are not UTF-8 as `\\xff`, because no table takes them as they are.

    No file has that name, so the video becomes a failure that says so, and the others are read.
    """
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _name(uri: str) -> PurePosixPath:
    """Take the last part of a URI, without query (`?...`) and fragment (`#...`)."""
    return PurePosixPath(re.sub(r"(?<=.)[?#].*" if is_remote(uri) else r"$^", "", uri).rpartition("/")[2])


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _by_folder(paths: Iterable[str]) -> dict[str, list[str]]:
    """Group file names by folder, sorted."""
    names: dict[str, list[str]] = defaultdict(list)
    for path in sorted(paths):
        names[_folder(path)].append(PurePosixPath(path).name)
    return names


def _names_beside(filesystem: AbstractFileSystem, paths: Iterable[str]) -> dict[str, list[str]]:
    return {folder: _names_in(filesystem, folder) for folder in {_folder(path) for path in paths}}


def _names_in(filesystem: AbstractFileSystem, folder: str) -> list[str]:
    """List the file names in a folder, sorted; none where the filesystem cannot list it."""
    try:
        return sorted(PurePosixPath(path).name for path in filesystem.ls(folder, detail=False))
    except (OSError, NotImplementedError):
        return []


def _sidecars(video: str, names: Sequence[str]) -> list[str]:
    """Choose the subtitle files named after a video: its stem, perhaps tags such as `.en.forced`, a subtitle suffix.

    A file that fits two videos (`film.mp4`, `film.trailer.mp4`) belongs to the longer name. `names` are sorted.
    """
    stem = PurePosixPath(video).stem + "."
    after = stem[:-1] + "/"  # "/" follows "." in the alphabet, so these bounds hold all that begins with the stem
    near = names[bisect_left(names, stem) : bisect_left(names, after)]
    stems = {PurePosixPath(name).stem + "." for name in near if _is_video(name)} - {stem}
    longer = tuple(other for other in stems if other.startswith(stem))
    fitting = [name for name in near if not name.startswith(longer)]
    return [name for name in fitting if PurePosixPath(name).suffix.lower() in SUBTITLE_SUFFIXES]


def _protocols(filesystem: AbstractFileSystem) -> tuple[str, ...]:
    """List the names of a filesystem's protocol: "file", "s3", "https", ..."""
    return (filesystem.protocol,) if isinstance(filesystem.protocol, str) else tuple(filesystem.protocol)
