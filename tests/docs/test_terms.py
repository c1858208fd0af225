"""A term of the trade is explained, or linked to what explains it, where a page first uses it."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
FOLDERS = ("start", "tutorials", "privacy", "how_to")
GUIDE = re.findall(r"^(\w+)$", (DOCS / "guide.md").read_text("utf-8"), re.MULTILINE)
PAGES = [
    *sorted(page for folder in FOLDERS for page in (DOCS / folder).glob("*.md")),
    *(DOCS / f"{name}.md" for name in GUIDE),
]
# A term as it stands on pages, and its place in the glossary.
TERMS = {
    r"releases?\b|released": "release",
    r"`mu`|\bmu\b": "mu",
    r"custodian": "custodian",
    r"sensitivit(?:y|ies)": "sensitivity",
    r"neighbours\b": "neighbours",
    r"post-processing": "post-processing",
    r"whiten\w*": "whitening",
    r"moments?\b": "moment",
    r"clip(?:s|ped|ping)?\b": "clip",
    r"ledger": "accountant",
}


def prose(page: Path) -> str:
    """Text without programs, comments and headings, in which terms are no sentences."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    return re.sub(r"^(#|    ).*$", "", text, flags=re.MULTILINE)


def is_no_use(before: str, found: str) -> bool:
    """Whether what stands after some text is code, or the target of a link."""
    inside_code = before.count("`") % 2 and not found.startswith("`")
    return bool(inside_code or re.search(r"\]\([^)]*$", before))


def is_explained(text: str, place: int) -> bool:
    """Whether what stands at a place is a link to what explains it, or emphasised: defined here."""
    before = text[:place]
    opened = before.rfind("[")
    link = re.match(r"\[[^\]]*\]\([^)]*\)", text[opened:]) if opened >= 0 else None
    if link and opened + link.end() > place:
        return True
    return bool(re.search(r"\*[^*\n]*$", before) and before.count("*") % 2)


def test_terms_are_explained_where_they_first_occur() -> None:
    unexplained = []
    for page in PAGES:
        text = prose(page)
        for term, entry in TERMS.items():
            uses = (use for use in re.finditer(term, text, re.IGNORECASE)
                    if not is_no_use(text[: use.start()], use[0]))  # fmt: skip
            first = next(uses, None)
            if first and not is_explained(text, first.start()):
                link = f"reference/glossary.md#{entry}"
                unexplained.append(f"{page.name}: {first[0]}: link to {link}")
    assert unexplained == []


def test_the_glossary_has_every_term() -> None:
    glossary = (DOCS / "reference" / "glossary.md").read_text(encoding="utf-8")
    assert all(f"({entry})=" in glossary for entry in TERMS.values())
