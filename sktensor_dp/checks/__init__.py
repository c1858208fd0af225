"""Checks of arguments, errors without data, tables of other libraries, display of results."""
