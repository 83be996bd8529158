"""What a user should know about a data set before reading any accuracy."""

from tigranet.data.class_names import list_names, names_that_differ_by_case
from tigranet.data.dataset import DataSet


def data_notices(data: DataSet) -> list[str]:
    """Return notices about a data set that can be used, but perhaps not as its user expects.

    Args:
        data: The data set.

    Returns:
        One sentence for each of these: there are no test images, or none of some classes; class names differ only by
        case.
    """
    notices = []
    untested = data.untested_classes
    if not len(data.test.labels):
        notices.append(f"{data.name} has no test images, so the accuracy on new images is not measured")
    elif untested:
        classes = "1 class" if len(untested) == 1 else f"{len(untested)} classes"
        notices.append(f"{data.name} has no test images of {classes}: {list_names(untested)}")
    if alike := [name for names in names_that_differ_by_case(data.class_names) for name in names]:
        notices.append(f"{data.name} has classes whose names differ only by upper and lower case: {list_names(alike)}")
    return notices
