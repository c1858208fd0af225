"""Words of a text: its composed form, and the pattern by which it is split."""

import re
import unicodedata
from functools import cache
from typing import Any

SOFT_HYPHEN = "\u00ad"  # where a word may be divided at the end of a line


def composed(text: Any) -> Any:
    """Text in Unicode's composed form (NFC), without soft hyphens; other objects as they are."""
    if not isinstance(text, str):
        return text
    return unicodedata.normalize("NFC", text).replace(SOFT_HYPHEN, "")


@cache
def word_pattern() -> re.Pattern[str]:
    r"""Pattern of words of two characters or more, of letters, digits and ``_`` with their marks.

    To Python's ``\w`` words end at combining marks, such as vowel signs of Hindi and Thai, and at
    joiners. In texts without these it finds what scikit-learn's default pattern does.
    """
    variants_of_emoji = range(0xFE00, 0xFE10)
    characters = (chr(i) for i in range(0x300, 0x20000) if i not in variants_of_emoji)
    marks = "".join(one for one in characters if unicodedata.category(one) in ("Mn", "Mc"))
    # The lookahead is for speed: most words end at a blank.
    return re.compile(rf"\w(?:\w+|(?![\0-\u02ff])[{marks}\u200c\u200d]+)+")
