"""Predict images with Ray Data.

``python examples/engines/ray_data.py MODEL IMAGES.parquet ANSWERS/`` reads a Parquet file with the columns ``image``
(the content of image files) and ``path``. Ray starts two workers, and each loads the network once.
"""

import sys

import ray

from tigranet.serving import Predictor


def main(model: str, images: str, answers: str) -> None:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, ignore_reinit_error=True)
    rows = ray.data.read_parquet(images, columns=["image", "path"])
    predicted = rows.map_batches(
        Predictor,
        fn_constructor_args=(model,),
        fn_constructor_kwargs={"on_error": "column"},
        batch_size=64,
        compute=ray.data.ActorPoolStrategy(size=2),
        num_cpus=0.5,
    )
    predicted.select_columns(["path", "label", "probability", "error"]).write_parquet(answers)


if __name__ == "__main__":
    main(*sys.argv[1:4])
