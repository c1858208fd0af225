"""PrivateCountVectorizer with groups: persons with several texts are what is protected."""

import warnings
from functools import partial

import numpy as np
import pytest
from replaying import state

from sktensor_dp import PrivateCountVectorizer, unsafe_seeded_noise

pytestmark = pytest.mark.filterwarnings("ignore:noise is seeded")

SECRET = "opensesame"
N = 600


def persons(seed=0):
    """Texts of persons in a shuffled order, and whose each one is."""
    rng = np.random.default_rng(seed)
    owners = np.repeat(np.arange(N), rng.integers(1, 4, size=N))
    rng.shuffle(owners)
    words = np.array([f"word{i}" for i in range(12)])
    texts = [" ".join(rng.choice(words, size=rng.integers(1, 6))) for _ in owners]
    return texts, owners


vectorizer = partial(PrivateCountVectorizer, max_words_per_document=5, epsilon=4.0)


def merged(texts, owners):
    return [
        " ".join(text for text, one in zip(texts, owners, strict=True) if one == owner)
        for owner in np.unique(owners)
    ]


def test_a_person_is_one_document_of_all_their_texts(seed):
    texts, owners = persons(seed)
    with unsafe_seeded_noise(seed):
        ours = vectorizer().fit(texts, groups=owners)
    with unsafe_seeded_noise(seed):
        concatenated = vectorizer().fit(merged(texts, owners))
    assert ours.vocabulary_ == concatenated.vocabulary_
    np.testing.assert_array_equal(ours.document_frequencies_, concatenated.document_frequencies_)
    assert ours.privacy_report_.n_units == N
    assert ours.privacy_report_.unit == "person"


def test_groups_of_one_row_are_no_groups(seed):
    texts, _ = persons(seed)
    fits = []
    for groups in (None, np.arange(len(texts))):
        with unsafe_seeded_noise(seed):
            fits.append(vectorizer().fit(texts, groups=groups))
    plain, grouped = ({**vars(fit)} for fit in fits)
    assert plain.pop("privacy_report_").rows == grouped.pop("privacy_report_").rows
    assert state(plain) == state(grouped)


def test_labels_may_be_of_any_kind_and_order(seed):
    texts, owners = persons(seed)
    order = np.random.default_rng(seed).permutation(len(texts))
    found = []
    for rows, labels in (
        (np.arange(len(texts)), owners),
        (order, owners[order]),
        (order, [f"{owner:04}" for owner in owners[order]]),
    ):
        with unsafe_seeded_noise(seed):
            fit = vectorizer().fit([texts[row] for row in rows], groups=labels)
        found.append(state(vars(fit)))
    assert found[0] == found[1] == found[2]


def test_counts_are_those_of_rows():
    texts, owners = persons()
    fit = vectorizer()
    counts = fit.fit_transform(texts, groups=owners)
    assert counts.shape[0] == len(texts)
    np.testing.assert_array_equal(counts.toarray(), fit.transform(texts).toarray())


def test_the_number_of_texts_shows_nowhere(seed):
    texts, owners = persons(seed)
    # One person's texts cut into 40 with the same words: all totals stay.
    mine = np.flatnonzero(owners == owners[0])
    words = " ".join(texts[row] for row in mine).split()
    others = [row for row in range(len(texts)) if owners[row] != owners[0]]
    cut = [*words, *[""] * 40, *(texts[row] for row in others)]
    labels = [owners[0]] * (len(words) + 40) + [owners[row] for row in others]
    found = []
    for given, groups in ((texts, owners), (cut, labels)):
        with unsafe_seeded_noise(seed), warnings.catch_warnings(record=True) as told:
            fit = vectorizer().fit(given, groups=groups)
        found.append((state(vars(fit)), str(fit.privacy_report_), [str(one) for one in told]))
    assert found[0] == found[1]


def test_messages_speak_of_persons_and_not_of_texts():
    texts, owners = persons()
    with pytest.raises(ValueError, match=r"an item is of type NoneType") as wrong:
        vectorizer().fit([*texts, None], groups=[*owners, 0])
    with pytest.raises(ValueError, match=r"persons to be kept, but there are 5") as few:
        vectorizer().fit(texts[:9], groups=[0, 0, 0, 0, 0, 1, 2, 3, 4])
    with pytest.raises(ValueError, match=rf"more persons than .* with {N} persons") as limits:
        vectorizer(min_df=0.9, max_df=0.1).fit(texts, groups=owners)
    for error in (wrong, few, limits):
        assert str(len(texts)) not in str(error.value)
        assert "9" not in str(few.value).replace("-", "")
    notes = vectorizer().fit(texts, groups=owners).privacy_report_.notes
    assert any("persons are dropped" in note for note in notes)
