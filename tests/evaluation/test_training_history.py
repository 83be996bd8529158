import pytest

from tigranet.evaluation.training_history import MAX_HISTORY_BYTES, read_training_history

HEADER = "epoch,loss,validation_loss,validation_accuracy,seconds\n"


def write(tmp_path, text):
    path = tmp_path / "history.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_losses_and_the_validated_epochs_are_read(tmp_path):
    history = read_training_history(write(tmp_path, HEADER + "1,0.9,,,2.5\n2,0.5,0.6,0.75,1.5\n3,0.4,inf,0.5,1\n"))
    assert history.epochs == (1, 2, 3)
    assert history.losses == (0.9, 0.5, 0.4)
    assert (history.validation_epochs, history.validation_losses) == ((2,), (0.6,))  # an infinite loss is left out
    assert history.validation_accuracies == (75.0,)
    assert history.seconds == 5.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        HEADER,
        HEADER + "1,nan,,,1\n",
        HEADER + "one,0.5,,,1\n",
        HEADER + "1,high,,,1\n",
        "a,b\n1,2\n",
        b"\xff\x00\n\xfe",
    ],
    ids=["empty", "no rows", "no finite loss", "epoch in words", "loss in words", "other columns", "bytes"],
)
def test_another_file_is_an_error_that_names_it(tmp_path, text):
    with pytest.raises(ValueError, match=r"history\.csv' is not the table of a training"):
        read_training_history(write(tmp_path, text))


def test_a_huge_file_is_refused(tmp_path):
    path = tmp_path / "history.csv"
    with path.open("wb") as file:
        file.truncate(MAX_HISTORY_BYTES + 1)
    with pytest.raises(ValueError, match="too large"):
        read_training_history(path)
