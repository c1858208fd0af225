"""Composed form of texts and words, and texts that UTF-8 can encode."""

import unicodedata
from typing import Any

SOFT_HYPHEN = "\u00ad"  # where a word may be divided at the end of a line


def composed(text: Any) -> Any:
    """Text in Unicode's composed form (NFC), without soft hyphens; other objects as they are."""
    if not isinstance(text, str):
        return text
    return unicodedata.normalize("NFC", text).replace(SOFT_HYPHEN, "")


def encodable(text: str) -> str:
    """Copy of `text` with characters that UTF-8 cannot encode (lone surrogates) replaced by "?"."""
    return text.encode("utf-8", "replace").decode()
