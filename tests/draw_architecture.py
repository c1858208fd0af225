"""The picture and the table of docs/architecture, made from the imports of the package.

Run as a program, it writes both anew: ``python tests/draw_architecture.py``.
"""

import re
from pathlib import Path

from test_architecture import LAYERS, imports

DOCS = Path(__file__).parents[1] / "docs"
PICTURE, PAGE = DOCS / "architecture.svg", DOCS / "architecture.md"
TABLE = re.compile(r"(?<=<!-- made from the code -->\n\n).*?(?=\n?<!-- end -->)", re.DOTALL)
WIDTH, HEIGHT, APART, LAYER = 128, 34, 12, 92

Imports = dict[str, set[str]]


def packages_of(found: Imports) -> list[list[str]]:
    """Layers with the packages that import or are imported: the others stand alone."""
    joined = {package for package, others in found.items() if others}.union(*found.values())
    layers = [[package for package in layer if package in joined] for layer in LAYERS]
    return [layer for layer in layers if layer]


def without_detours(found: Imports) -> Imports:
    """Imports that no way over other packages replaces."""

    def reached(package: str) -> set[str]:
        return found[package].union(*(reached(other) for other in found[package]))

    return {
        package: others - set().union(*(reached(other) for other in others))
        for package, others in found.items()
    }


def way(start: tuple[int, int], end: tuple[int, int]) -> str:
    """Straight to the next layer; to others around the packages between, into the side."""
    (x, y), (to_x, to_y) = start, end
    if to_y - y == LAYER:
        return f"M{x + WIDTH // 2} {y + HEIGHT} {to_x + WIDTH // 2} {to_y}"
    right = x > to_x
    side, aside = to_x + WIDTH * right, to_x + (WIDTH + 80 if right else -80)
    to_y += HEIGHT // 2
    if x == to_x:
        return f"M{x} {y + HEIGHT // 2}C{aside} {y + LAYER} {aside} {to_y} {side} {to_y}"
    down = y + 2 * LAYER // 3 + HEIGHT
    return f"M{x + WIDTH // 2} {y + HEIGHT}C{x + WIDTH // 2} {down} {aside} {to_y} {side} {to_y}"


def picture(found: Imports) -> str:
    """Imports as SVG; the root package, which gathers names, is left out."""
    inside = {package: others for package, others in found.items() if package != "__init__"}
    layers = packages_of(inside)
    across = max(map(len, layers)) * (WIDTH + APART) + APART
    places = {
        package: (
            (across - len(layer) * (WIDTH + APART) + APART) // 2 + column * (WIDTH + APART),
            APART + row * LAYER,
        )
        for row, layer in enumerate(layers)
        for column, package in enumerate(layer)
    }
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across} '
        f'{len(layers) * LAYER - LAYER + HEIGHT + 2 * APART}" font-family="sans-serif" '
        'font-size="14" text-anchor="middle">',
        "<title>Packages of sktensor_dp and which of them imports which</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="#456"/></marker></defs>',
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    direct = without_detours(inside)
    for package, (x, y) in places.items():
        for other in sorted(direct[package]):
            course = way((x, y), places[other])
            lines.append(f'<path d="{course}" fill="none" stroke="#456" marker-end="url(#tip)"/>')
    for package, (x, y) in places.items():
        lines.append(
            f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="#eef3f8" '
            f'stroke="#456"/><text x="{x + WIDTH // 2}" y="{y + 22}">{package}</text>'
        )
    return "\n".join([*lines, "</svg>\n"])


def table(found: Imports) -> str:
    """Every import, layer by layer, with their number."""
    order = ["__init__", *(package for layer in LAYERS for package in layer)]
    lines = ["| layer | package | imports from |", "| --- | --- | --- |"]
    layer_of = {package: len(LAYERS) - n for n, layer in enumerate(LAYERS) for package in layer}
    for package in order:
        others = ", ".join(sorted(found[package], key=order.index)) or "none of them"
        lines.append(f"| {layer_of.get(package, 'root')} | `{package}` | {others} |")
    count = sum(map(len, found.values()))
    return "\n".join([*lines, "", f"{len(found)} packages, {count} imports."])


if __name__ == "__main__":
    packages = imports()
    PICTURE.write_text(picture(packages), encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLE.sub(lambda _: table(packages) + "\n", page), encoding="utf-8")
