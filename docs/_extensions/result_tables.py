"""The directive ``results``: a table of measured numbers from the file that its benchmark writes.

The last column of a file, ``source``, names the command and the seeds; it becomes the caption.
The option ``data`` shows the rows of one group, whose name is their first cell, without it.
"""

import csv
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Results(SphinxDirective):
    """Table of a file of results, with its source as the caption."""

    required_arguments = 1
    option_spec = {"data": directives.unchanged}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """Rows of the file, without the column that says where they come from."""
        _, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(path)
        header, *rows = csv.reader(Path(path).read_text(encoding="utf-8").splitlines())
        sources: dict[str, None] = {}
        if header[-1] == "source":
            sources = dict.fromkeys(row[-1] for row in rows)
            header, rows = header[:-1], [row[:-1] for row in rows]
        if "data" in self.options:
            rows = [row[1:] for row in rows if row[0] == self.options["data"]]
            header = header[1:]
        table = nodes.table(classes=["results"])
        group = nodes.tgroup(cols=len(header))
        group += [nodes.colspec(colwidth=1) for _ in header]
        head, body = nodes.thead(), nodes.tbody()
        head += self._row(header)
        body += [self._row(row) for row in rows]
        group += [head, body]
        table += group
        caption = nodes.paragraph(classes=["source"])
        for place, source in enumerate(sources):
            command, colon, how = source.partition(":")
            caption += [nodes.Text("; " * bool(place)), nodes.literal(text=command)]
            caption += nodes.Text(colon + how)
        return [table, caption]

    def _row(self, cells: list[str]) -> nodes.row:
        row = nodes.row()
        for cell in cells:
            entry = nodes.entry()
            self.state.nested_parse(StringList([cell], "results"), self.content_offset, entry)
            row += entry
        return row


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("results", Results)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
