"""A term of the trade is explained, or linked to what explains it, where a page first uses it."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
FOLDERS = ("start", "tutorials", "privacy", "how_to")
GUIDE = re.findall(r"\]\((\w+)\.md\)", (DOCS / "guide.md").read_text("utf-8"))
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


def is_explained(text: str, place: int) -> bool:
    """Whether what stands at a place is a link to what explains it, or emphasised: defined here."""
    before = text[:place]
    opened = before.rfind("[")
    link = re.match(r"\[[^\]]*\]\([^)]*\)", text[opened:]) if opened >= 0 else None
    if link and opened + link.end() > place:
        return True
    return bool(re.search(r"\*[^*\n]*$", before) and before.count("*") % 2)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_terms_are_explained_where_they_first_occur(page: Path) -> None:
    text = prose(page)
    unexplained = []
    for term, entry in TERMS.items():
        for found in re.finditer(term, text, re.IGNORECASE):
            inside_code = text[: found.start()].count("`") % 2 and not found[0].startswith("`")
            inside_target = re.search(r"\]\([^)]*$", text[: found.start()])
            if inside_code or inside_target:
                continue
            if not is_explained(text, found.start()):
                unexplained.append(f"{found[0]}: link to reference/glossary.md#{entry}")
            break
    assert not unexplained, f"{page.name} does not explain {unexplained}"


def test_the_glossary_has_every_term() -> None:
    glossary = (DOCS / "reference" / "glossary.md").read_text(encoding="utf-8")
    assert all(f"({entry})=" in glossary for entry in TERMS.values())
