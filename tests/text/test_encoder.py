"""PrivateOneHotEncoder: agreement with scikit-learn, rare values, groups, columns by name."""

import math
import re

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder

from sktensor_dp import NotEnoughDataError, PrivateOneHotEncoder

N = 900


def table(seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"city": rng.choice(["Oslo", "Rome", "Bonn=2"], N), "pet": rng.choice(["cat", "dog"], N)}
    )
    frame.loc[0, "city"] = "Nowhere"
    return frame


def test_without_noise_it_is_one_hot_encoder(seed):
    frame = table(seed)
    ours, theirs = PrivateOneHotEncoder(epsilon=math.inf), OneHotEncoder()
    by_name = dict(frame.items()), {name: cells.tolist() for name, cells in frame.items()}
    for X in (frame, frame.to_numpy(), frame.to_numpy().tolist(), *by_name):
        np.testing.assert_array_equal(
            ours.fit_transform(X).toarray(), theirs.fit_transform(frame).toarray()
        )
        for found, expected in zip(ours.categories_, theirs.categories_, strict=True):
            np.testing.assert_array_equal(found, expected)
    assert ours.fit(frame).get_feature_names_out()[0] == "city=Bonn=2"
    # A missing value counts for no category.
    assert ours.fit_transform([["a", None], [math.nan, "b"], ["a", pd.NA]]).sum() == 3


def test_rare_values_are_not_named_and_are_encoded_as_zeros(seed):
    frame = table(seed)
    encoder = PrivateOneHotEncoder(epsilon=2.0)
    columns = ColumnTransformer([("one hot", encoder, ["city", "pet"])], sparse_threshold=0)
    encoded = columns.fit_transform(frame)
    found = columns.named_transformers_["one hot"]
    # Others are in about 300 rows or more, 13 thresholds.
    assert [list(kind) for kind in found.categories_] == [
        ["Bonn=2", "Oslo", "Rome"],
        ["cat", "dog"],
    ]
    assert found.threshold_ == found.forecast(N, 2).threshold < 25
    assert encoded.sum() == 2 * N - 1
    public = OneHotEncoder(categories=found.categories_, handle_unknown="ignore")
    np.testing.assert_array_equal(public.fit_transform(frame).toarray(), encoded)


def test_a_person_counts_with_all_rows(seed):
    frame, owners = table(seed), np.random.default_rng(seed).integers(0, 300, N)
    encoder = PrivateOneHotEncoder(epsilon=8.0).fit(frame, groups=owners)
    report = encoder.privacy_report_
    assert (report.unit, report.n_units) == ("person", len(np.unique(owners)))
    assert "Nowhere" not in encoder.categories_[0]
    alone = PrivateOneHotEncoder(epsilon=8.0).fit(frame)
    assert alone.privacy_report_.unit == "sample"
    # The threshold is that of persons with a category of each column, not with a hundred words.
    assert alone.threshold_ < encoder.threshold_ < 2 * alone.threshold_
    with config_context(enable_metadata_routing=True):
        routed = PrivateOneHotEncoder(epsilon=8.0).set_fit_request(groups=True)
        columns = ColumnTransformer([("one hot", routed, ["city", "pet"])])
        columns.fit(frame, groups=owners)
    assert columns.named_transformers_["one hot"].privacy_report_.unit == "person"


def test_a_single_column_has_votes_alone_at_the_whole_budget(seed):
    # A row has one category: there is nothing to choose, except for whoever has several rows.
    rounds = ["word_buckets", "word_votes"]
    for columns, grouped, asked in ((1, False, rounds[1:]), (2, False, rounds), (1, True, rounds)):
        frame, encoder = table(seed).iloc[:, :columns], PrivateOneHotEncoder(epsilon=8.0)
        encoder.fit(frame, groups=np.arange(N) if grouped else None)
        assert [row.name for row in encoder.privacy_report_.rows] == asked
        assert encoder.privacy_report_.epsilon == pytest.approx(8.0)
        assert list(encoder.categories_[0]) == ["Bonn=2", "Oslo", "Rome"]
        foretold = encoder.forecast(N, columns, grouped=grouped)
        assert (encoder.threshold_, foretold.n_words) == (foretold.threshold, None)


def test_messages_are_of_categories_and_of_its_own_parameters():
    words = "max_words|vocabulary|word|document|text"
    for X in ([["a", "b"]] * 9, [[None, None]] * N):
        with pytest.raises(NotEnoughDataError, match="public categories would help") as caught:
            PrivateOneHotEncoder().fit(X)
        assert not re.search(words, str(caught.value))
    for n, told in ((10, "too few for any category"), (N, "rows on if each holds 2 categories (")):
        shown = str(PrivateOneHotEncoder().forecast(n, 2))
        assert told in shown
        assert not re.search(words, shown)


def test_names_that_would_be_taken_for_others_are_refused():
    for names in (["a", "a"], ["a=b", "c"]):
        with pytest.raises(ValueError, match="Names of columns must differ, and have no '='"):
            PrivateOneHotEncoder().fit(pd.DataFrame([["x", "y"]] * 9, columns=names))
