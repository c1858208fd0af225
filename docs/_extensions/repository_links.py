"""Links from pages to files of the repository that are no pages of the site.

A module of the package leads to its highlighted source, the changelog and the checklists to
their pages, and the folder of proofs to its list. Other files (tests, benchmarks) have no page:
their names are shown as they are.
"""

from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

PAGES = {"CONTRIBUTING": "contributing", "CHANGELOG": "changelog", "docs/proofs": "proofs/README"}
HIGHLIGHTED = "sktensor_dp/"


def _name(app: Sphinx, target: str, page: str) -> str | None:
    """Path from the repository's root, for what is there and no page of the site."""
    root = Path(app.srcdir).resolve().parent
    for start in (Path(app.srcdir, page).parent, Path(app.srcdir)):
        path = (start / target).resolve()
        if path.is_relative_to(root):
            name = path.relative_to(root).as_posix()
            if name in PAGES or (path.exists() and not name.startswith("docs/")):
                return name
    return None


def _replace(app: Sphinx, doctree: nodes.document) -> None:
    page = app.env.docname
    links = [*doctree.findall(addnodes.pending_xref), *doctree.findall(addnodes.download_reference)]
    for link in links:
        target = str(link.get("reftarget", "")).split("#")[0]
        name = _name(app, target, page) if target and link.get("refdomain") != "py" else None
        if name is None:
            continue
        if name in PAGES:
            uri = app.builder.get_relative_uri(page, PAGES[name])
        elif name.startswith(HIGHLIGHTED) and name.endswith(".py"):
            module = name.removesuffix(".py").removesuffix("/__init__")
            uri = app.builder.get_relative_uri(page, f"_modules/{module}")
        else:
            link.replace_self(link.children)
            continue
        link.replace_self(nodes.reference("", "", *link.children, refuri=uri, internal=True))


def setup(app: Sphinx) -> dict[str, bool]:
    """Replace links while a page is read."""
    app.connect("doctree-read", _replace)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
