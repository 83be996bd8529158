from dataclasses import replace

from tigranet.architecture import PRESETS
from tigranet.reproduction.experiment import Experiment
from tigranet.reproduction.tables import TABLES


def test_an_experiment_is_named_by_its_method_its_note_and_its_images():
    experiment = Experiment("STN", "mnist-rot", "paper")
    assert (experiment.kind, experiment.name) == ("STN", "STN")
    experiment = replace(experiment, note="no jitter", images=1_000)
    assert (experiment.kind, experiment.name) == ("STN (no jitter)", "STN (no jitter), 1,000 images")


def test_presets_of_tigranet_are_written_out():
    assert Experiment("TIGraNet", "mnist-rot", "paper").layers == PRESETS["paper"]
    assert Experiment("TIGraNet", "mnist-rot", "SC[2,2]-S[1]").layers == "SC[2,2]-S[1]"
    assert Experiment("STN", "mnist-rot", "paper").layers == "paper"


def test_tables_that_vary_the_number_of_training_images_have_a_curve_if_their_data_are_the_same():
    assert [name for name, table in TABLES.items() if table.varies_training_size] == ["few", "plankton"]
    assert [name for name, table in TABLES.items() if table.has_curve] == ["few", "plankton"]


def test_paper_columns_come_first():
    assert TABLES["table2"].all_columns == ("train", "validation", "moved", "test", "nearest", "drop")
