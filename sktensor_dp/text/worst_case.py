"""Neighbouring corpora on which a vocabulary gives away the most."""

from typing import Any

from sktensor_dp.estimator.hooks import Neighbours


def worst_texts(n_words: int, n_units: int | None, neighbours: str) -> Neighbours:
    """Documents of as many words as may count, half of them of either set, and one changed."""
    n_texts = n_units or 1000
    sides = [" ".join(f"{letter}{i}" for i in range(n_words)) for letter in ("aa", "bb")]
    half = n_texts // 2 + 1
    texts = [sides[0]] * half + [sides[1]] * (n_texts - half)
    if neighbours == "add_remove":
        return (texts,), (texts[1:],), _difference
    return (texts,), ([sides[1], *texts[1:]],), _difference


def _difference(fitted: Any) -> float:
    names, found = fitted.get_feature_names_out(), fitted.document_frequencies_
    return float(sum(x if name[0] == "b" else -x for name, x in zip(names, found, strict=True)))
