"""The installed package without extras: one fit of each kind, a file, a statement.

``python smoke.py`` in an environment that has the wheel and what it depends on, nothing else.
"""

import importlib.util
import tempfile
import warnings
from pathlib import Path

import numpy as np

import sktensor_dp
from sktensor_dp import (
    NotEnoughDataWarning,
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
    load_statement,
)

# None of the extras: a fit must not need them.
EXTRAS = ("pandas", "matplotlib", "pytest", "dask", "polars")


def main() -> None:
    """Fit, save, load, check."""
    assert not [name for name in EXTRAS if importlib.util.find_spec(name)]
    warnings.simplefilter("ignore", NotEnoughDataWarning)
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.0, (20_000, 8))
    topics = PrivateSpectralLDA(2).fit(counts)
    assert np.allclose(topics.transform(counts[:5]).sum(axis=1), 1)
    PrivateTensorPowerMethod(2, data_norm=3.0).fit(rng.standard_normal((5_000, 4)))
    cells = np.argwhere(np.ones((20, 20)))
    for completion in (PrivateCPCompletion, PrivateTuckerCompletion):
        model = completion(1, bounds=(0, 1)).fit(cells, rng.random(len(cells)))
        assert model.predict(cells).shape == (len(cells),)
    PrivateCountVectorizer().fit(["one text with words"] * 5_000)
    statement = topics.privacy_report_.to_json()
    assert load_statement(statement).epsilon == topics.privacy_report_.epsilon
    with tempfile.TemporaryDirectory() as folder:
        topics.save(path := Path(folder, "topics.model"))
        again = PrivateSpectralLDA.load(path)
    assert np.array_equal(again.components_, topics.components_)
    print("sktensor_dp", sktensor_dp.__version__, "works")


if __name__ == "__main__":
    main()
