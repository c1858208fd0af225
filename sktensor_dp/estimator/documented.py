"""Where an estimator is documented: scikit-learn's diagrams link there."""

from sktensor_dp.privacy.tables import link_to


class Documented:
    """The attributes by which scikit-learn lets other packages name their documentation."""

    _doc_link_module = "sktensor_dp"
    _doc_link_template = "{address}"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        return {"address": link_to(f"reference/generated/sktensor_dp.{type(self).__name__}.html")}
