"""How the documentation site is built: `make docs`, then open build/docs/index.html. Sphinx reads the Markdown here."""

from __future__ import annotations

project = "kinodex"
author = "the kinodex authors"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}

# Headings can be linked to as on GitHub, so that the pages read the same there.
myst_heading_anchors = 3
# One page, the commands, is generated; its headings repeat ("Options").
suppress_warnings: list[str] = []

html_theme = "furo"
html_title = "kinodex"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
