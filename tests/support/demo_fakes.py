"""Steps that the demo can run in no time, and a file of texts."""

import importlib.util
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin

import sktensor_dp
from sktensor_dp.privacy.report import PrivacyReport, ReleaseRecord
from sktensor_dp.spectral_lda.readable import ReadableTopics

SCRIPT = Path(__file__).parents[2] / "examples" / "topics.py"
SECRET = "unmistakable"
RESULTS = {
    "budget.sqlite", "words.model", "topics.model", "topics.html", "topics.csv", "topic_words.csv",
}  # fmt: skip


def fake_report(step, n_samples, groups=None):
    row = ReleaseRecord(step + "_release", "a statistic", 0.1, 0.5, 0.2, 0.0, 0.0, 1, "gaussian")
    return PrivacyReport(
        1.0,
        1e-6,
        "document" if groups is None else "group of documents",
        "replace_one",
        n_samples if groups is None else len(set(groups)),
        False,
        (row,),
    )


class FakeCounts(TransformerMixin, BaseEstimator):
    def __init__(
        self, stop_words=None, max_features=None, *, epsilon=1.0, delta=1e-6, accountant=None,
        verbose=0,
    ):  # fmt: skip
        self.verbose = verbose
        self.stop_words = stop_words
        self.max_features = max_features
        self.epsilon = epsilon
        self.delta = delta
        self.accountant = accountant

    def fit(self, texts, y=None, groups=None):
        self.accountant.spend(self.epsilon / 10, 0)
        self.privacy_report_ = fake_report("counts", len(texts), groups)
        return self

    def transform(self, texts):
        return sparse.csr_array(np.ones((len(texts), 12), dtype=np.int64))

    def save(self, path):
        Path(path).write_bytes(b"the word list")

    def get_feature_names_out(self, input_features=None):
        return np.array([f"word{i}" for i in range(11)] + ["<script>"], dtype=object)


class FakeTopics(ReadableTopics, BaseEstimator):
    interrupt = False
    warns = False
    error = None
    components_std_ = topic_prior_std_ = coherence_ = spectrum_ = noise_edge_ = None

    def __init__(
        self, n_components=10, *, epsilon=1.0, delta=1e-6, accountant=None, random_state=None,
        verbose=0,
    ):  # fmt: skip
        self.verbose = verbose
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.accountant = accountant
        self.random_state = random_state

    def fit(self, X, y=None, groups=None):
        if self.interrupt:
            raise KeyboardInterrupt
        if self.error:
            raise self.error
        if self.warns:
            warnings.warn("a warning of the fit", UserWarning, stacklevel=2)
        self.accountant.spend(self.epsilon / 10, 0)
        rng = np.random.default_rng(0)
        self.n_components_ = min(self.n_components, 3)
        self.components_ = rng.dirichlet(np.ones(X.shape[1]), size=self.n_components_)
        self.topic_prior_ = np.arange(1.0, self.n_components_ + 1)
        self.n_features_in_ = X.shape[1]
        self.unigram_ = self.components_.mean(axis=0)
        self.privacy_report_ = fake_report("topics", X.shape[0], groups)
        return self

    def forecast(self, n_samples, n_features):
        return f"a forecast of {n_samples} by {n_features}"

    def transform(self, X):
        return np.tile(self.topic_prior_ / self.topic_prior_.sum(), (X.shape[0], 1))

    def save(self, path):
        Path(path).write_bytes(b"the topics")


def load_demo(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    spec = importlib.util.spec_from_file_location("demo_topics", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def use_fakes(monkeypatch):
    """Put fakes in the place of the steps; a test may set attributes of these two classes."""
    counts, topics = (type(kind.__name__, (kind,), {}) for kind in (FakeCounts, FakeTopics))
    monkeypatch.setattr(sktensor_dp, "PrivateCountVectorizer", counts, raising=False)
    monkeypatch.setattr(sktensor_dp, "PrivateSpectralLDA", topics, raising=False)
    monkeypatch.setattr("sktensor_dp.datasets.load_docstrings", lambda: ["a text"] * 5)
    monkeypatch.setattr(sktensor_dp, "__version__", "0.0", raising=False)
    return SimpleNamespace(counts=counts, topics=topics)


def write_texts(tmp_path):
    path = tmp_path / "reviews.csv"
    rows = "".join(f"{i},{SECRET} number {i}\n" for i in range(50))
    path.write_text("stars,review\n" + rows, encoding="utf-8")
    return path


def run(demo, tmp_path, *arguments):
    return demo.main([*map(str, arguments), "--output", str(tmp_path / "out")])


def folder_of(tmp_path):
    """Results by name; the ledger's journal is empty between charges."""
    return {
        path.name: path
        for path in (tmp_path / "out").iterdir()
        if path.name != "budget.sqlite-journal"
    }
