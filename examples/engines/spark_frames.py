"""Predict images with Spark.

``python examples/engines/spark_frames.py MODEL IMAGES.parquet ANSWERS/`` reads a Parquet file with the columns
``image`` (the content of image files) and ``path``. Each Python worker of Spark loads the network once.
"""

import sys

from pyspark.ml.functions import predict_batch_udf
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from tigranet.serving import make_predict_fn
from tigranet.serving.spark_function import ANSWER_COLUMNS


def main(model: str, images: str, answers: str) -> None:
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    schema = StructType.fromDDL(ANSWER_COLUMNS)
    predict = predict_batch_udf(make_predict_fn(model), return_type=schema, batch_size=64)
    rows = spark.read.parquet(images)
    rows.select("path", predict("image").alias("answer")).select("path", "answer.*").write.parquet(answers)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:4])
