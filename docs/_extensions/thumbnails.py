"""Thumbnails of the gallery, drawn at the size at which they are shown.

A figure that is scaled down to a card has letters of three points. So the first figure of an
example is drawn a second time, small and without legends, and replaces the thumbnail. Of a figure
of several panels the first one is shown.
"""

import shutil
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from sphinx.application import Sphinx
from sphinx_gallery.scrapers import matplotlib_scraper

WIDTH, HEIGHT = 3.3, 2.3  # inches of a card, at 96 pixels each
MANY = 9  # panels that make one picture together
SMALL = "_small.png"


def draw_small(figure: Figure, path: Path) -> None:
    """Save a figure, or its first panel, at the size of a card; leave the figure as it was."""
    size, panels = figure.get_size_inches(), figure.axes
    if 1 < len(panels) < MANY:
        figure.draw_without_rendering()
        box = panels[0].get_tightbbox().transformed(figure.dpi_scale_trans.inverted())
        figure.savefig(path, dpi=192, bbox_inches=box.padded(0.05))
        return
    legends = [panel.get_legend() for panel in panels if panel.get_legend()] + figure.legends
    for legend in legends:
        legend.set_visible(False)
    figure.set_size_inches(WIDTH, HEIGHT)
    figure.savefig(path, dpi=192, bbox_inches="tight")
    figure.set_size_inches(size)
    for legend in legends:
        legend.set_visible(True)


def scrape(block: tuple, variables: dict, settings: dict, **options: object) -> str:
    """Draw the first figure small, then let the gallery save it."""
    path = Path(variables["target_file"])
    if plt.get_fignums() and len(variables["image_path_iterator"]) == 0:
        small = path.parent / "images" / "thumb" / f"{path.stem}{SMALL}"
        small.parent.mkdir(parents=True, exist_ok=True)
        draw_small(plt.figure(plt.get_fignums()[0]), small)
    return matplotlib_scraper(block, variables, settings, **options)


def replace(app: Sphinx) -> None:
    """Put the small drawings where the gallery has put figures scaled down."""
    for small in (Path(app.srcdir) / "gallery").rglob(f"*{SMALL}"):
        name = small.name.removesuffix(SMALL)
        shutil.copy(small, small.with_name(f"sphx_glr_{name}_thumb.png"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Replace thumbnails when the gallery is written."""
    app.connect("builder-inited", replace, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
