"""Dynamic quantisation of exported networks beside half precision: ``python -m benchmarks.quantised``."""

import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import QuantType, quantize_dynamic

from tigranet import TIGraNet
from tigranet.data import load
from tigranet.export.model_interface import model_interface
from tigranet.export.onnx_file import build_onnx

CASES = ("oriented-mnist-rot", "mnist-rot-mini"), ("paper-mnist-rot", "mnist-rot-mini")
"""Networks, and data sets with their classes."""
LAYERS = {"fc": ["Gemm", "MatMul"], "fc and conv": ["Gemm", "MatMul", "Conv"]}
"""The ONNX operators that are quantised. onnxruntime turns Gemm into MatMul first."""
BATCH_SIZE = 16


def write_versions(network: TIGraNet, folder: Path) -> dict[str, Path]:
    """Write a network in single precision, in half precision and in 8 bits, and return the files by name."""
    interface = model_interface(network.float())
    files = {name: folder / f"{name}.onnx" for name in ("float32", "float16", *(f"int8, {part}" for part in LAYERS))}
    for precision in ("float32", "float16"):
        onnx.save(build_onnx(interface, precision), files[precision])
    for part, operators in LAYERS.items():
        # onnxruntime has integer convolutions for unsigned weights only.
        kind = QuantType.QUInt8 if "Conv" in operators else QuantType.QInt8
        options = {"op_types_to_quantize": operators, "weight_type": kind, "per_channel": "Conv" not in operators}
        quantize_dynamic(files["float32"], files[f"int8, {part}"], **options)
    return files


def predict(file: Path, images: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the probabilities of images, and the seconds of the second of two passes on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    for _ in range(2):
        start = time.perf_counter()
        batches = [images[first : first + BATCH_SIZE] for first in range(0, len(images), BATCH_SIZE)]
        logits = np.concatenate([session.run(None, {"images": batch})[0] for batch in batches])
        seconds = time.perf_counter() - start
    exponentials = np.exp(logits - logits.max(1, keepdims=True))
    return exponentials / exponentials.sum(1, keepdims=True), seconds


def main() -> None:
    """Print size, accuracy, loss and time of every version, on all test images as they are."""
    for name, data in CASES:
        test = load(data, seed=0).test
        images, labels = test.images.numpy(), test.labels.numpy()
        with tempfile.TemporaryDirectory() as folder:
            files = write_versions(TIGraNet.from_pretrained(name), Path(folder))
            expected, reference_seconds = predict(files["float32"], images)
            print(f"{name}, {len(images)} images of {data}")
            for version, file in files.items():
                actual, seconds = predict(file, images)
                answers = actual.argmax(1)
                print(
                    f"  {version:18} {file.stat().st_size / 1e3:6.0f} kB"
                    f"  accuracy {100 * (answers == labels).mean():6.2f} %"
                    f"  labels changed {100 * (answers != expected.argmax(1)).mean():5.2f} %"
                    f"  largest difference {abs(actual - expected).max():.4f}  time {seconds / reference_seconds:.2f}"
                )


if __name__ == "__main__":
    main()
