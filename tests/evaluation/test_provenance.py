import json

import torch

import tigranet
from tigranet.evaluation.provenance import machine, versions


def test_versions_and_machine_are_recorded():
    assert versions()["tigranet"] == tigranet.__version__
    assert versions()["torch"] == torch.__version__
    assert machine()["threads"] == torch.get_num_threads()
    assert machine()["cpu"]
    json.dumps([versions(), machine()])
