"""A real RTSP server of one film, by GStreamer: `/usr/bin/python3 rtsp_server.py FILM PORT SENT [USER PASSWORD]`.

Every client gets the film from its start, at its own pace. For each picture that leaves, SENT gets a line: the number
of the client, the picture's time in seconds, and when it left, in seconds since the epoch. It runs under the system's
Python, which has GStreamer (Debian: gir1.2-gst-rtsp-server-1.0, gstreamer1.0-plugins-good, -bad or -ugly).
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SYSTEM_PYTHON = "/usr/bin/python3"


def is_there() -> bool:
    """True where the system's Python can serve RTSP."""
    check = "import gi; gi.require_version('GstRtspServer', '1.0'); from gi.repository import GstRtspServer"
    return (
        Path(SYSTEM_PYTHON).exists()
        and subprocess.run([SYSTEM_PYTHON, "-c", check], capture_output=True).returncode == 0
    )


def serve(film: str, port: str, sent: str, *login: str) -> None:
    import gi

    gi.require_version("Gst", "1.0")
    gi.require_version("GstRtspServer", "1.0")
    from gi.repository import GLib, Gst, GstRtspServer

    Gst.init(None)
    log = Path(sent).open("a", buffering=1)  # noqa: SIM115 - for as long as the process lives
    clients = 0

    def configure(factory: Any, media: Any) -> None:
        nonlocal clients
        clients += 1
        number = clients

        def leaves(pad: Any, info: Any) -> Any:
            pts_s = info.get_buffer().pts / Gst.SECOND
            log.write(f"{number} {pts_s:.3f} {time.time():.3f}\n")
            return Gst.PadProbeReturn.OK

        # of the payloader's sink: after the queue that the film is read into, which the client's pace empties
        media.get_element().get_by_name("pay0").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, leaves)

    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(
        f"( filesrc location={film} ! tsdemux ! h264parse ! identity sync=true ! "
        "rtph264pay name=pay0 pt=96 config-interval=1 )"
    )
    factory.set_shared(False)
    factory.connect("media-configure", configure)
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service(port)
    if login:
        auth = GstRtspServer.RTSPAuth()
        token = GstRtspServer.RTSPToken()
        token.set_string("media.factory.role", "user")
        auth.add_basic(GstRtspServer.RTSPAuth.make_basic(*login), token)
        server.set_auth(auth)
        permissions = GstRtspServer.RTSPPermissions()
        permissions.add_permission_for_role("user", "media.factory.access", True)
        permissions.add_permission_for_role("user", "media.factory.construct", True)
        factory.set_permissions(permissions)
    server.get_mount_points().add_factory("/film", factory)
    server.attach(None)
    print(f"rtsp://127.0.0.1:{server.get_bound_port()}/film", flush=True)
    GLib.MainLoop().run()


if __name__ == "__main__":
    serve(*sys.argv[1:])
