"""Data on which topics are found with ease."""

import pytest
from small_corpora import TOPICS, single_topic


@pytest.fixture(scope="module")
def comfortable():
    return single_topic(20_000, TOPICS, 20)
