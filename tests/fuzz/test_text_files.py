"""Notation, tables, configurations, records and weights with random changes: each works, or is refused in one line."""

import json
import shutil
import struct
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import strategies as st

from fuzz.budget import check_message, fuzz
from fuzz.mutations import mutated, mutated_json
from tigranet import TIGraNet
from tigranet.architecture import PRESETS, Architecture
from tigranet.data.csv_index import index_csv
from tigranet.evaluation.conformal import ConformalCalibration
from tigranet.model_folder import CALIBRATION, CONFIG, WEIGHTS
from tigranet.workflows.model_calibration import ModelCalibration, read_calibration, write_calibration
from tigranet.workflows.saved_run import SavedRun

TABLE = "path,label,part\n" + "".join(
    f"images/{i}.png,{'abc'[i % 3]},{('train', 'val', 'test')[i % 3]}\n" for i in range(9)
)
RECORD = {
    "seed": 3, "group": None, "train_images": None, "recipe": {"epochs": 2, "jitter": 0.5, "keep": "best"},
    "seen": "0123abcd 4567cdef", "tested": "89ab", "test": 97.5, "command": "tigranet train photos",
}  # fmt: skip


@contextmanager
def refused_in_one_line():
    """Allow the errors that are meant for users, with a message that can be shown to them."""
    try:
        yield
    except UnicodeError:  # a ValueError, but its message is for programmers
        raise
    except (ValueError, OSError) as error:
        check_message(error)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    network = TIGraNet("SC[2,1]-DP[9]-S[1]-FC[3]", num_classes=3, class_names=["a", "b", "c"], image_size=8)
    network.save_pretrained(folder)
    return folder


def check_notation(text: str) -> None:
    with refused_in_one_line():
        architecture = Architecture.parse(text)
        printed = str(architecture)
        assert Architecture.parse(printed) == architecture
        assert str(Architecture.parse(printed)) == printed


layers = st.builds(
    lambda name, numbers: f"{name}[{','.join(map(str, numbers))}]",
    st.sampled_from(("SC", "MC", "OP", "MP", "GP", "DP", "S", "FC", "sc", "X")),
    st.lists(st.integers(-1, 12) | st.integers(), max_size=3),
)
notations = (
    st.text()
    | st.text(alphabet="SCMOPGDF[],-0123456789 \n\u0661\u00b2")
    | st.lists(layers, max_size=8).map("-".join)
    | mutated([text.encode() for text in (*PRESETS, *PRESETS.values())]).map(lambda text: text.decode(errors="replace"))
)


def test_notation(without_shape_checks):
    fuzz(check_notation, notations, examples=500)


def test_tables(tmp_path):
    table = tmp_path / "table.csv"

    def check(content: bytes) -> None:
        table.write_bytes(content)
        with refused_in_one_line():
            index = index_csv(table)
            assert len(index.paths) == len(index.labels) == len(index.parts) > 0
            assert set(index.labels) == set(range(len(index.class_names)))
            assert not any("\0" in str(path) for path in index.paths)

    cells = st.text(max_size=6) | st.sampled_from(("a", "b", "train", "test", '"', "\0", "=1", "images/1.png"))
    rows = st.lists(st.lists(cells, max_size=4).map(",".join), max_size=6).map(
        lambda lines: "\n".join(["path,label", *lines])
    )
    seeds = [TABLE.encode(), TABLE.replace(",", "\t").encode(), TABLE.replace(",", ";").replace("\n", "\r\n").encode()]
    texts = (st.text() | rows).map(lambda text: text.encode(errors="surrogatepass"))
    fuzz(check, mutated(seeds) | texts | st.binary(max_size=100), examples=300)


def test_configurations(model, tmp_path, without_shape_checks):
    folder = shutil.copytree(model, tmp_path / "model")
    config = json.loads((model / CONFIG).read_text())

    def check(content: bytes) -> None:
        (folder / CONFIG).write_bytes(content)
        with refused_in_one_line():
            assert TIGraNet.from_pretrained(folder).num_classes == 3

    fuzz(check, mutated_json(config), examples=200)


def test_records_of_trainings(tmp_path, without_shape_checks):
    def check(content: bytes) -> None:
        (tmp_path / "training.json").write_bytes(content)
        with refused_in_one_line():
            run = SavedRun.read(tmp_path)
            assert isinstance(run.seed, int)
            assert 0 <= run.seed < 2**63
            assert run.group is None or isinstance(run.group, str)
            assert run.train_images is None or isinstance(run.train_images, int)
            assert isinstance(run.recipe, dict)
            assert all(isinstance(text, str) for text in run.training_hashes)
            assert run.test_hash is None or isinstance(run.test_hash, str)

    fuzz(check, mutated_json(RECORD), examples=300)


def test_calibrations(model, tmp_path, without_shape_checks):
    folder = shutil.copytree(model, tmp_path / "model")
    network = TIGraNet.from_pretrained(folder)
    write_calibration(folder, network, ModelCalibration(ConformalCalibration(4, (0.25, 0.5, 1.5))))
    values = json.loads((folder / CALIBRATION).read_text())

    def check(content: bytes) -> None:
        (folder / CALIBRATION).write_bytes(content)
        with refused_in_one_line():
            calibration = read_calibration(folder, network)
            assert len(calibration.conformal.scores) <= calibration.conformal.images
            assert calibration.conformal.threshold(0.5) >= 0
            assert calibration.temperature > 0

    fuzz(check, mutated_json(values), examples=200)


def test_headers_of_weights(model, tmp_path, without_shape_checks):
    """The 8-byte length, the JSON header and the numbers are changed, alone or together."""
    folder = shutil.copytree(model, tmp_path / "model")
    content = (model / WEIGHTS).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header, numbers = content[8 : 8 + length], content[8 + length :]
    changed_json = mutated_json(json.loads(header)).map(lambda text: struct.pack("<Q", len(text)) + text + numbers)
    changed_header = mutated([header]).map(lambda text: struct.pack("<Q", len(text)) + text + numbers)

    def check(weights: bytes) -> None:
        with tempfile.NamedTemporaryFile(dir=tmp_path, delete=False) as file:
            file.write(weights)
        Path(file.name).replace(folder / WEIGHTS)  # a file that is mapped into memory must not be cut
        with refused_in_one_line():
            network = TIGraNet.from_pretrained(folder)
            assert all(parameter.isfinite().all() for parameter in network.parameters())

    fuzz(check, changed_json | changed_header | mutated([content]), examples=200)
