"""The command ``sktensor-dp``: private topics, ratings and groups without writing Python."""

from sktensor_dp.cli.command import main

__all__ = ["main"]
