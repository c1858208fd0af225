"""Data to work on: public documentation, texts of one's own, public words, MovieLens.

The readers of private files say what is wrong with a file without ever showing
what is in it: messages name files, columns, line numbers and types.
"""

from sktensor_dp.datasets.public import fetch_movielens_100k, load_docstrings
from sktensor_dp.datasets.texts import load_texts, load_texts_by_person, open_table, open_texts
from sktensor_dp.datasets.words import load_word_frequencies

__all__ = [
    "fetch_movielens_100k",
    "load_docstrings",
    "load_texts",
    "load_texts_by_person",
    "load_word_frequencies",
    "open_table",
    "open_texts",
]
