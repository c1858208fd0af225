"""The picture and the table of docs/architecture, made from the imports of the package.

Run as a program, it writes both anew: ``python tests/draw_architecture.py``.
"""

import re
from pathlib import Path

from test_architecture import FLOORS, arrows

DOCS = Path(__file__).parents[1] / "docs"
PICTURE, PAGE = DOCS / "architecture.svg", DOCS / "architecture.md"
TABLE = re.compile(r"(?<=<!-- made from the code -->\n\n).*?(?=\n?<!-- end -->)", re.DOTALL)
WIDTH, HEIGHT, APART, FLOOR = 128, 34, 12, 92

Arrows = dict[str, set[str]]


def rooms_of(found: Arrows) -> list[list[str]]:
    """Floors with the rooms that import or are imported: the others stand alone."""
    joined = {room for room, others in found.items() if others}.union(*found.values())
    floors = [[room for room in floor if room in joined] for floor in FLOORS]
    return [floor for floor in floors if floor]


def without_detours(found: Arrows) -> Arrows:
    """Arrows that no way over other rooms replaces."""

    def reached(room: str) -> set[str]:
        return found[room].union(*(reached(other) for other in found[room]))

    return {
        room: others - set().union(*(reached(other) for other in others))
        for room, others in found.items()
    }


def way(start: tuple[int, int], end: tuple[int, int]) -> str:
    """Straight to the next floor; to others around the rooms between, into the side."""
    (x, y), (to_x, to_y) = start, end
    if to_y - y == FLOOR:
        return f"M{x + WIDTH // 2} {y + HEIGHT} {to_x + WIDTH // 2} {to_y}"
    right = x > to_x
    side, aside = to_x + WIDTH * right, to_x + (WIDTH + 80 if right else -80)
    to_y += HEIGHT // 2
    if x == to_x:
        return f"M{x} {y + HEIGHT // 2}C{aside} {y + FLOOR} {aside} {to_y} {side} {to_y}"
    down = y + 2 * FLOOR // 3 + HEIGHT
    return f"M{x + WIDTH // 2} {y + HEIGHT}C{x + WIDTH // 2} {down} {aside} {to_y} {side} {to_y}"


def picture(found: Arrows) -> str:
    """The house as SVG; the root package, which gathers names, is left out."""
    inside = {room: others for room, others in found.items() if room != "__init__"}
    floors = rooms_of(inside)
    across = max(map(len, floors)) * (WIDTH + APART) + APART
    places = {
        room: (
            (across - len(floor) * (WIDTH + APART) + APART) // 2 + column * (WIDTH + APART),
            APART + row * FLOOR,
        )
        for row, floor in enumerate(floors)
        for column, room in enumerate(floor)
    }
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across} '
        f'{len(floors) * FLOOR - FLOOR + HEIGHT + 2 * APART}" font-family="sans-serif" '
        'font-size="14" text-anchor="middle">',
        "<title>Rooms of sktensor_dp and which of them imports which</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="#456"/></marker></defs>',
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    direct = without_detours(inside)
    for room, (x, y) in places.items():
        for other in sorted(direct[room]):
            course = way((x, y), places[other])
            lines.append(f'<path d="{course}" fill="none" stroke="#456" marker-end="url(#tip)"/>')
    for room, (x, y) in places.items():
        lines.append(
            f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="#eef3f8" '
            f'stroke="#456"/><text x="{x + WIDTH // 2}" y="{y + 22}">{room}</text>'
        )
    return "\n".join([*lines, "</svg>\n"])


def table(found: Arrows) -> str:
    """Every arrow, floor by floor, with their number."""
    order = ["__init__", *(room for floor in FLOORS for room in floor)]
    lines = ["| floor | room | imports from |", "| --- | --- | --- |"]
    floor_of = {room: len(FLOORS) - n for n, floor in enumerate(FLOORS) for room in floor}
    for room in order:
        others = ", ".join(sorted(found[room], key=order.index)) or "none of them"
        lines.append(f"| {floor_of.get(room, 'root')} | `{room}` | {others} |")
    count = sum(map(len, found.values()))
    return "\n".join([*lines, "", f"{len(found)} rooms, {count} arrows."])


if __name__ == "__main__":
    rooms = arrows()
    PICTURE.write_text(picture(rooms), encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLE.sub(lambda _: table(rooms) + "\n", page), encoding="utf-8")
