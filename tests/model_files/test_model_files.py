"""Files of models: what comes back, what is refused, and that nothing in them is run."""

import json
import os
import pickle
import stat
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from internals import stream_of
from safetensors import safe_open
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from small_models import COUNTS, DOCUMENTS, SAMPLES, equal, fitted

import sktensor_dp
from sktensor_dp import (
    ModelFileError,
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
)
from sktensor_dp.model_files.container import LARGEST_FILE, Arrays
from sktensor_dp.model_files.fields import as_json, read_parameter
from sktensor_dp.model_files.saving import check_saving

ROOT = Path(sktensor_dp.__file__).parents[1]
pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")


def saved(model, folder):
    path = folder / "model"
    model.save(path)
    return path


@cache
def models():
    return dict(fitted())


def test_whether_a_model_can_be_saved_is_known_before_its_fit():
    for model in map(clone, models().values()):
        check_saving(model)
        if "random_state" in model.get_params():
            with pytest.raises(TypeError, match=r"'random_state' parameter .* cannot be saved"):
                check_saving(model.set_params(random_state=np.random.RandomState(0)))


def test_files_are_what_other_tools_read(tmp_path):
    with safe_open(saved(models()["topics"], tmp_path), framework="numpy") as file:
        document = json.loads(file.get_tensor("model.json").tobytes())
        assert file.metadata() is None
        assert document["class"] == "PrivateSpectralLDA"
        topics = file.get_tensor("components_")
    assert np.array_equal(topics, models()["topics"].components_)


def test_another_process_writes_the_same_bytes(tmp_path):
    before = saved(models()["vocabulary"], tmp_path).read_bytes()
    code = "import pickle, sys; pickle.load(sys.stdin.buffer).save(sys.argv[1])"
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(ROOT)}
    content = pickle.dumps(models()["vocabulary"])
    command = [sys.executable, "-c", code, tmp_path / "model"]
    subprocess.run(command, input=content, env=environment, check=True)
    assert (tmp_path / "model").read_bytes() == before


@pytest.mark.parametrize("first", [1, 3, 8])
def test_a_stream_goes_on_after_loading(first, tmp_path):
    """The next question to the data, and so the state after its answer, are the same."""
    stream = models()[f"components-stream-{first}"]
    loaded = PrivateTensorPowerMethod.load(saved(stream, tmp_path))
    method, other = stream_of(stream).method, stream_of(loaded).method
    for _ in range(4):
        answer = np.random.default_rng(0).standard_normal(method.columns_asked().shape)
        assert np.array_equal(method.columns_asked(), other.columns_asked())
        method.tell(answer)
        other.tell(answer)
    assert all(map(np.array_equal, method.components(), other.components()))
    loaded.partial_fit(SAMPLES)
    assert loaded.n_batches_seen_ == other.n_answers + 1
    with pytest.raises(ValueError, match="first batch"):
        loaded.set_params(epsilon=9.0).partial_fit(SAMPLES)


@pytest.mark.parametrize("limit", [0.0, 5e-324, 1e-320, 1e300, float("inf")])
def test_a_stream_does_not_go_on_with_a_limit_that_no_fit_had(limit, tmp_path):
    """It clips batches to what the file says."""
    model = PrivateSpectralLDA(2, random_state=0).partial_fit(COUNTS)
    model.clip_norm_ = {**model.clip_norm_, "counts": limit}
    with pytest.raises(ModelFileError, match="limits"):
        PrivateSpectralLDA.load(saved(model, tmp_path))


def transforming():
    model = PrivateCountVectorizer(vocabulary=["a"])
    model.transform(["a"])
    return model


def with_nan():
    model = PrivateSpectralLDA(2, random_state=0).fit(COUNTS)
    model.components_[0, 0] = np.nan
    return model


SPLITTING = PrivateCountVectorizer(tokenizer=str.split, token_pattern=None)
UNSAVED = [
    (PrivateSpectralLDA, NotFittedError, "not fitted"),
    (lambda: PrivateCPCompletion(bounds=(0, 1)), NotFittedError, "not fitted"),
    (transforming, NotFittedError, "privacy_report_"),
    (lambda: SPLITTING.set_params(max_words_per_document=6).fit(DOCUMENTS), TypeError,
     "'tokenizer' parameter of PrivateCountVectorizer"),
    (lambda: PrivateSpectralLDA(2, random_state=np.random.RandomState(0)).fit(COUNTS), TypeError,
     r"'random_state' .* RandomState"),
    (with_nan, ModelFileError, "components_"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "error", "message"), UNSAVED)
def test_what_is_not_fitted_holds_code_or_could_not_be_loaded_is_not_saved(
    build, error, message, tmp_path
):
    path = saved(models()["topics"], tmp_path)
    before = path.read_bytes()
    with pytest.raises(error, match=message):
        build().save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_paths_that_are_no_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        PrivateSpectralLDA.load(tmp_path / "none")
    with pytest.raises(ModelFileError, match="regular file"):
        PrivateSpectralLDA.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="regular file"):
        PrivateSpectralLDA.load(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(OSError, match="no regular file; it was left as it is"):
            models()["topics"].save(tmp_path / name)
    assert (tmp_path / "pipe").is_fifo()
    models()["topics"].save(tmp_path / "new" / "folder" / "model")
    PrivateSpectralLDA.load(tmp_path / "new" / "folder" / "model")
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(LARGEST_FILE + 1)  # takes no room on the disk
    with pytest.raises(ModelFileError, match="at most"):
        PrivateSpectralLDA.load(tmp_path / "huge")


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps no modes of files")
def test_a_link_is_followed_and_a_mode_is_kept(tmp_path):
    (tmp_path / "other").mkdir()
    kept, link = tmp_path / "other" / "kept", tmp_path / "link"
    link.symlink_to(kept)
    models()["topics"].save(link)
    kept.chmod(0o600)
    models()["vocabulary"].save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    models()["vocabulary"].save(tmp_path / "model")
    assert kept.read_bytes() == (tmp_path / "model").read_bytes()


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    path = saved(models()["topics"], tmp_path)
    before = path.read_bytes()

    def full(_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        models()["vocabulary"].save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


PARAMETERS = [
    None, True, 3, -0.5, float("inf"), "x", (1, (2.0, "a")), [1, [2]], {"a": 1.5, "b": None},
    {"p"}, frozenset({1}), np.float32, np.array([1.0, 2.0]), np.array([3], dtype="u1"),
    np.eye(2), np.zeros((0, 2)), np.ones(2000),
]  # fmt: skip


@pytest.mark.parametrize("value", PARAMETERS, ids=str)
def test_parameters_come_back_as_they_were(value):
    arrays = Arrays()
    found = read_parameter(json.loads(json.dumps(as_json(value, arrays, "x"))), arrays)
    assert type(found) is type(value)
    assert equal(found, value)
    assert len(arrays.by_name) == isinstance(value, np.ndarray)


def test_numbers_of_numpy_are_plain_ones_and_other_kinds_are_refused():
    for number, kind in ((np.int64(1), int), (np.float64(1), float), (np.bool_(1), bool)):
        assert type(as_json(number, Arrays(), "x")) is kind
    with pytest.raises(ModelFileError, match="must name an array"):
        read_parameter({"array": "none"}, Arrays())
    for value in (len, object(), 1j, np.array([None]), object, range(3)):
        with pytest.raises(TypeError):
            as_json(value, Arrays(), "x")
