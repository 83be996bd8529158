"""A network as a folder: config.json and model.safetensors, no pickle."""

import hashlib
import inspect
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any, TypeVar

import safetensors
import safetensors.torch
from huggingface_hub import ModelHubMixin, hf_hub_download
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled
from torch import nn

from tigranet.model_folder import CONFIG, WEIGHTS

T = TypeVar("T", bound="Pretrained")

CARD = """\
---
{{ card_data }}
---

A [TIGraNet]({{ paper_url }}) classifier, which does not care how the image is turned or shifted.

```python
from tigranet import TIGraNet
net = TIGraNet.from_pretrained("path/to/this/folder")
```

{{ about | default("", true) }}
<!-- Written with the model, and again when it is saved again. Without this line the text is yours and stays. -->
"""
SHIPPED = Path(__file__).parent / "weights"
"""Trained networks that come with the package, a folder each."""


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

    Beyond what the Hub's own mixin does: nothing is ever unpickled, the weights must fit, and no half-written
    file replaces a good one. The weights carry the checksum of their configuration, so a folder in which
    the two do not belong together, as after a crash between the two moves, is refused.
    """

    config: dict[str, Any]

    def save_pretrained(self, save_directory: str | Path, **kwargs: Any) -> str | None:
        """Write the folder: every file whole under another name first, then each is moved into place."""
        target = Path(save_directory)
        if target.exists() and not target.is_dir():
            raise NotADirectoryError(f"a model is saved to a folder, got the file '{target}'")
        new = not target.exists()
        target.mkdir(parents=True, exist_ok=True)
        kwargs.setdefault("repo_id", target.resolve().name)
        try:
            with tempfile.TemporaryDirectory(dir=target, prefix=".saving-") as staged:
                answer: str | None = super().save_pretrained(staged, **kwargs)
                for file in (WEIGHTS, CONFIG):
                    os.replace(Path(staged, file), target / file)
                written, there = Path(staged, "README.md"), target / "README.md"
                if not there.exists() or CARD.splitlines()[-1] in there.read_text():  # else somebody wrote it
                    os.replace(written, there)
        except BaseException:
            if new:
                target.rmdir()
            raise
        return answer

    def _save_pretrained(self, save_directory: Path) -> None:
        assert isinstance(self, nn.Module)
        (save_directory / CONFIG).write_text(json.dumps(self.config, indent=2) + "\n")
        state = {name: tensor.detach().cpu().contiguous() for name, tensor in self.state_dict().items()}
        metadata = {"format": "pt", "config_sha256": _checksum(self.config)}
        safetensors.torch.save_file(state, save_directory / WEIGHTS, metadata)
        (save_directory / WEIGHTS).chmod(
            (save_directory / CONFIG).stat().st_mode
        )  # safetensors lets the owner alone read

    @classmethod
    def from_pretrained(cls: type[T], pretrained_model_name_or_path: str | Path, **kwargs: Any) -> T:
        """Load a network, in evaluation mode: from a folder, by name from those that come with the package (see
        :func:`shipped`), or by ``owner/name`` from the Hub."""
        name = str(pretrained_model_name_or_path).rstrip("/")
        if name in shipped() and not Path(name).is_dir():
            name = str(SHIPPED / name)
        if Path(name).is_dir():
            for file in (CONFIG, WEIGHTS):
                if not Path(name, file).is_file():
                    raise FileNotFoundError(f"a saved model has {CONFIG} and {WEIGHTS}, '{name}' has no {file}")
            try:
                config = json.loads(Path(name, CONFIG).read_text())
            except ValueError as error:
                raise ValueError(f"'{name}/{CONFIG}' is not JSON: {error}") from None
            if not isinstance(config, dict):
                raise ValueError(f"'{name}/{CONFIG}' is not a configuration of {cls.__name__}: it holds no names")
        elif Path(name).exists() or not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", name):
            others = f"; these come with tigranet: {', '.join(shipped())}" if shipped() else ""
            wanted = f"a saved model is a folder with {CONFIG} and {WEIGHTS}"
            raise FileNotFoundError(f"{wanted}, there is none at '{name}'{others}")
        try:
            return super().from_pretrained(name, **kwargs)
        except (HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled) as error:
            reason = str(error).strip().splitlines()[0]
            raise FileNotFoundError(f"'{name}' is neither a folder nor a model found on the Hub: {reason}") from None

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
        try:
            model = cls(**kwargs)
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"'{config_file}' is not a configuration of {cls.__name__}: {error}") from None
        assert isinstance(model, nn.Module)
        try:
            with safetensors.safe_open(weights_file, framework="pt", device=map_location) as file:
                checksum = (file.metadata() or {}).get("config_sha256")
                state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        except safetensors.SafetensorError as error:
            raise ValueError(f"'{weights_file}' is not a whole safetensors file: {error}") from None
        if checksum is not None and checksum != _checksum(json.loads(config_file.read_text())):
            raise ValueError(
                f"'{config_file}' is not the configuration that {WEIGHTS} was saved with: save the model again"
            )
        try:
            model.load_state_dict(state, assign=True)
        except RuntimeError as error:
            raise ValueError(f"'{weights_file}' does not fit {CONFIG}: {error}") from None
        return model.eval()


def shipped() -> list[str]:
    """The names of the trained networks that come with the package."""
    return sorted(path.parent.name for path in SHIPPED.glob(f"*/{CONFIG}"))


def _checksum(config: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()
