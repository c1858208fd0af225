"""Custodians of each kind of raw data."""
