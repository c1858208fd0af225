"""A model that a search of persons adopted goes on as a stream of persons."""

import warnings

import numpy as np
import pytest

from sktensor_dp import PrivateSearchCV, PrivateTensorPowerMethod


def test_the_report_of_a_search_of_persons_goes_on_with_persons(seed):
    rng = np.random.default_rng(seed)
    X, groups = rng.standard_normal((200, 3)), rng.permutation(np.arange(200) % 80)
    model = PrivateTensorPowerMethod(
        1, perturbation="stream", data_norm=2.0, n_restarts=2, max_iter=1
    )
    search = PrivateSearchCV(
        model, {"n_restarts": [1, 2]}, score_bounds=(-1.0, 1.0), n_trials=2, epsilon=1.0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # too little data
        best = search.fit(X, groups=groups).best_estimator_
        with pytest.raises(ValueError, match="must come with groups, or none"):
            best.partial_fit(X)
        best.partial_fit(X, groups=groups)
    report = best.privacy_report_
    assert (report.unit, report.n_units) == ("group of samples", 160)
    assert "disjoint" in report.notes[-1]
    assert search.privacy_report_.n_units == 80
