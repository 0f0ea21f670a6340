"""A console that shows text of files, servers and libraries, which cannot steer the terminal it is shown on.

Apart from `kinodex.output`, because it imports rich, which not every command needs.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from kinodex.index.terminal_text import visible_lines


class Terminal(Console):
    """A console of rich on which every text is shown without control characters, each as its escape."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Render a text, cells of tables too, with its own markup and none of a terminal's codes."""
        return super().render_str(visible_lines(text), **options)
