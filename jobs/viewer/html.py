"""One HTML document whose modules come from the server, or are in it together with the data and pictures."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from jobs.evaluation.report.html import TEMPLATES as REPORT_TEMPLATES

STATIC = Path(__file__).with_name("static")
PREFIX = "viewer/"
_START = 'import "viewer/main.js";'


@cache
def modules() -> dict[str, str]:
    """JavaScript modules of the page by name, such as main.js and trace/tree.js."""
    return {
        path.relative_to(STATIC).as_posix(): path.read_text(encoding="utf-8") for path in sorted(STATIC.rglob("*.js"))
    }


@cache
def style() -> str:
    """Style sheet of the evaluation's report, then those of the viewer, those for all its pages first."""
    shared = sorted((STATIC / "shared").glob("*.css"))
    of_pages = [sheet for sheet in sorted(STATIC.glob("*/*.css")) if sheet not in shared]
    sheets = (REPORT_TEMPLATES / "page.css", *shared, *of_pages)
    return "\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets)


def served_page() -> tuple[str, str]:
    """Page as a server sends it, and its Content-Security-Policy: it may load only from that server."""
    where = _import_map({name: f"/page/{name}" for name in modules()})
    policy = (
        f"default-src 'none'; script-src 'self' '{_hash(where)}' '{_hash(_START)}'; style-src 'self'; "
        "img-src 'self' data:; media-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    # Without these a browser finds the modules one import after the other. Not "modulepreload", which resolves imports
    # too: a scanner that runs ahead of the import map then fails, and the page stays empty (seen in Chromium).
    early = "".join(f'<link rel="preload" as="script" crossorigin href="/page/{name}">\n' for name in modules())
    return _document('<link rel="stylesheet" href="/page/viewer.css">', where, "", early), policy


def whole_page(data: Mapping[str, Any], pictures: Mapping[str, bytes]) -> str:
    """Page as one file: `data` by the paths of the server, JPEGs by "library/video/frame"."""
    where = _import_map({name: _data_url("text/javascript", text.encode()) for name, text in modules().items()})
    policy = (
        f"default-src 'none'; script-src data: '{_hash(where)}' '{_hash(_START)}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    held = {"data": data, "pictures": {name: _data_url("image/jpeg", jpeg) for name, jpeg in pictures.items()}}
    return _document(
        f"<style>{style()}</style>",
        where,
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        f'<script type="application/json" id="held">{_in_script(as_json(held).decode())}</script>',
    )


def as_json(value: Any) -> bytes:
    """Encode dataclasses, pydantic's own types and JSON values as JSON."""
    return to_json(value, inf_nan_mode="null")


def _document(style_tag: str, import_map: str, policy: str, held: str) -> str:
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
{policy}
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>kinodex view</title>
{style_tag}
<script type="importmap">{import_map}</script>
</head>
<body>
<div id="page"><header class="top"><a class="brand" href="#/">kinodex</a></header>
<main><p class="quiet loading" role="status">Loading…</p></main></div>
<noscript>This page draws itself with JavaScript, which is switched off here.</noscript>
{held}
<script type="module">{_START}</script>
</body>
</html>
"""


def _import_map(places: Mapping[str, str]) -> str:
    return json.dumps({"imports": {PREFIX + name: place for name, place in places.items()}})


def _data_url(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _in_script(text: str) -> str:
    """Escape JSON so that no HTML parser takes one of its strings for the end of the element."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode('ascii')}"
