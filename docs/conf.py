"""How the documentation site is built: `make docs`, then open build/docs/index.html. Sphinx reads the Markdown here."""

from __future__ import annotations

project = "kinodex"
author = "the kinodex authors"
language = "en"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}

# Headings can be linked to as on GitHub, so that the pages read the same there.
myst_heading_anchors = 3

html_theme = "furo"
html_title = "kinodex"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
