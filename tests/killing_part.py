"""A part whose first reader dies, for tests of engines."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tigranet.workflows.bulk_prediction.parts import NamedImage, Part


@dataclass(frozen=True)
class KillingPart:
    """The images of a part. The process that first reads them is killed after two of them."""

    part: Part
    marker: str
    """File that says that a process was killed."""
    waits = False

    @property
    def images(self) -> int | None:
        return self.part.images

    def read(self) -> Iterator[NamedImage]:
        for number, image in enumerate(self.part.read()):
            if number == 2 and not Path(self.marker).exists():
                Path(self.marker).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield image
