"""PrivateCountVectorizer: agreement with scikit-learn, privacy, errors, composition."""

import io
import math
import unicodedata
import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from scipy.special import ndtr
from sklearn.feature_extraction.text import CountVectorizer

from sktensor_dp import BudgetAccountant, PrivateCountVectorizer, unsafe_seeded_noise

pytestmark = pytest.mark.filterwarnings("ignore:noise is seeded")

PETS = ["Cats chase mice, and more mice!", "Dogs chase cats.", "The cats; the dogs"]
N_PETS = 1500
MANY = PETS * (N_PETS // 3)
# Document frequencies have noise of standard deviation 34 at epsilon 1, beside words from 50 texts.
small = partial(PrivateCountVectorizer, max_words_per_document=6, min_df=0)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lowercase": False},
        {"ngram_range": (1, 2)},
        {"analyzer": "char_wb", "ngram_range": (3, 4)},
        {"stop_words": "english"},
        {"binary": True, "dtype": np.float32},
        {"token_pattern": r"(?u)\b\w+\b"},
        {"strip_accents": "unicode"},
        {"analyzer": str.split},
        {"min_df": 2, "max_df": 0.5},
        {"min_df": 0.4},
        {"dtype": np.int8, "max_features": 5},
        {"vocabulary": ["mice", "cats", "dogs"], "lowercase": False},
    ],
)
def test_without_noise_it_is_count_vectorizer(options):
    documents = [*PETS, "", "a Café and a naïve cat", "mice mice mice"]
    ours = PrivateCountVectorizer(**options, epsilon=math.inf)
    theirs = CountVectorizer(**options)
    counts, expected = ours.fit_transform(documents), theirs.fit_transform(documents)
    assert ours.vocabulary_ == theirs.vocabulary_
    assert type(counts) is type(expected)
    assert (counts.dtype, counts.indices.dtype) == (expected.dtype, expected.indices.dtype)
    assert counts.has_canonical_format
    np.testing.assert_array_equal(counts.toarray(), expected.toarray())
    np.testing.assert_array_equal(ours.transform(documents).toarray(), expected.toarray())
    np.testing.assert_array_equal(ours.get_feature_names_out(), theirs.get_feature_names_out())
    if "vocabulary" in options:
        return  # nothing is released
    presence = CountVectorizer(**{**options, "binary": True}).fit(documents).transform(documents)
    np.testing.assert_array_equal(
        ours.document_frequencies_, np.asarray(presence.sum(axis=0)).ravel()
    )
    assert ours.threshold_ == 1.0
    assert math.isinf(ours.privacy_report_.epsilon)


def test_remains_of_contractions_and_addresses_are_english_stop_words():
    documents = ["Don't! The cats aren't at https://www.cats.org/index.htm, we've seen"] * 3
    words = PrivateCountVectorizer(stop_words="english", epsilon=math.inf).fit(documents)
    assert list(words.get_feature_names_out()) == ["cats", "index", "seen"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("अस्पताल में डॉक्टर, और माँ", ["अस्पताल", "और", "डॉक्टर", "माँ", "में"]),
        ("বাংলা ভাষা র\u200d্যাব", ["বাংলা", "ভাষা", "র\u200d্যাব"]),
        ("தமிழ் மொழி", ["தமிழ்", "மொழி"]),
        ("ผู้ป่วย ที่", ["ที่", "ผู้ป่วย"]),
        ("می\u200cخواهم کتاب", ["کتاب", "می\u200cخواهم"]),
        ("İstanbul", ["i\u0307stanbul"]),
        ("Überstunden ku\u0308ndigung ku\u0308n\u00addigung", ["kündigung", "überstunden"]),
        ("1\ufe0f\u20e3 x\ufe0f good ❤\ufe0f", ["good"]),
    ],
)
def test_words_end_neither_at_marks_nor_where_letters_are_decomposed(text, words, tmp_path):
    forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD")]
    for encoding in (str, str.encode):  # of texts, and of bytes
        found = PrivateCountVectorizer(epsilon=math.inf).fit(list(map(encoding, forms)))
        assert sorted(found.vocabulary_) == sorted(words)
        found.save(tmp_path / "words.model")
        again = PrivateCountVectorizer.load(tmp_path / "words.model")
        assert (again.transform(forms[:1]) != found.transform(forms[1:])).nnz == 0
    decomposed = [unicodedata.normalize("NFD", word) for word in words]
    without = PrivateCountVectorizer(epsilon=math.inf, stop_words=decomposed[1:])
    assert list(without.fit([*forms, words[0]]).vocabulary_) == words[:1]
    given = PrivateCountVectorizer(vocabulary=decomposed)
    for counts in (given.transform(forms), given.fit_transform(forms)):
        assert (counts.toarray() > 0).all()
    assert list(given.vocabulary_) == words
    if words != decomposed:
        with pytest.raises(ValueError, match="different words when composed"):
            PrivateCountVectorizer(vocabulary=[*words, *decomposed]).fit(forms)


def test_inputs_other_than_strings(tmp_path):
    expected = PrivateCountVectorizer(epsilon=math.inf).fit_transform(PETS).toarray()
    paths = [tmp_path / f"{i}.txt" for i in range(len(PETS))]
    for path, content in zip(paths, PETS, strict=True):
        path.write_text(content)
    analyze = CountVectorizer().build_analyzer()
    for documents, options in (
        (iter(PETS), {}),
        (np.array(PETS), {}),
        ([document.encode() for document in PETS], {}),
        (map(str, paths), {"input": "filename"}),
        ([io.StringIO(document) for document in PETS], {"input": "file"}),
        ([io.BytesIO(document.encode()) for document in PETS], {"input": "file"}),
        ([analyze(document) for document in PETS], {"analyzer": list}),
    ):
        counts = PrivateCountVectorizer(**options, epsilon=math.inf).fit_transform(documents)
        np.testing.assert_array_equal(counts.toarray(), expected)


def test_private_vocabulary_and_frequencies():
    vectorizer = small()
    counts, report = vectorizer.fit_transform(MANY), vectorizer.privacy_report_
    # Every word is in at least 500 documents, 20 standard deviations above any threshold.
    words = ["and", "cats", "chase", "dogs", "mice", "more", "the"]
    assert list(vectorizer.get_feature_names_out()) == words
    assert counts.shape == (N_PETS, 7)
    truth = np.array([500, 1500, 1000, 1000, 500, 500, 500])
    sigma = report.rows[-1].sigma * N_PETS
    assert sigma == pytest.approx(32.5, abs=0.1)  # of documents with up to 5 of the words
    difference = vectorizer.document_frequencies_ - truth
    assert np.abs(difference).max() < 7 * sigma
    assert (difference[truth < N_PETS] != 0).all()
    assert vectorizer.document_frequencies_.max() <= N_PETS
    assert 50 < vectorizer.threshold_ < 70
    assert f"about {vectorizer.threshold_:.0f} documents use half are kept, hard" in str(report)
    assert "no document holds over 6 words (repeats count once). Where many do" in str(report)
    assert "leaves out some commoner words too" in str(report)
    assert "a document counts for up to 5 words" in str(report)
    assert (report.unit, report.n_units) == ("document", N_PETS)
    assert report.epsilon == pytest.approx(1.0, rel=1e-6)
    recovered = vectorizer.inverse_transform(counts[:1])[0]
    assert set(recovered) == {"and", "cats", "chase", "mice", "more"}


def seeded(seed, vectorizer, *data, **options):
    with unsafe_seeded_noise(seed):
        return vectorizer.fit(*data, **options)


def test_pruning_looks_at_noisy_frequencies(seed):
    plain = seeded(seed, small(), MANY)
    names, noisy = plain.get_feature_names_out(), plain.document_frequencies_
    order = np.argsort(-noisy, kind="stable")
    top = seeded(seed, small(max_features=3), MANY)
    assert list(top.get_feature_names_out()) == sorted(names[order[:3]])
    middle = seeded(seed, small(min_df=0.5, max_df=1400), MANY)
    kept = (noisy >= 750) & (noisy <= 1400)
    assert list(middle.get_feature_names_out()) == list(names[kept])
    np.testing.assert_array_equal(middle.document_frequencies_, noisy[kept])
    # Words that all documents have are kept, however many each has.
    texts = [" ".join(f"w{i}" for i in range(300))] * 1000
    everywhere = seeded(seed, PrivateCountVectorizer(min_df=0.5, epsilon=10.0), texts)
    assert len(everywhere.vocabulary_) > 250


def test_frequencies_are_released_on_request_at_their_price(seed):
    plain = seeded(seed, small(min_df=1), MANY)
    assert not hasattr(plain, "document_frequencies_")
    names = [row.name for row in plain.privacy_report_.rows]
    assert names == ["word_buckets", "word_votes"]
    for options in ({"min_df": 0}, {"min_df": 2}, {"max_df": 0.99}, {"max_df": N_PETS}):
        report = seeded(seed, small(**{"min_df": 1, **options}), MANY).privacy_report_
        *words, histogram, frequencies = report.rows
        assert [histogram.name, frequencies.name] == ["norm_histogram", "document_frequencies"]
        whole = sum(row.mu**2 for row in report.rows)
        fractions = [row.mu**2 / whole for row in (histogram, frequencies)]
        assert fractions == pytest.approx([0.02, 0.18])
        assert [row.mu**2 / whole for row in words] == pytest.approx(
            [0.8 * row.mu**2 / whole for row in plain.privacy_report_.rows]
        )
    # The commonest words cost nothing: they show in the buckets.
    first = seeded(seed, small(min_df=1, max_features=3), MANY)
    assert first.privacy_report_.rows == plain.privacy_report_.rows
    assert set(first.vocabulary_) == {"cats", "chase", "dogs"}


def test_given_vocabulary_is_free():
    budget = BudgetAccountant(1.0, 1e-6)
    vectorizer = small(accountant=budget).fit(MANY)
    spent = budget.total()
    vectorizer.set_params(vocabulary=["dogs", "cats"], delta=0)
    counts = vectorizer.fit_transform(PETS)
    assert budget.total() == spent
    assert vectorizer.vocabulary_ == {"dogs": 0, "cats": 1}
    np.testing.assert_array_equal(counts.toarray(), [[0, 1], [1, 1], [1, 1]])
    assert vectorizer.privacy_report_.rows == ()
    assert vectorizer.privacy_report_.epsilon == 0
    assert not hasattr(vectorizer, "document_frequencies_")
    assert small(vocabulary={"cats", "dogs"}).transform(PETS).shape == (3, 2)
    for method in ("fit", "fit_transform", "transform"):
        with pytest.raises(ValueError, match=r"different words|Duplicate term"):
            getattr(small(vocabulary=["cats", "cats"]), method)(PETS)


def test_failing_functions_of_the_caller_cost_nothing():
    budget = BudgetAccountant(10.0, 1e-6)
    with pytest.raises(TypeError, match="must return strings, got objects of type int"):
        small(analyzer=lambda _: [1, 2], accountant=budget).fit(MANY)
    with pytest.raises(ZeroDivisionError):
        small(tokenizer=lambda _: 1 / 0, token_pattern=None, accountant=budget).fit(MANY)
    with pytest.raises(ValueError, match="item 0 is of type NoneType"):
        small(analyzer=list, accountant=budget).fit([None])
    assert budget.entries == ()
    with pytest.raises(ValueError, match=r"an item is of type NoneType\. .*replace them by ''"):
        small(vocabulary=["words"]).transform([None, "words"])


def test_parameters_are_those_of_count_vectorizer_and_more():
    theirs, ours = CountVectorizer().get_params(), PrivateCountVectorizer().get_params()
    theirs.pop("token_pattern"), ours.pop("token_pattern")  # the default keeps combining marks
    assert theirs.items() < ours.items()


def test_subclasses_may_analyse_in_their_own_way():
    class Stems(PrivateCountVectorizer):
        def build_analyzer(self):
            analyze = super().build_analyzer()
            return lambda document: [word.rstrip("s") for word in analyze(document)]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vectorizer = Stems(max_words_per_document=6).fit(MANY)
    assert "cat" in vectorizer.vocabulary_
    assert "cats" not in vectorizer.vocabulary_
    assert vectorizer.transform(["cats"]).sum() == 1


@pytest.mark.skipif(
    "sparse_interface" not in sklearn.get_config(),
    reason="scikit-learn before 1.9 has no sparse_interface",
)
@pytest.mark.parametrize(
    ("asked", "kind"), [("spmatrix", sp.csr_matrix), ("sparray", sp.csr_array)]
)
def test_counts_are_of_the_kind_that_is_asked_for(asked, kind):
    vectorizer = PrivateCountVectorizer(epsilon=np.inf)
    with sklearn.config_context(sparse_interface=asked):
        fitted = vectorizer.fit_transform(PETS)
        again = vectorizer.transform(PETS)
    assert {type(fitted), type(again)} == {kind}
    assert (fitted != again).nnz == 0


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_noise_that_no_threshold_is_proved_for_costs_nothing(neighbours):
    budget = BudgetAccountant(10.0, 1e-6)
    refused = PrivateCountVectorizer(
        epsilon=1e-9, delta=1e-9, neighbours=neighbours, accountant=budget
    )
    for ask in (lambda: refused.fit(MANY), lambda: refused.forecast(10**9)):
        with pytest.raises(
            ValueError, match=r"of a standard deviation of at most .* larger epsilon"
        ):
            ask()
    assert budget.entries == ()


# Which words are kept, against the forecast


def drawn_texts(length, spread, n=6000):
    """Texts of different words by Zipf's law, of log-normal lengths, and how many have each."""
    rng = np.random.default_rng(0)
    law = np.cumsum(1 / np.arange(20, 20_020))
    lengths = np.rint(length * np.exp(spread * rng.standard_normal(n))).astype(int)
    drawn = (np.searchsorted(law, law[-1] * rng.random(3 * most + 5)) for most in lengths)
    texts = [
        list(dict.fromkeys(words.tolist()))[:most]
        for words, most in zip(drawn, lengths, strict=True)
    ]
    users = np.bincount(np.concatenate(texts).astype(int), minlength=20_000)
    return [" ".join(f"w{word:05d}" for word in text) for text in texts], users


def fraction_kept(texts, users, low, high, **options):
    """Fraction of words that from `low` to below `high` texts use which a fit keeps."""
    with unsafe_seeded_noise(0):
        found = PrivateCountVectorizer(epsilon=1.2, delta=3e-7, **options).fit(texts).vocabulary_
    kept = np.zeros(len(users), bool)
    kept[[int(word[1:]) for word in found]] = True
    return kept[(users >= low) & (users < high)].mean()


@pytest.mark.parametrize(
    ("length", "spread", "most"),
    [(15, 1.0, 1000), (40, 0.0, 40), pytest.param(40, 1.2, 1000, marks=pytest.mark.nightly)],
)
def test_words_are_kept_from_the_forecast_number_on(length, spread, most):
    texts, users = drawn_texts(length, spread)
    options = {"max_words_per_document": most}
    forecast = PrivateCountVectorizer(epsilon=1.2, delta=3e-7, **options).forecast(
        len(texts), document_length=length
    )
    users_of_half = forecast.threshold
    about = partial(fraction_kept, texts, users, **options)
    assert 0.2 < about(users_of_half / 1.3, users_of_half * 1.3) < 0.85
    assert about(1, users_of_half / 2) < 0.01
    assert about(users_of_half * 2, np.inf) > 0.9
    if spread == 0:  # one sentence or the other
        assert "Assumed: no document holds over 40 words" in str(forecast)
    else:
        assert f"holds {length} words (repeats count once), and one in ten four" in str(forecast)
        equal, users = drawn_texts(length, 0.0)
        of_half = forecast.plan.if_equal
        assert 0.2 < fraction_kept(equal, users, of_half / 1.3, of_half * 1.3) < 0.85


@pytest.mark.nightly
def test_a_number_that_many_texts_exceed_loses_words_the_commonest_among_them():
    texts, users = drawn_texts(15, 1.2, n=12_000)
    kept = {
        most: fraction_kept(texts, users, 100, np.inf, max_words_per_document=most)
        for most in (5, 60, 1000)
    }
    assert kept[5] < 0.7 * kept[1000]
    assert kept[60] > kept[1000]
    assert fraction_kept(texts, users, 1000, np.inf, max_words_per_document=5) < 0.9
    assert fraction_kept(texts, users, 1000, np.inf) == 1.0


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
@pytest.mark.parametrize("most", [3, 1000])
def test_how_rare_words_come_out_is_certain(neighbours, most):
    """The shortest documents vote most: of one word each."""
    model = PrivateCountVectorizer(epsilon=1.2, max_words_per_document=most, neighbours=neighbours)
    forecast = model.forecast(6000)
    plan, n = forecast.plan, forecast.plan.rarest
    assert 1 < n < forecast.threshold / 2
    with unsafe_seeded_noise(0):
        row = model.fit(["cats"] * 6000).privacy_report_.rows[-1]
    assert row.name == "word_votes"
    assert ndtr((n * plan.largest_vote - plan.needed_votes) / row.sigma) <= 1e-3
    assert ndtr(((n + 1) * plan.largest_vote - plan.needed_votes) / row.sigma) > 1e-3
    assert f"in at most 1 of 2,000,000 runs, and of {n} in 1 of 1,000" in str(forecast)


# Persons with several texts

N = 600
of_persons = partial(PrivateCountVectorizer, max_words_per_document=5, min_df=0, epsilon=4.0)


def persons(seed=0):
    rng = np.random.default_rng(seed)
    owners = np.repeat(np.arange(N), rng.integers(1, 4, size=N))
    rng.shuffle(owners)
    words = np.array([f"word{i}" for i in range(12)])
    texts = [" ".join(rng.choice(words, size=rng.integers(1, 6))) for _ in owners]
    return texts, owners


def test_messages_speak_of_persons_and_not_of_texts():
    texts, owners = persons()
    with pytest.raises(ValueError, match=r"an item is of type NoneType") as wrong:
        of_persons().fit([*texts, None], groups=[*owners, 0])
    with pytest.raises(ValueError, match=r"kept if each holds 5 words, but there are 5") as few:
        of_persons().fit(texts[:9], groups=[0, 0, 0, 0, 0, 1, 2, 3, 4])
    with pytest.raises(ValueError, match=rf"more persons than .* with {N} persons") as limits:
        of_persons(min_df=0.9, max_df=0.1).fit(texts, groups=owners)
    for error in (wrong, few, limits):
        assert str(len(texts)) not in str(error.value)
        assert "9" not in str(few.value).replace("-", "")
    notes = of_persons().fit(texts, groups=owners).privacy_report_.notes
    assert any(
        "A word of one person alone comes out in at most 1 of 2,000" in note for note in notes
    )
