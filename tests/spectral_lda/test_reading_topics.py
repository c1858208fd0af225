"""Words, intervals and tables of fitted topics."""

import json
import math

import numpy as np
import pytest
from small_corpora import TOPICS, seeded_fit

from benchmarks import topic_intervals
from sktensor_dp import PrivateSpectralLDA, unsafe_seeded_noise

NAMES = [f"word{column}" for column in range(TOPICS.shape[1])]


@pytest.fixture(scope="module")
def model(comfortable):
    return seeded_fit(comfortable, doc_topic_prior=0)


def altered(model, **state):
    """The same model with other released values."""
    other = PrivateSpectralLDA(**model.get_params())
    other.__dict__.update(vars(model))
    other.__dict__.update(state)
    return other


def test_words_are_ranked_by_probability_unless_asked(model):
    order = np.argsort(-model.components_, axis=1, kind="stable")[:, :3]
    assert model.top_words(3, NAMES) == [[NAMES[word] for word in row] for row in order]
    assert model.top_words(3, NAMES, relevance=1) == model.top_words(3, NAMES)


def test_words_of_all_topics_step_back_where_lift_counts(model):
    topics = np.array([[0.6, 0.4, 0.0, 0.0], [0.6, 0.0, 0.4, 0.0]])
    state = {"components_": topics, "unigram_": topics.mean(axis=0) + 1e-9, "n_features_in_": 4}
    spoken = altered(model, components_std_=np.full((2, 4), 0.01), **state)
    names = ["said", "ship", "tax", "rare"]
    assert [row[0] for row in spoken.top_words(1, names)] == ["said", "said"]
    assert [row[0] for row in spoken.top_words(1, names, relevance=0.6)] == ["ship", "tax"]


def test_words_that_noise_could_have_put_there_do_not_lead(model):
    topics = np.array([[0.45, 0.5, 0.05]])
    state = {"components_": topics, "unigram_": np.array([0.5, 0.4999, 0.0001])}
    state["n_features_in_"] = 3
    names = ["said", "ship", "rare"]
    sure = altered(model, components_std_=np.full((1, 3), 0.001), **state)
    noisy = altered(model, components_std_=np.full((1, 3), 0.03), **state)
    for relevance in (0.0, 0.3, 0.6):
        assert sure.top_words(1, names, relevance=relevance) == [["rare"]]
        assert noisy.top_words(3, names, relevance=relevance)[0][-1] == "rare"


@pytest.mark.parametrize("relevance", [-0.1, 1.1, "much", True, math.nan])
def test_relevance_is_a_share(model, relevance):
    with pytest.raises(ValueError, match="relevance must be a number from 0 to 1"):
        model.top_words(3, NAMES, relevance=relevance)


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "3", None, True])
def test_numbers_of_words_are_whole(model, wrong):
    """A negative one would leave out the last words without a word of it."""
    for ask in (model.top_words, model.topic_table, model.to_pyldavis):
        with pytest.raises(ValueError, match="n_words must be an int >= 1"):
            ask(n_words=wrong)
    assert model.top_words(np.int64(2), NAMES, relevance=np.float32(1)) == model.top_words(2, NAMES)


def test_table_lists_topics_by_share_with_what_is_known_of_them(model):
    table = model.topic_table(NAMES, n_words=2)
    shares = model.topic_prior_ / model.topic_prior_.sum()
    assert table.index.tolist() == [1 + place for place in range(len(TOPICS))]
    assert table["share"].is_monotonic_decreasing
    assert np.allclose(shares[table["component"]], table["share"])
    assert (table["share_low"] < table["share"]).all()
    assert (table["share_high"] > table["share"]).all()
    words = model.top_words(2, NAMES)
    assert table["words"].tolist() == [" ".join(words[row]) for row in table["component"]]
    assert ((table["uncertainty"] > 0) & (table["uncertainty"] < 0.2)).all()
    assert (table["coherence"] < 0).all()
    assert not table["below_noise"].any()


def test_coherence_is_that_of_pairs(comfortable):
    """Without noise: pairs of tokens counted here, document by document."""
    exact = PrivateSpectralLDA(len(TOPICS), epsilon=math.inf, doc_topic_prior=0, random_state=0)
    exact.fit(comfortable)
    X = np.asarray(comfortable.todense() if hasattr(comfortable, "todense") else comfortable)
    lengths = X.sum(axis=1)
    scaled = X / np.sqrt(lengths * (lengths - 1))[:, None]
    pairs = (scaled.T @ scaled - np.diag((scaled / np.sqrt(lengths * (lengths - 1))[:, None])
                                         .sum(axis=0))) / len(X)  # fmt: skip
    own = (X / lengths[:, None]).mean(axis=0)
    for topic, found in zip(exact.components_, exact.coherence_, strict=True):
        top = np.argsort(-topic, kind="stable")[:10]
        logs = [
            math.log(max(pairs[top[i], top[j]], 1e-12) / max(own[top[j]], 1e-12))
            for i in range(len(top))
            for j in range(i)
        ]
        assert found == pytest.approx(np.mean(logs), rel=1e-6)


def test_intervals_hold_estimates_and_grow_with_their_level(model):
    narrow, wide = model.components_interval(0.5), model.components_interval(0.99)
    for (low, high), within in ((narrow, wide), (model.shares_interval(0.5), (0, 1))):
        assert (low <= high).all()
        assert (within[0] <= low).all()
        assert (high <= within[1]).all()
    assert (narrow[0] <= model.components_).all()
    assert (model.components_ <= narrow[1]).all()
    zero = model.components_interval(0)
    assert np.array_equal(*zero)
    assert np.array_equal(zero[0], model.components_)


def test_a_model_without_deviations_has_the_widest_intervals(model):
    unknown = altered(model)
    for name in ("components_std_", "topic_prior_std_", "coherence_", "spectrum_", "noise_edge_"):
        setattr(unknown, name, None)
    low, high = unknown.components_interval()
    assert not low.any()
    assert (high == 1).all()
    assert unknown.top_words(2, NAMES, relevance=0.5)
    assert unknown.topic_table(NAMES)["uncertainty"].isna().all()
    with pytest.raises(ValueError, match="suggest_n_components needs a released spectrum"):
        unknown.suggest_n_components()


def test_noise_is_known_without_noise(comfortable):
    exact = PrivateSpectralLDA(len(TOPICS), epsilon=math.inf, doc_topic_prior=0, random_state=0)
    exact.fit(comfortable)
    assert not exact.components_std_.any()
    assert np.array_equal(exact.components_interval()[0], exact.components_)


def test_what_is_shown_is_saved(model, tmp_path):
    model.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model")
    for name in ("components_std_", "topic_prior_std_", "coherence_", "spectrum_"):
        assert np.array_equal(getattr(model, name), getattr(loaded, name))
    assert loaded.noise_edge_ == model.noise_edge_


@pytest.mark.nightly
@pytest.mark.usefixtures("seeded_noise")
@pytest.mark.parametrize("name", list(topic_intervals.SHAPES)[1:6:2])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_intervals_hold_what_there_is_without_noise(name, epsilon, seed):
    """One fit: words move together, so that coverage varies by about .07 from fit to fit.

    The benchmark says that its mean over fits is between .85 and .95.
    """
    shape = topic_intervals.SHAPES[name]
    counts = topic_intervals.corpus(shape, seed)
    found = topic_intervals.fitted(shape, counts, epsilon)
    exact = topic_intervals.fitted(shape, counts, math.inf)
    covered = topic_intervals.cover(found, exact)
    assert covered.words > 0.6
    # Intervals that hold everything say nothing: half as wide, they hold clearly less.
    found.components_std_ = found.components_std_ / 4
    assert topic_intervals.cover(found, exact).words < 0.8 * covered.words
    assert covered.n_words >= 20


@pytest.mark.parametrize("asked", [6, 9])
def test_the_spectrum_says_how_many_topics_there_are(asked, seed):
    truth = np.kron(np.eye(4), np.full(10, 0.1))
    rng = np.random.default_rng(seed)
    X = rng.multinomial(20, truth[rng.integers(4, size=30_000)])
    with pytest.warns(), unsafe_seeded_noise(seed):
        found = PrivateSpectralLDA(asked, doc_topic_prior=0, random_state=0).fit(X)
    assert found.suggest_n_components() == 4
    assert len(found.spectrum_) > asked


def test_pyldavis_data_is_plain_and_adds_up(model):
    data = json.loads(json.dumps(model.to_pyldavis(NAMES, n_words=3)))
    assert sum(data["mdsDat"]["Freq"]) == pytest.approx(100)
    assert data["mdsDat"]["Freq"] == sorted(data["mdsDat"]["Freq"], reverse=True)
    assert len({len(column) for column in data["tinfo"].values()}) == 1
    assert set(data["token.table"]["Term"]) <= set(data["tinfo"]["Term"])
    default = [c for c in data["tinfo"]["Category"] if c == "Default"]
    assert len(default) == 3
