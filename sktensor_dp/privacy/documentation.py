"""Where the documentation is, for pages in a notebook to link to."""

import os
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata

# A site of one's own: what `make docs` built, served or as a file.
VARIABLE = "SKTENSOR_DP_DOCS"


def link_to(page: str) -> str:
    """Address of a page of the documentation; empty where no site is known."""
    site = os.environ.get(VARIABLE) or _published_site()
    return f"{site.rstrip('/')}/{page}" if site and page else ""


@cache
def _published_site() -> str:
    """Address that the installed package names as its documentation."""
    try:
        addresses = metadata("sktensor-dp").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    named = dict(address.split(", ", 1) for address in addresses)
    return named.get("Documentation", "")
