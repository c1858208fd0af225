"""Docstrings name releases and pages of the repository; on the site these are links.

Also the directive ``catalogue``: a table of every release, with its query and its proof,
read from the catalogue of the package itself.
"""

import re
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from sktensor_dp.privacy.catalogue import CATALOGUE

RELEASE = re.compile(r"``(" + "|".join(sorted(CATALOGUE, key=len, reverse=True)) + r")``")
# Plain text in docstrings that reStructuredText would take for its own: |x| and n_components_,.
PLAIN = re.compile(r"``[^`]*``|(\\?\|)|(?<=\w)(_)(?=[,)])")
PAGE = re.compile(r"(?:``)?docs/([a-z_/]+)\.md(?:``)?")


def _escaped(found: re.Match[str]) -> str:
    mark = found[1] or found[2]
    return found[0] if mark is None or found[0].startswith("\\") else "\\" + mark


def _link(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    for place, line in enumerate(lines):
        linked = RELEASE.sub(r":doc:`\1 </proofs/\1>`", PLAIN.sub(_escaped, line))
        lines[place] = PAGE.sub(r":doc:`/\1`", linked)


class Catalogue(SphinxDirective):
    """A table of all releases."""

    def run(self) -> list[nodes.Node]:
        """Rows of the catalogue as a list table."""
        rows = [".. list-table::", "   :header-rows: 1", ""]
        cells = [("Release", "Unit's data", "What is released", "Query")]
        for name, entry in CATALOGUE.items():
            of = entry.query
            query = f"``{of.__module__}.{of.__name__}``"
            cells.append((f":doc:`{name} </proofs/{name}>`", of.family, of.description, query))
        for row in cells:
            rows += [
                f"   {'* -' if place == 0 else '  -'} {cell}" for place, cell in enumerate(row)
            ]
        holder = nodes.container()
        self.state.nested_parse(StringList(rows, "catalogue"), self.content_offset, holder)
        return list(holder.children)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect both."""
    app.connect("autodoc-process-docstring", _link)
    app.add_directive("catalogue", Catalogue)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
