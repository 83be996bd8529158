"""Measurements that only some tables need, in addition to those of every training."""

from collections.abc import Collection
from dataclasses import asdict

from torch import nn

from tigranet.data import DataSet
from tigranet.evaluation.classification_scores import classification_scores
from tigranet.evaluation.rotation_protocol import mean_colour, rotation_protocol
from tigranet.reproduction.experiment import Column
from tigranet.reproduction.results_file import Record

PROTOCOL_COLUMNS: frozenset[Column] = frozenset(("protocol", "at_45", "at_90"))
"""Columns that need the accuracies at fixed angles."""
SCORE_COLUMNS: frozenset[Column] = frozenset(("balanced", "log_loss"))
"""Columns that need the probabilities of all classes."""


def measure_columns(network: nn.Module, data: DataSet, columns: Collection[Column]) -> Record:
    """Measure what some columns of a table need.

    Args:
        network: The trained network.
        data: The data set; its test images are measured.
        columns: The columns of the table.

    Returns:
        The measurements by name, to be added to the record of the run. It is empty if no column needs any.
    """
    record: Record = {}
    if PROTOCOL_COLUMNS.intersection(columns):
        mean = mean_colour(data.train.images)
        record["rotations"] = rotation_protocol(network, data.test.images, data.test.labels, mean).to_json()
    if SCORE_COLUMNS.intersection(columns):
        record["scores"] = asdict(classification_scores(network, data.test, data.class_names))
    return record
