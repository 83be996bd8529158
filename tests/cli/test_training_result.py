"""What is printed at the end of a training says how the accuracies were measured."""

from images import fill
from tigranet.cli.training_result import print_training_result
from tigranet.workflows.train import train


def test_the_accuracies_of_a_users_images_are_printed_without_the_papers(tmp_path, capsys):
    photos = fill(tmp_path / "photos", {"a": 20, "b": 20})
    trained = train(photos, tmp_path / "model", architecture="SC[2,2]-S[2]", recipe={"epochs": 1})
    print_training_result(trained)
    printed = capsys.readouterr().out
    assert "test images, as they are" in printed
    assert f"{len(trained.data.test.labels)} test images" in printed
    assert f"saved to {tmp_path / 'model'}" in printed.replace("\n", "")
    assert "paper" not in printed
