"""Data to work on: public documentation, texts of one's own, public words, MovieLens."""

from sktensor_dp.datasets.own_files import load_texts, load_texts_by_person
from sktensor_dp.datasets.public import fetch_movielens_100k, load_docstrings
from sktensor_dp.datasets.words import load_word_frequencies

__all__ = [
    "fetch_movielens_100k",
    "load_docstrings",
    "load_texts",
    "load_texts_by_person",
    "load_word_frequencies",
]
