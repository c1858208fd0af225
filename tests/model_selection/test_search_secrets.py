"""What a private search must not show beside its winner: caches, callbacks, warnings, rows."""

import abc
import logging
import random
import tempfile
import threading
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer

from sktensor_dp import PrivateSearchCV, PrivateTensorPowerMethod

ROWS = np.random.default_rng(0).uniform(0.5, 3, (600, 3))


def search(estimator, n_trials=6, **kwargs):
    names = [name for name in estimator.get_params() if name.endswith("data_norm")]
    kwargs = {"score_bounds": (-9, 0), "epsilon": 5.0, **kwargs}
    return PrivateSearchCV(estimator, {names[0]: [2.0, 4.0, 8.0]}, n_trials=n_trials, **kwargs)


def mixture():
    return PrivateTensorPowerMethod(2, moment="gaussian_mixture")


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
def test_losing_trials_are_not_cached(tmp_path):
    steps = [("a", Normalizer()), ("b", FunctionTransformer()), ("lda", mixture())]
    search(Pipeline(steps, memory=str(tmp_path))).fit(ROWS)
    assert not list(tmp_path.rglob("*.pkl"))


def test_callbacks_are_refused():
    estimator = make_pipeline(FunctionTransformer(), mixture())
    # What scikit-learn's set_callbacks leaves, and clone keeps.
    estimator._skl_callbacks = [object()]
    with pytest.raises(ValueError, match="callbacks"):
        search(estimator).fit(ROWS)


class Talkative:
    """A distribution that warns."""

    def rvs(self, random_state=None):
        warnings.warn("slow", UserWarning, stacklevel=2)
        return 4.0


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
def test_warnings_between_fits_do_not_count_trials():
    one = search(mixture())
    one.param_distributions = {"data_norm": Talkative()}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        one.fit(ROWS)
    assert not [told for told in caught if "slow" in str(told.message)]


def test_what_numpy_says_of_raw_rows_is_not_passed_on():
    rows = ROWS.copy()
    rows[0, 0] = 0.0
    logs = FunctionTransformer(lambda X: np.clip(np.log(X), -5, 5))
    one = search(make_pipeline(logs, mixture()), cv=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        one.fit(rows)
    assert not [told for told in caught if "divide" in str(told.message)]


def process_state():
    """What a process keeps and shows, except the traces that docs/security.md lists."""
    name, state, *place = np.random.get_state()  # noqa: NPY002
    return {
        "numpy's generator": (name, state.tolist(), place),
        "Python's generator": random.getstate(),
        "floating-point errors": np.geterr(),
        "scikit-learn": sklearn.get_config(),
        "filters": list(warnings.filters),
        "threads": (threading.active_count(), threading.Thread().name),
        "temporary files": tempfile.gettempdir(),
        "loggers": sorted(logging.root.manager.loggerDict),
        "abstract classes": abc.get_cache_token(),
    }


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
def test_no_trial_moves_what_the_process_keeps(n_trials_are):
    for trials in (3, 1, 8):
        n_trials_are(trials)
        before = process_state()
        search(mixture(), random_state=0).fit(ROWS)
        after = process_state()
        # Naming a thread counts it.
        first, second = (state.pop("threads") for state in (before, after))
        assert first[0] == second[0]
        assert int(second[1].split("-")[1]) == int(first[1].split("-")[1]) + 1
        assert trials == 3 or after == before  # what is imported or set up once, the first does
