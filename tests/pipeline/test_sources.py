"""Files, folders, globs and URIs become sources, with their subtitles, in a list of little memory."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest

from kinodex.pipeline.errors import SourceMissing
from kinodex.pipeline.fetch import local_copy
from kinodex.pipeline.source import Source
from kinodex.pipeline.sources import list_sources, named_sources, sidecar_tags
from kinodex.pipeline.stamps import stamp


def names(sources: list[Source]) -> list[str]:
    return [Path(source.uri).name for source in sources]


def test_folders_files_and_globs_give_each_video_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In depth, and no hidden ones."""
    monkeypatch.chdir(folder)
    sources = list_sources([str(folder)])
    every = ["a.mp4", "c.MKV", "film.mp4", "film.trailer.mp4", "take[1].mov"]
    assert [source.title for source in sources] == ["a", "c", "film", "film.trailer", "take[1]"]
    assert all(Path(source.uri).is_absolute() for source in sources)
    for arguments, found in (
        ([str(folder)], every),
        (["a.mp4", "./b/../a.mp4", f"file://{folder}/a.mp4", "a.*", str(folder)], every),
        ([f"{folder}/**/*"], every),
        ([f"{folder}/*.mp4"], ["a.mp4", "film.mp4", "film.trailer.mp4"]),
        ([f"{folder}/take[1].mov"], ["take[1].mov"]),
        ([str(folder / "data.bin")], ["data.bin"]),  # named outright it needs no suffix
    ):
        assert names(list_sources(arguments)) == found, arguments
    film, trailer = list_sources([str(folder / "film.mp4"), str(folder / "film.trailer.mp4")])
    assert [Path(uri).name for uri in film.sidecars] == ["film.en.vtt", "film.srt"]
    assert [Path(uri).name for uri in trailer.sidecars] == ["film.trailer.en.ass"]
    uris = [str(folder / name) for name in ("film.mp4", "a.mp4", "b/gone.mp4")]
    known, a, gone = named_sources(uris)
    assert [known, a] == list_sources(uris[:1]) + list_sources(uris[1:2])
    assert (gone.uri, gone.title) == (uris[2], "gone")


def test_language_of_a_sidecar() -> None:
    for name, video, tags in (
        ("f.srt", "f", ("f", None)),
        ("f.en.srt", "f", ("f", "en")),
        ("f.EN.srt", "f", ("f", "EN")),
        ("f.pt-BR.sdh.srt", "f", ("f", "pt-BR")),
        ("f.forced.deu.ass", "f", ("f", "deu")),
        ("f.director.srt", "f", ("f", None)),
        ("Up.in.the.Air.2009.srt", "Up.in.the.Air.2009", ("Up.in.the.Air.2009", None)),
        ("Up.in.the.Air.2009.de.srt", "Up.in.the.Air.2009", ("Up.in.the.Air.2009", "de")),
        ("What.is.it.srt", "What.is.it", ("What.is.it", None)),
        ("f.hi.srt", "", ("f", "hi")),
        ("f.en.hi.srt", "", ("f", "en")),
        ("Up.in.the.Air.2009.pt-BR.sdh.srt", "", ("Up.in.the.Air.2009", "pt-BR")),
        ("The.Big.Sky.srt", "", ("The.Big.Sky", None)),
        ("the.big.sky.srt", "", ("the.big.sky", None)),
        ("It.srt", "", ("It", None)),
    ):
        assert sidecar_tags(f"s3://bucket/{name}", video) == tags, name


def test_nothing_there_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b").mkdir()
    for argument in ("nothing.mp4", "*.mp4", "b", "b/c.mkv/inside"):
        with pytest.raises(SourceMissing) as caught:
            list_sources([argument])
        assert str(caught.value).startswith(f"{argument}: ") and "\n" not in str(caught.value)
        assert caught.value.stage == "fetch"
    with pytest.raises(SourceMissing, match="got an empty name"):
        list_sources([""])  # not the current folder


def test_a_memory_filesystem(folder: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe({"/shelf/film.mp4": b"bytes", "/shelf/film.en.srt": b"1\n", "/shelf/deep/other.webm": b"more"})
    other, film = list_sources(["memory://shelf"])
    assert (other.uri, film.uri) == ("memory:///shelf/deep/other.webm", "memory:///shelf/film.mp4")
    assert film.sidecars == ("memory:///shelf/film.en.srt",)
    assert list_sources(["memory://shelf/*.mp4"]) == [film]
    with local_copy(film) as path:
        assert (path.read_bytes(), path.suffix) == (b"bytes", ".mp4")
    assert not path.exists()
    with local_copy(Source(film.sidecars[0], "subtitles")) as path:
        assert path.read_bytes() == b"1\n"
    with pytest.raises(SourceMissing):
        list_sources(["memory://shelf/none.mp4"])


def test_a_remote_listing_brings_the_stamps() -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe({"/stamps/a.mp4": b"12345", "/stamps/b.mp4": b"1"})
    listed = list_sources(["memory://stamps"])
    assert [source.stamp and source.stamp.size_bytes for source in listed] == [5, 1]
    by_name = [list_sources([f"memory://stamps/{name}.mp4"])[0] for name in "ab"]
    assert [stamp(source) for source in by_name] == [stamp(source) for source in listed]
    memory.rm("/stamps", recursive=True)
    assert stamp(listed[0]) == listed[0].stamp  # told by the listing: nothing is asked again
    with pytest.raises(SourceMissing):
        stamp(Source(listed[0].uri, "a"))


def test_links_are_followed_and_odd_names_are_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each folder once, though a link leads back to it; a dead link is a source whose failure shows."""
    monkeypatch.chdir(tmp_path)
    for folder in ("real", "films"):
        (tmp_path / folder).mkdir()
    for name in ("real/a.mp4", "~t.mkv", "x::y.mkv"):
        (tmp_path / name).touch()
    for link, target in (("l", "../real"), ("loop", "."), ("b.mp4", "../real/a.mp4"), ("dead.mp4", "nowhere")):
        (tmp_path / "films" / link).symlink_to(target)
    for argument, found in {
        "films": ["films/b.mp4", "films/dead.mp4", "films/l/a.mp4"],
        "films/*": ["films/b.mp4", "films/dead.mp4"],
        "~t.mkv": ["~t.mkv"],
        "x::y.mkv": ["x::y.mkv"],
        "*.mkv": ["x::y.mkv", "~t.mkv"],
    }.items():
        assert [str(Path(each.uri).relative_to(tmp_path)) for each in list_sources([argument])] == found, argument
    with pytest.raises(SourceMissing, match="no such file or folder"):
        list_sources(["~nobody-here/x.mp4"])
