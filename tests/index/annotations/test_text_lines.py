"""Lines of text that readers see: subtitles, and the newest speech, captions and text on screen."""

from __future__ import annotations

from kinodex.index.annotations import count_lines, shown_models
from kinodex.index.library import Library
from tests.support.libraries.random_library import SETTINGS, caption, fingerprint, made, spoken, write
from tests.support.screen_text.lines import Line, add_screen_text


def test_lines_are_those_of_the_newest_models_and_counts_agree(tmp_path):
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(library, made("aaaa", 20, 1, lines=((4.0, 5.0, "a subtitle"), (1.0, 2.0, "an earlier one"))))
    write(library, made("bbbb", 20, 2))
    for model in ("old", "new"):
        library.additions.add_captions({"aaaa": [caption(0, f"caption by {model}")]}, model)
        assert library.additions.complete("captions", model, {"aaaa": 1}, {}) == ()
        library.additions.add_speech({"aaaa": [spoken(3, f"said, heard by {model}")]}, model)
        assert library.additions.complete("speech", model, {"aaaa": 1}, {}) == ()
        add_screen_text(library, "aaaa", [Line(3.0, 4.0, f"SIGN {model}"), Line(8.0, 9.0, "EXIT")], model)
    lines = library.sentences.lines("aaaa")
    assert [(line.source, line.text, line.model) for line in lines] == [
        ("transcript", "an earlier one", None),
        ("transcript", "a subtitle", None),
        ("transcript", "said, heard by new", "new"),
        ("text", "SIGN new", "new"),
        ("text", "EXIT", "new"),
        ("caption", "caption by new", "new"),
    ]
    assert library.sentences.lines("bbbb") == []
    assert count_lines(library.tables, library.visible) == {
        ("aaaa", "transcript", None): 2,
        ("aaaa", "transcript", "new"): 1,
        ("aaaa", "text", "new"): 2,
        ("aaaa", "caption", "new"): 1,
    }
    assert shown_models(library.visible, "caption", ["aaaa", "bbbb"]) == {"aaaa": (None, "new"), "bbbb": (None,)}
