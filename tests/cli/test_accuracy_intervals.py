from tigranet.cli.accuracy_intervals import print_intervals
from tigranet.evaluation import Accuracy, Robustness


def test_unmoved_and_rotated_images_have_an_interval_each(capsys):
    moved = {"rotated": Accuracy(90.0, 1.0, 10), "shifted by up to 3 pixels": Accuracy(91.0, 1.0, 10)}
    print_intervals(Robustness("d", 300, 92.0, moved, unmoved="as they are"))
    first, second = capsys.readouterr().out.splitlines()
    assert first == "as they are: 92.0 %, 95 % interval 88.4 to 94.6 from 300 test images"
    assert second.startswith("rotated: 90.0 %, 95 % interval 86.1 to 92.9")
