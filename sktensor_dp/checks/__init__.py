"""Checks of what callers pass, errors without data, tables of others, and display of results."""
