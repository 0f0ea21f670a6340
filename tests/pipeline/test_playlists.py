"""A playlist is told from a film, refused unless it is allowed, and then names plain files in its folder alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.pipeline.decoding.open import open_video
from kinodex.pipeline.errors import PlaylistRefused
from kinodex.pipeline.fetch import check_unchanged, content_id, identify
from kinodex.pipeline.playlists import PLAYLIST_DEMUXERS, playlist_kind, playlist_members
from kinodex.pipeline.source import Source
from kinodex.pipeline.subtitles.lines import embedded_lines
from tests.support.playlists import FILM_S, ffconcat, m3u8, make_films, mpd

CPL = '<?xml version="1.0"?><CompositionPlaylist xmlns="http://www.smpte-ra.org/schemas/2067-3/2016"/>'


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_films(tmp_path_factory.mktemp("films"))
    (folder / "below").mkdir()
    (folder / "a.ts").rename(folder / "below" / "a.ts")
    return folder


KINDS = {
    "list.m3u8": ("hls", m3u8("below/a.ts", "b.ts")),
    "list.ffconcat": ("concat", ffconcat("a.mp4", "b.mp4")),
    "renamed.mp4": ("concat", ffconcat("a.mp4")),
    "list.mp4": ("hls", m3u8("b.ts")),
    "list.mpd": ("dash", mpd("a.mp4")),
    "list.xml": ("imf", CPL),
    "list.sdp": ("sdp", "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\n"),
    "list.idx": ("vobsub", "# VobSub index file, v7\n"),
}


@pytest.mark.slow
def test_a_playlist_is_refused_by_every_decoder_and_has_no_identity(films: Path, tmp_path: Path) -> None:
    for name, (kind, text) in KINDS.items():
        path = films / name
        path.write_text(text)
        assert playlist_kind(path) == kind
        for decoder in ("pyav", "decord", "torchcodec"):
            refused = pytest.raises(PlaylistRefused, match=rf"{name}: a playlist \({kind}\).*--allow-playlists")
            with refused, open_video(path, decoder=decoder):
                pass
        with pytest.raises(PlaylistRefused, match=name):
            identify(Source(str(path), "list"), tmp_path)
    # FFmpeg opens none that its first bytes do not show: the list of demuxers holds where ours of marks is passed by.
    with pytest.raises(Exception, match="Invalid argument"):
        embedded_lines(films / "list.ffconcat", "list")
    for other, text in (("a.mp4.srt", "1\n00:00:01,000 --> 00:00:02,000\n#EXTM3U\n"), ("empty", "")):
        (films / other).write_text(text)
    assert {playlist_kind(films / name) for name in ("a.mp4", "b.ts", "a.mp4.srt", "empty")} == {None}


@pytest.mark.parametrize(
    ("name", "text"), [("list.m3u8", m3u8("below/a.ts", "b.ts")), ("list.ffconcat", ffconcat("a.mp4", "b.mp4"))]
)
def test_an_allowed_playlist_shows_its_members_and_is_identified_by_them(
    films: Path, tmp_path: Path, name: str, text: str
) -> None:
    path = films / name
    path.write_text(text)
    found = identify(Source(str(path), "list"), tmp_path, allow_playlists=True)
    assert found.is_playlist
    assert found.source.stamp is None, "its members change without it"
    assert [Path(state.path).stem for state in found.states] == ["list", "a", "b"]
    assert found.size_bytes == sum(Path(state.path).stat().st_size for state in found.states)
    with open_video(path, playlist=True) as video:
        samples = list(video.samples(1.0))
        assert video.metadata.container in PLAYLIST_DEMUXERS
    assert len(samples) == 2 * FILM_S
    member = films / ("b.ts" if name.endswith("m3u8") else "b.mp4")
    kept = member.read_bytes()
    member.write_bytes(kept + b"\0")
    with pytest.raises(Exception, match="changed or replaced"):
        check_unchanged(found)
    assert identify(found.source, tmp_path, allow_playlists=True).video_id != found.video_id
    member.write_bytes(kept)
    assert identify(found.source, tmp_path, allow_playlists=True).video_id == found.video_id != content_id(path)


def test_another_decoder_leaves_an_allowed_playlist_to_pyav(films: Path) -> None:
    path = films / "list.ffconcat"
    path.write_text(ffconcat("a.mp4", "b.mp4"))
    for decoder in ("decord", "torchcodec"):
        with open_video(path, decoder=decoder, playlist=True) as video:
            assert len(list(video.samples(1.0))) == 2 * FILM_S
            assert "a playlist" in (video.fell_back or "")


def test_an_allowed_playlist_names_plain_files_of_its_folder_alone(films: Path) -> None:
    (films / "inner.ts").write_text(ffconcat("a.mp4"))
    (films / "link.ts").symlink_to("/etc/hostname")
    (films / "what?").mkdir()
    path = films / "list"
    for text, message in (
        (m3u8("file:///etc/hostname"), "names 'file:///etc/hostname'; allowed are"),
        (m3u8("/etc/hostname"), "names '/etc/hostname'; allowed are"),
        (m3u8("../b.ts"), r"names '\.\./b\.ts'; allowed are"),
        (m3u8("below/../../b.ts"), "allowed are files in its own folder or below"),
        (m3u8(".hidden.ts"), "allowed are"),
        (m3u8("http://127.0.0.1/b.ts"), "allowed are"),
        (m3u8(" b.ts"), "allowed are"),
        (m3u8("b.ts#x"), "allowed are"),
        (m3u8("b%2ets"), "allowed are"),
        (m3u8("link.ts"), "allowed are"),
        ("#EXTM3U\n#x\0below/a.ts\0../b.ts\n#EXT-X-ENDLIST\n", r"names '\.\./b\.ts'"),
        (m3u8("b\x0c.ts"), "allowed are"),
        (m3u8("nothing.ts"), "no such file is there"),
        (m3u8("inner.ts"), r"itself a playlist \(concat\)"),
        (m3u8("b.ts", extra='#EXT-X-KEY:METHOD=AES-128,URI="file:///etc/hostname"\n'), "holds the tag '#EXT-X-KEY"),
        (m3u8("b.ts", extra='#EXT-X-MEDIA:TYPE=AUDIO,URI="/etc/hostname"\n'), "holds the tag '#EXT-X-MEDIA"),
        (m3u8("b.ts", extra='#EXT-X-MAP:URI="/etc/hostname"\n'), "names '/etc/hostname'"),
        (m3u8("b.ts").replace("#EXT-X-ENDLIST\n", ""), "still grows"),
        (m3u8(), "names no file"),
        (m3u8("b.ts", extra=f"#{'x' * 5000}\n"), "a line of more than 1000 characters"),
        (ffconcat("/etc/hostname"), "names '/etc/hostname'"),
        (ffconcat("../films/a.mp4"), "allowed are"),
        ("ffconcat version 1.0\nfile a.mp4\noption protocol_whitelist file,http\n", "holds the line 'option"),
        ("ffconcat version 1.0\nfile a.mp4\\\nx\n", "holds the line"),
        ("ffconcat version 1.0\nfile 'a'\\''.mp4'\n", "holds the line"),
        (mpd("a.mp4"), r"a playlist \(dash\) whose members are not read"),
    ):
        path.write_text(text)
        kind = playlist_kind(path)
        assert kind
        with pytest.raises(PlaylistRefused, match=message):
            playlist_members(path, kind, "list")
    path = films / "what?" / "list.m3u8"  # a folder whose name means more in a playlist
    path.write_text(m3u8("b.ts"))
    with pytest.raises(PlaylistRefused, match="rename it"):
        playlist_members(path, "hls", "list")
