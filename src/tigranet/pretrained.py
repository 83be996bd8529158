"""A network as a folder: config.json and model.safetensors, no pickle."""

import hashlib
import inspect
import json
import os
import tempfile
from pathlib import Path
from typing import Any, TypeVar

import safetensors
import safetensors.torch
from huggingface_hub import ModelHubMixin, hf_hub_download
from torch import nn

T = TypeVar("T", bound="Pretrained")

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
CARD = """\
---
{{ card_data }}
---

A [TIGraNet]({{ paper_url }}) classifier, which does not care how the image is turned or shifted.

```python
from tigranet import TIGraNet
net = TIGraNet.from_pretrained("path/to/this/folder")
```

```json
{{ config }}
```
"""


class Pretrained(
    ModelHubMixin,
    library_name="tigranet",
    license="mit",
    tags=["image-classification"],
    paper_url="https://proceedings.mlr.press/v70/khasanova17a.html",
    model_card_template=CARD,
):
    """A mixin for an ``nn.Module`` that keeps its constructor's arguments in ``self.config``: saves it to a
    folder, loads it from one or from the Hugging Face Hub, and pushes it there.

    Beyond what the Hub's own mixin does: nothing is ever unpickled, the weights must fit, and a failure
    while saving leaves the old files as they were. The weights carry the checksum of their configuration,
    so a folder in which the two do not belong together is refused.
    """

    config: dict[str, Any]

    def save_pretrained(self, save_directory: str | Path, **kwargs: Any) -> str | None:
        """Write the folder: all files beside it first, then each is moved into place."""
        target = Path(save_directory)
        if target.exists() and not target.is_dir():
            raise NotADirectoryError(f"a model is saved to a folder, got the file '{target}'")
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as staged:
            answer: str | None = super().save_pretrained(staged, **kwargs)
            target.mkdir(exist_ok=True)
            for file in (WEIGHTS, CONFIG):
                os.replace(Path(staged, file), target / file)
            if not (target / "README.md").exists():  # a card that somebody wrote stays
                os.replace(Path(staged, "README.md"), target / "README.md")
        return answer

    def _save_pretrained(self, save_directory: Path) -> None:
        assert isinstance(self, nn.Module)
        config = json.dumps(self.config, indent=2) + "\n"
        (save_directory / CONFIG).write_text(config)
        state = {name: tensor.detach().cpu().contiguous() for name, tensor in self.state_dict().items()}
        safetensors.torch.save_file(
            state, save_directory / WEIGHTS, {"format": "pt", "config_sha256": _checksum(config)}
        )
        (save_directory / WEIGHTS).chmod(
            (save_directory / CONFIG).stat().st_mode
        )  # safetensors writes for the owner alone

    def generate_model_card(self, *args: Any, **kwargs: Any) -> Any:
        return super().generate_model_card(*args, config=json.dumps(self.config, indent=2), **kwargs)

    @classmethod
    def from_pretrained(cls: type[T], pretrained_model_name_or_path: str | Path, **kwargs: Any) -> T:
        """Load a network, in evaluation mode, from a folder or, by ``owner/name``, from the Hub."""
        name = str(pretrained_model_name_or_path)
        if Path(name).is_dir():
            for file in (CONFIG, WEIGHTS):
                if not Path(name, file).is_file():
                    raise FileNotFoundError(f"a saved model has {CONFIG} and {WEIGHTS}, '{name}' has no {file}")
        elif Path(name).exists() or name.count("/") != 1 or name.startswith((".", "/", "~")):
            raise FileNotFoundError(f"a saved model is a folder with {CONFIG} and {WEIGHTS}, there is none at '{name}'")
        try:
            return super().from_pretrained(name, **kwargs)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"'{name}/{CONFIG}' is not JSON: {error}") from None

    @classmethod
    def _from_pretrained(
        cls: type[T], *, model_id: str, map_location: str = "cpu", config: dict[str, Any] | None = None, **kwargs: Any
    ) -> T:
        hub = {key: kwargs.pop(key) for key in ("revision", "cache_dir", "force_download", "local_files_only", "token")}
        config_file, weights_file = (
            Path(model_id, file) if Path(model_id).is_dir() else Path(hf_hub_download(model_id, file, **hub))
            for file in (CONFIG, WEIGHTS)
        )
        parameters = inspect.signature(cls).parameters
        required = {name for name, parameter in parameters.items() if parameter.default is inspect.Parameter.empty}
        for what, keys in (("unknown", set(config or {}) - set(parameters)), ("missing", required - set(kwargs))):
            if keys:
                raise ValueError(f"'{config_file}' is not a configuration of {cls.__name__}: {what} {sorted(keys)}")
        model = cls(**kwargs)
        assert isinstance(model, nn.Module)
        try:
            with safetensors.safe_open(weights_file, framework="pt", device=map_location) as file:
                checksum = (file.metadata() or {}).get("config_sha256")
                state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        except safetensors.SafetensorError as error:
            raise ValueError(f"'{weights_file}' is not a whole safetensors file: {error}") from None
        if checksum is not None and checksum != _checksum(config_file.read_text()):
            raise ValueError(
                f"'{config_file}' is not the configuration that {WEIGHTS} was saved with: save the model again"
            )
        try:
            model.load_state_dict(state, assign=True)
        except RuntimeError as error:
            raise ValueError(f"'{weights_file}' does not fit {CONFIG}: {error}") from None
        return model.eval()


def _checksum(config: str) -> str:
    return hashlib.sha256(config.encode()).hexdigest()
