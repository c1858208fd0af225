"""The command as a person runs it, in an empty folder."""

from pathlib import Path

import pytest
from commands import Answer, Command, write_posts

from sktensor_dp.cli import main


@pytest.fixture
def command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Answer:
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as stop:  # argparse leaves by itself
            status = int(stop.code or 0)
        return Answer(status, *capsys.readouterr())

    return run


@pytest.fixture
def posts(tmp_path: Path) -> Path:
    return write_posts(tmp_path / "posts.csv")
