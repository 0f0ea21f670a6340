"""How the documentation site is built: `make docs`, then open build/docs/index.html. Sphinx reads the Markdown here."""

from __future__ import annotations

project = "kinodex"
author = "the kinodex authors"
language = "en"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
default_role = "code"  # of docstrings, whose `names` stand in single backticks
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 100
# A prompt is not copied, nor is what a command printed.
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
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
