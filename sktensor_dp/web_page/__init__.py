"""HTML pages that load nothing, for topics and for officers."""

from sktensor_dp.web_page.page import page, template

__all__ = ["page", "template"]
