"""Settings of the documentation site: ``make docs``."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))
sys.path.insert(0, str(HERE.parent))

from sktensor_dp import __version__ as release  # noqa: E402

project = "sktensor_dp"
author = "the authors of sktensor_dp"
copyright = "the authors of sktensor_dp, BSD 3-Clause"
version = release

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "repository_links",
    "proof_links",
    "result_tables",
    "thumbnails",
]
root_doc = "index"
# Links to other projects need their inventories, and these a network: INTERSPHINX=1.
if os.environ.get("INTERSPHINX") == "1" or os.environ.get("READTHEDOCS") == "True":
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
        "pandas": ("https://pandas.pydata.org/docs", None),
        "matplotlib": ("https://matplotlib.org/stable", None),
        "dask": ("https://docs.dask.org/en/stable", None),
    }
exclude_patterns = ["_build", "reference/generated/examples", "sg_execution_times.rst"]
templates_path = ["_templates"]
nitpicky = True
# Types of other projects are named in signatures, also where their inventories are not read.
nitpick_ignore_regex = [
    (r"py:.*", r"(numpy|scipy|sklearn|pandas|matplotlib|pathlib|collections|typing|dask)(\..*)?"),
]

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3

autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"
autodoc_inherit_docstrings = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
numpydoc_validation_checks: set[str] = set()
copybutton_exclude = ".linenos, .gp, .go"

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "subsection_order": [
        f"../examples/gallery/{name}" for name in ("texts", "ratings", "measurements", "privacy")
    ],
    "filename_pattern": r"plot_",
    "abort_on_example_error": True,
    # GALLERY=0 builds the pages of examples without running them.
    "plot_gallery": os.environ.get("GALLERY", "1") != "0",
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 5,
    "image_scrapers": ("thumbnails.scrape",),
    "doc_module": ("sktensor_dp",),
    "backreferences_dir": "reference/generated/examples",
    "reference_url": {"sktensor_dp": None},
}

html_context = {"default_mode": "auto"}
html_theme = "pydata_sphinx_theme"
html_title = "sktensor_dp"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["site.css"]
html_js_files = [("tables.js", {"defer": "defer"})]
html_extra_path = ["llms.txt"]
html_baseurl = os.environ.get("READTHEDOCS_CANONICAL_URL", "")
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    "header_links_before_dropdown": 8,
    "navigation_with_keys": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
# Beside other versions: several_versions.py.
if version_of_site := os.environ.get("SITE_VERSION"):
    html_theme_options |= {
        "navbar_start": ["navbar-logo", "version-switcher"],
        "switcher": {"json_url": "/versions.json", "version_match": version_of_site},
        "check_switcher": False,
    }
html_sidebars = {"index": []}
