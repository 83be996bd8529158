"""``tigranet calibrate``."""

from tigranet.cli.options import Data, DataDir, Model, global_options
from tigranet.cli.output import print_line, progress_console


def calibrate(model: Model, data: Data, data_dir: DataDir = None) -> None:
    """Calibrate a saved model, so that it can predict label sets ('predict --coverage') and detect unknown images.

    'train' does this at its end. Images are split as for the training, and training images are left out.
    """
    from tigranet.workflows.calibrate import calibrate as calibrate_model

    calibration = calibrate_model(
        model, data, data_dir=data_dir, device=global_options().device, console=progress_console()
    )
    print_line(f"{model}: {calibration.describe()}")
