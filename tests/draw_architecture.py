"""The picture and the table of docs/architecture, made from the imports of the package.

Run as a program, it writes both anew: ``python tests/draw_architecture.py``.
"""

import ast
import re
from pathlib import Path

from test_architecture import LAYERS, PACKAGE, imports

DOCS = Path(__file__).parents[1] / "docs"
PICTURE, PAGE = DOCS / "architecture.svg", DOCS / "architecture.md"
TABLE = re.compile(r"(?<=<!-- made from the code -->\n\n).*?(?=\n?<!-- end -->)", re.DOTALL)
WIDTH, HEIGHT, APART, MARGIN = 128, 34, 12, 90

Imports = dict[str, set[str]]


def picture() -> str:
    """Layers as rows of boxes, the top one first."""
    across = MARGIN + max(map(len, LAYERS)) // 2 * (WIDTH + APART)
    lines, y = [], APART
    for number, layer in enumerate(LAYERS):
        rows = [layer[:6], layer[6:]] if len(layer) > 6 else [layer]
        depth = len(rows) * (HEIGHT + APART)
        shade = "#f4f7fa" if number % 2 else "#fff"
        lines += [
            f'<rect y="{y - APART // 2}" width="100%" height="{depth}" fill="{shade}"/>',
            f'<text x="{APART}" y="{y + 22}" fill="#456">layer {len(LAYERS) - number}</text>',
        ]
        for row in rows:
            for column, package in enumerate(row):
                x = MARGIN + column * (WIDTH + APART)
                lines += [
                    f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5" '
                    f'fill="#e3ebf3" stroke="#456"/><text x="{x + WIDTH // 2}" y="{y + 22}" '
                    f'text-anchor="middle">{package}</text>'
                ]
            y += HEIGHT + APART
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across} {y}" '
        'font-family="sans-serif" font-size="14">\n<title>Layers of sktensor_dp</title>\n'
        '<rect width="100%" height="100%" fill="#fff"/>'
    )
    return "\n".join([head, *lines, "</svg>\n"])


def purpose(package: str) -> str:
    """First line of the docstring of a module or package."""
    folder = PACKAGE / package / "__init__.py"
    file = folder if folder.exists() else PACKAGE / f"{package}.py"
    text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return text.split("\n")[0].replace("``", "`").rstrip(".")


def table(found: Imports) -> str:
    """Packages layer by layer, and the number of their imports."""
    order = ["__init__", *(package for layer in LAYERS for package in layer)]
    layer_of = {package: len(LAYERS) - n for n, layer in enumerate(LAYERS) for package in layer}
    lines = ["| layer | package | what it is |", "| --- | --- | --- |"]
    for package in order:
        lines.append(f"| {layer_of.get(package, 'root')} | `{package}` | {purpose(package)} |")
    count = sum(map(len, found.values()))
    return "\n".join([*lines, "", f"{len(found)} packages, {count} imports."])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    page, made = PAGE.read_text(encoding="utf-8"), table(imports()) + "\n"
    PAGE.write_text(TABLE.sub(lambda _: made, page), encoding="utf-8")
