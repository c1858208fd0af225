"""Data to work on: public documentation, texts of one's own, public words."""

from sktensor_dp.datasets.own_files import load_texts
from sktensor_dp.datasets.public import load_docstrings
from sktensor_dp.datasets.words import load_word_frequencies

__all__ = ["load_docstrings", "load_texts", "load_word_frequencies"]
