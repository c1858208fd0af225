"""Counts of words over a vocabulary that was chosen privately."""

from sktensor_dp.text.vectorizer import PrivateCountVectorizer

__all__ = ["PrivateCountVectorizer"]
