"""Thumbnails of the gallery, drawn at the size at which they are shown.

A figure that is scaled down to a card has letters of three points. So the first figure of an
example is drawn a second time, small and without legends, and replaces the thumbnail. Of a figure
of several panels the first one is drawn.
"""

import pickle
import shutil
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sphinx.application import Sphinx
from sphinx_gallery.scrapers import matplotlib_scraper

WIDTH, HEIGHT = 3.3, 2.3  # inches of a card, at 96 pixels each
MANY = 9  # panels that make one picture together
SMALL = "_small.png"


def draw_small(figure: Figure, path: Path) -> None:
    """Save a copy of a figure, or of its first panel, at the size of a card."""
    figure = pickle.loads(pickle.dumps(figure))
    panels, many = figure.axes, MANY > len(figure.axes) > 1
    for legend in [panel.get_legend() for panel in panels if panel.get_legend()] + figure.legends:
        legend.remove()
    if many:
        first, last = panels[0], panels[-1]
        first.tick_params(labelbottom=True, labelleft=True)
        for axis in ("xlabel", "ylabel"):
            if not first.properties()[axis]:
                first.set(**{axis: last.properties()[axis]})
        for panel in panels[1:]:
            panel.remove()
        for text in (figure.texts, figure._suptitle, figure._supxlabel, figure._supylabel):
            for one in text if isinstance(text, list) else filter(None, [text]):
                one.set_visible(False)
        first.set_subplotspec(figure.add_gridspec(1, 1)[0, 0])
        figure.set_layout_engine("constrained")
    figure.set_size_inches(WIDTH, HEIGHT)
    figure.draw_without_rendering()
    for panel in figure.axes:
        thin_labels(panel)
    figure.savefig(path, dpi=192, bbox_inches="tight")
    plt.close(figure)


def thin_labels(panel: Axes) -> None:
    """Leave out every other number below a panel until none touches the next."""
    labels = [label for label in panel.get_xticklabels() if label.get_text()]
    while any(
        one.get_window_extent().x1 > other.get_window_extent().x0 - 2
        for one, other in pairwise(labels)
    ):
        for label in labels[1::2]:
            label.set_visible(False)
        labels = labels[::2]


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
