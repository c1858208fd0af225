"""Sparse matrices or arrays, as ``sparse_interface`` of scikit-learn 1.9 asks."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.pipeline import make_pipeline

from sktensor_dp import PrivateCountVectorizer, PrivateSpectralLDA, unsafe_seeded_noise
from sktensor_dp.datasets import open_texts

KINDS = {"spmatrix": sp.csr_matrix, "sparray": sp.csr_array}
PETS = ["Cats chase mice, and more mice!", "Dogs chase cats.", "The cats; the dogs"] * 400

pytestmark = [
    pytest.mark.skipif(
        "sparse_interface" not in sklearn.get_config(),
        reason="scikit-learn before 1.9 has no sparse_interface",
    ),
    pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
]


@pytest.mark.parametrize("asked", KINDS)
def test_counts_are_of_the_kind_that_is_asked_for(asked, tmp_path):
    (tmp_path / "pets.csv").write_text("text\n" + "\n".join(f'"{pet}"' for pet in PETS))
    vectorizer = PrivateCountVectorizer(epsilon=np.inf)
    with sklearn.config_context(sparse_interface=asked):
        fitted = vectorizer.fit_transform(PETS)
        again = vectorizer.transform(PETS)
        read = list(vectorizer.transform(open_texts(tmp_path / "pets.csv", "text")))
    assert {type(fitted), type(again), *map(type, read)} == {KINDS[asked]}
    assert (fitted != again).nnz == 0
    assert sum(part.shape[0] for part in read) == len(PETS)


def test_topics_of_either_kind_are_the_same():
    found = {}
    for asked in KINDS:
        pipeline = make_pipeline(PrivateCountVectorizer(), PrivateSpectralLDA(2))
        with sklearn.config_context(sparse_interface=asked), unsafe_seeded_noise(0):
            shares = pipeline.fit_transform(PETS)
        found[asked] = shares, pipeline[-1].components_, pipeline.transform(PETS)
    # Products of the two kinds may add up in another order.
    for one, other in zip(*found.values(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
