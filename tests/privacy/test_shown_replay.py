"""What is shown of topics follows from what was released: words, intervals, tables, pages."""

import numpy as np
import pytest
import replaying
from small_corpora import counts

from sktensor_dp import PrivateSpectralLDA
from sktensor_dp.topic_page import write_topic_page

NAMES = [f"word{column}" for column in range(20)]
pytestmark = pytest.mark.filterwarnings("ignore")


def shown(model, folder):
    """All that a fitted model shows to people, as text and numbers."""
    page = write_topic_page(folder / "page.html", model=model, feature_names=NAMES)
    table = model.topic_table(NAMES)
    values = [model.components_interval(), model.shares_interval(0.5), model.below_noise()]
    # To people of the caller's, who need not be of the fit.
    values += model.recommend(counts(5, 20, seed=3), 4)
    return (
        repr(model.privacy_report_), model.privacy_report_._repr_html_(),
        page.read_text(encoding="utf-8"), table.to_csv(), model.top_words(5, NAMES, relevance=0.3),
        model.suggest_n_components(), repr(model.to_pyldavis(NAMES)),
        [np.asarray(value).tobytes() for value in values],
    )  # fmt: skip


def fit(estimator, X):
    return estimator.fit(X)


def fit_in_batches(estimator, X):
    return estimator.partial_fit(X[:150]).partial_fit(X[150:])


@pytest.mark.parametrize("way", [fit, fit_in_batches])
@pytest.mark.parametrize(
    "options",
    [{"epsilon": 4.0}, {"epsilon": 500.0}, {"perturbation": "moment_tensor"}, {"delta": 0}],
    ids=str,
)
def test_what_is_shown_follows_from_releases(options, way, tmp_path):
    X, other = counts(300, 20, seed=1), counts(300, 20, seed=2)[:, ::-1]
    models = []

    def build():
        return PrivateSpectralLDA(3, random_state=0, **options)

    def kept(estimator, data):
        models.append(way(estimator, data))
        return models[-1]

    replaying.replay(build, kept, X, other)
    first, second = (shown(model, tmp_path) for model in models)
    assert first == second
