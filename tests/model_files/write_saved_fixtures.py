"""Writes model files and pickles for the tests that what was saved before still loads.

    python tests/model_files/write_saved_fixtures.py FILES PICKLES

The model files of a format can be written anew only by a version of the library that still
writes it: those in ``v1`` were made before format 2 existed, at commit 2d3b3b2. The
pickles are of the same fits, so that both must say the same. They hold paths of private
modules as these were then.
"""

import pickle
import sys
import warnings
from pathlib import Path

from small_completions import SLICE, X0, Y0, build
from small_models import COUNTS, fitted
from small_searches import mixtures, topics

from sktensor_dp import PrivateCountVectorizer, PrivateSpectralLDA, PrivateTensorPowerMethod


def without_files():
    """What can be pickled and has no model file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield "search-topics", topics(n_trials=2).fit(COUNTS)
        candidates = {"n_components": [2, 3]}
        yield "search-components", mixtures(candidates, n_trials=2).fit(COUNTS[:, :4])
        split = PrivateCountVectorizer(vocabulary=["a"], tokenizer=str.split, token_pattern=None)
        yield "vocabulary-split", split.fit(["a b"])
        slices = build(**SLICE, max_iter=1, epsilon=50.0).fit(X0, Y0)
        yield "units", slices.fold_in(X0[:60], Y0[:60])
        yield "forecast-topics", PrivateSpectralLDA(2).forecast(1000, 50)
        yield "forecast-components", PrivateTensorPowerMethod(2, data_norm=1.0).forecast(1000, 5)
        yield "forecast-completion", build().forecast(1000, (9, 8, 6))


def write(files: Path, pickles: Path) -> None:
    """One file of each small model."""
    for folder in (files, pickles):
        folder.mkdir(parents=True, exist_ok=True)
    for name, model in fitted():
        model.save(files / f"{name}.model")
        (pickles / f"{name}.pickle").write_bytes(pickle.dumps(model, protocol=4))
    for name, value in without_files():
        (pickles / f"{name}.pickle").write_bytes(pickle.dumps(value, protocol=4))


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
