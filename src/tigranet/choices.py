"""The names that users choose between, as types.

This module imports nothing else, so that the command line can describe its options without loading PyTorch.
"""

from typing import Literal

Boundary = Literal["free", "torus"]
"""What lies beyond the border of the pixel grid: nothing, or the opposite border."""
Window = Literal["none", "disc"]
"""What a network sees of an image: all of it, or a smooth disc that a rotation maps onto itself."""
Schedule = Literal["one-cycle", "cosine"]
"""How the learning rate changes during training."""
Keep = Literal["last", "best"]
"""Which weights a training returns: those of the last step, or those of the lowest validation loss."""
Log = Literal["csv", "tensorboard"]
"""Where losses are written during training."""
Accelerator = Literal["auto", "cpu", "gpu"]
"""The kind of device that a network is trained on."""
Precision = Literal["auto", "tf32", "32", "bf16", "16"]
"""The precision of matrix products during training."""
InferencePrecision = Literal["32", "auto", "bf16", "16"]
"""The precision of the graph layers of a trained network."""
WindowOption = Literal["auto", "none", "disc"]
"""The window that a user asks for: one of the two, or that which suits the training images and the network."""
ExportFormat = Literal["onnx", "torch", "triton", "mlflow"]
"""What a network is exported to: a file, or the folder of a server or of a registry of models."""
ExportPrecision = Literal["float32", "float16"]
"""The precision of the weights of an exported network."""
