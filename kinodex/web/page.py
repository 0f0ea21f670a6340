"""One HTML document whose program comes from the server, or is in it together with the data and pictures.

The modules in `static` are joined when the page is first asked for: nobody who installs has anything to build.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from string import Template
from typing import Any

from pydantic_core import to_json

from kinodex.jobs.eval.page import TEMPLATES as REPORT_TEMPLATES

STATIC = Path(__file__).with_name("static")
PREFIX = "viewer/"
IMPORT = re.compile(r'^import \{([^}]*)\} from "viewer/([^"]+)";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async function|function|const|class) (\w+))", re.MULTILINE)
_START = """import("{code}").catch((error) => {{
  document.querySelector(".loading").textContent =
    `The program of this page did not load: ${{error.message}}. Reload it; if that does not help, restart the server.`;
}});"""


@cache
def bundle() -> str:
    """Return all modules of the page as one.

    `default` of it are their exports by name, such as main.js and trace/tree.js.
    """
    paths = sorted(STATIC.rglob("*.js"))
    return bundled({path.relative_to(STATIC).as_posix(): path.read_text(encoding="utf-8") for path in paths})


def bundled(modules: Mapping[str, str]) -> str:
    """Join modules by name to one: each becomes a function that gives its exports, after those that it imports from."""
    imports = {name: [found for _, found in IMPORT.findall(text)] for name, text in modules.items()}
    order = TopologicalSorter(imports).static_order()
    return "\n".join(
        ["const modules = {};", *(_wrapped(name, modules[name]) for name in order), "export default modules;\n"]
    )


def _wrapped(name: str, text: str) -> str:
    def taken(found: re.Match[str]) -> str:
        return f"const {{{found[1].replace(' as ', ': ')}}} = modules[{json.dumps(found[2])}];"

    body = EXPORT.sub("", IMPORT.sub(taken, text))
    return f"modules[{json.dumps(name)}] = (() => {{\n{body}return {{ {', '.join(EXPORT.findall(text))} }};\n}})();"


@cache
def style() -> str:
    """Style sheet of the evaluation's report, then those of the viewer, those for all its pages first."""
    shared = sorted((STATIC / "shared").glob("*.css"))
    of_pages = [sheet for sheet in sorted(STATIC.glob("*/*.css")) if sheet not in shared]
    sheets = (REPORT_TEMPLATES / "page.css", *shared, *of_pages)
    return "\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets)


@cache
def parts() -> dict[str, tuple[str, str]]:
    kinds = {"js": (bundle(), "text/javascript"), "css": (style(), "text/css")}
    return {
        f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.{end}": (text, kind) for end, (text, kind) in kinds.items()
    }


def served_page() -> tuple[str, str]:
    """Page as a server sends it, and its Content-Security-Policy: it may load only from that server."""
    code, sheet = (f"/page/{name}" for name in parts())
    start = _START.format(code=code)
    policy = (
        f"default-src 'none'; script-src 'self' '{_hash(start)}'; style-src 'self'; "
        "img-src 'self' data:; media-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    links = f'<link rel="stylesheet" href="{sheet}">\n<link rel="modulepreload" href="{code}">'
    return _document(links, "", "", start), policy


def whole_page(data: Mapping[str, Any], pictures: Mapping[str, bytes]) -> str:
    """Page as one file: `data` by the paths of the server, JPEGs by "library/video/frame"."""
    start = f"\n{bundle()}"
    policy = (
        f"default-src 'none'; script-src '{_hash(start)}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    urls = {name: f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode('ascii')}" for name, jpeg in pictures.items()}
    held = {"data": data, "pictures": urls}
    # Escaped so that no HTML parser takes one of its strings for the end of the element.
    text = as_json(held).decode().replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return _document(
        f"<style>{style()}</style>",
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        f'<script type="application/json" id="held">{text}</script>',
        start,
    )


def as_json(value: Any) -> bytes:
    return to_json(value, inf_nan_mode="null")


def _document(style_tag: str, policy: str, held: str, start: str) -> str:
    page = Template((STATIC / "page.html").read_text(encoding="utf-8"))
    return page.substitute(style=style_tag, policy=policy, held=held, start=start)


def _hash(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode('ascii')}"
