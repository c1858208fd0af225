"""The command as a person runs it, in an empty folder."""

from pathlib import Path

import pytest
from commands import PLURAL_OF_ONE, Answer, Command, write_posts

from sktensor_dp.cli import main


@pytest.fixture
def command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object, status: int = 0) -> Answer:
        try:
            ended = main([str(argument) for argument in arguments])
        except SystemExit as stop:  # argparse leaves by itself
            ended = int(stop.code or 0)
        answer = Answer(*capsys.readouterr())
        assert ended == status, answer.err
        assert not PLURAL_OF_ONE.search(answer.out + answer.err)
        return answer

    return run


@pytest.fixture
def posts(tmp_path: Path) -> Path:
    return write_posts(tmp_path / "posts.csv")
