"""Queries: raw data in, a sum and its sensitivity out."""
