"""Predict images with Daft.

``python examples/engines/daft_frames.py MODEL IMAGES.parquet ANSWERS/`` reads a Parquet file with the columns ``image``
(the content of image files) and ``path``. Each worker of Daft loads the network once.
"""

import sys

import daft
from daft import DataType, Series

from tigranet.serving import Predictor

ANSWER = DataType.struct({"label": DataType.string(), "probability": DataType.float32(), "error": DataType.string()})


@daft.cls
class Answers:
    """The predictor as a class of Daft."""

    def __init__(self, model: str) -> None:
        self.predict = Predictor(model, on_error="column")

    @daft.method.batch(return_dtype=ANSWER, batch_size=64)
    def __call__(self, image: Series) -> list[dict[str, object]]:
        answer = self.predict({"image": image.to_pylist()})
        columns = (answer[name].tolist() for name in ("label", "probability", "error"))
        return [
            {"label": label, "probability": probability, "error": error}
            for label, probability, error in zip(*columns, strict=True)
        ]


def main(model: str, images: str, answers: str) -> None:
    answer = Answers(model)
    rows = daft.read_parquet(images).with_column("answer", answer(daft.col("image")))
    columns = [daft.col("answer")[name].alias(name) for name in ("label", "probability", "error")]
    rows.select(daft.col("path"), *columns).write_parquet(answers)


if __name__ == "__main__":
    main(*sys.argv[1:4])
