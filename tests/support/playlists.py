"""Playlists of two short films, and one film as a transport stream."""

from __future__ import annotations

from pathlib import Path

import av

from tests.support.libraries.corpus import draw_film

FILM_S = 5
"""Length of each film."""


def make_films(folder: Path) -> Path:
    """Two films `a` and `b` in `folder`, each as .mp4 and .ts; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate("ab"):
        film = folder / f"{name}.mp4"
        draw_film(film, FILM_S, seed)
        with av.open(str(film)) as source, av.open(str(folder / f"{name}.ts"), "w", format="mpegts") as target:
            stream = source.streams.video[0]
            copied = target.add_stream_from_template(stream)
            for packet in source.demux(stream):
                if packet.dts is not None:
                    packet.stream = copied
                    target.mux(packet)
    return folder


def m3u8(*segments: str, extra: str = "") -> str:
    """A finished playlist of segments of `FILM_S`; `extra` lines stand before the first."""
    parts = "".join(f"#EXT-X-DISCONTINUITY\n#EXTINF:{FILM_S},\n{segment}\n" for segment in segments)
    return f"#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:{FILM_S}\n{extra}{parts}#EXT-X-ENDLIST\n"


def ffconcat(*files: str) -> str:
    return "ffconcat version 1.0\n" + "".join(f"file '{file}'\n" for file in files)


def mpd(base: str) -> str:
    return (
        '<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" '
        'profiles="urn:mpeg:dash:profile:isoff-on-demand:2011" mediaPresentationDuration="PT4S" minBufferTime="PT1S">'
        f'<Period><AdaptationSet contentType="video"><Representation id="v" mimeType="video/mp4" bandwidth="1">'
        f"<BaseURL>{base}</BaseURL></Representation></AdaptationSet></Period></MPD>"
    )
