"""Codes of languages: one for each language, however files and models write it."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1024)
def language_tag(code: str | None) -> str | None:
    """Return the standard tag of a language (BCP 47), or the code itself where there is none; None stays None.

    >>> [language_tag(code) for code in ("eng", "en", "pt_br", "Klingonese")]
    ['en', 'en', 'pt-BR', 'Klingonese']
    """
    if not code:
        return None
    from langcodes import standardize_tag
    from langcodes.tag_parser import LanguageTagError

    try:
        return standardize_tag(code)
    except LanguageTagError:
        return code
