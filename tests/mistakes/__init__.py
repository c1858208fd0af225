"""Mistakes that a developer could make in the package, and whether the tests see each of them."""
