"""Save a network to a folder with config.json and model.safetensors, and load it again. Nothing is pickled."""

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

MODEL_CARD = "README.md"
"""File with the model card."""
GENERATED_CARD_MARK = "<!-- This file is rewritten when the model is saved. To keep your changes, delete this line. -->"
"""Line that marks a generated model card. A card without it was written by the user and is never overwritten."""
OLD_GENERATED_CARD_MARK = "<!-- Written with the model, and again when it is saved again."
"""Start of the same line in model cards of earlier versions, including those of the shipped networks."""
MODEL_CARD_TEMPLATE = (
    """\
---
{{ card_data }}
---

A [TIGraNet]({{ paper_url }}) image classifier, which is invariant to rotations and shifts of the image.

```python
from tigranet import TIGraNet
net = TIGraNet.from_pretrained("path/to/this/folder")
```

{{ about | default("", true) }}
"""
    + GENERATED_CARD_MARK
    + "\n"
)
"""Template of the model card, in Jinja."""
SHIPPED_FOLDER = Path(__file__).parent / "weights"
"""Folder with the trained networks that are part of the package, one sub-folder per network."""


class Pretrained(
    ModelHubMixin,
    library_name="tigranet",
    license="mit",
    tags=["image-classification"],
    paper_url="https://proceedings.mlr.press/v70/khasanova17a.html",
    model_card_template=MODEL_CARD_TEMPLATE,
):
    """A mixin that saves an ``nn.Module`` to a folder, and loads it from a folder or from the Hugging Face Hub.

    The module must keep its constructor's arguments in ``self.config``, as JSON values.

    It extends the Hub's own mixin in three ways. Nothing is ever unpickled. The weights must fit the network exactly.
    An incomplete file never replaces a good one: the weights carry the checksum of their configuration, so a folder
    whose two files do not belong together, for example after a crash while saving, is rejected.
    """

    config: dict[str, Any]
    """The constructor's arguments as JSON values."""

    def save_pretrained(self, save_directory: str | Path, **kwargs: Any) -> str | None:
        """Save the network to a folder.

        Every file is first written completely to a temporary folder and then moved into place. A model card that the
        user has written is kept.

        Args:
            save_directory: The folder. It is created if it does not exist.
            **kwargs: Passed on to ``huggingface_hub.ModelHubMixin.save_pretrained``.

        Returns:
            The address of the commit if ``push_to_hub=True`` is passed, None otherwise.

        Raises:
            NotADirectoryError: If ``save_directory`` is a file.
        """
        target = Path(save_directory)
        if target.exists() and not target.is_dir():
            raise NotADirectoryError(f"expected a folder to save the model to, got the file '{target}'")
        is_new_folder = not target.exists()
        target.mkdir(parents=True, exist_ok=True)
        kwargs.setdefault("repo_id", target.resolve().name)
        try:
            with tempfile.TemporaryDirectory(dir=target, prefix=".saving-") as staging_folder:
                commit_address: str | None = super().save_pretrained(staging_folder, **kwargs)
                files = [WEIGHTS, CONFIG]
                if _may_overwrite_card(target / MODEL_CARD):
                    files.append(MODEL_CARD)
                for file in files:
                    os.replace(Path(staging_folder, file), target / file)
        except BaseException:
            if is_new_folder:
                target.rmdir()
            raise
        return commit_address

    def _save_pretrained(self, save_directory: Path) -> None:
        """Write the configuration and the weights, as :meth:`save_pretrained` of the Hub's mixin requires."""
        assert isinstance(self, nn.Module)
        config_file, weights_file = save_directory / CONFIG, save_directory / WEIGHTS
        config_file.write_text(json.dumps(self.config, indent=2) + "\n")
        state = {name: tensor.detach().cpu().contiguous() for name, tensor in self.state_dict().items()}
        metadata = {"format": "pt", "config_sha256": _checksum(self.config)}
        safetensors.torch.save_file(state, weights_file, metadata)
        weights_file.chmod(config_file.stat().st_mode)  # safetensors makes the file readable for its owner only.

    @classmethod
    def from_pretrained(cls: type[T], pretrained_model_name_or_path: str | Path, **kwargs: Any) -> T:
        """Load a network in evaluation mode.

        Args:
            pretrained_model_name_or_path: A folder, the name of a network that is part of the package (see
                :func:`shipped`), or ``owner/name`` of a model on the Hugging Face Hub.
            **kwargs: Passed on to ``huggingface_hub.ModelHubMixin.from_pretrained``, for example ``revision``,
                ``token`` or ``map_location`` (``"cpu"`` by default).

        Returns:
            The network.

        Raises:
            FileNotFoundError: If there is no model of this name, or if one of its files is missing.
            ValueError: If a file is damaged, or if the files do not belong together.
        """
        name = str(pretrained_model_name_or_path).rstrip("/")
        if name in shipped() and not Path(name).is_dir():
            name = str(SHIPPED_FOLDER / name)
        if Path(name).is_dir():
            _check_model_folder(Path(name), cls.__name__)
        elif Path(name).exists() or not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", name):
            names = f", or one of the networks shipped with tigranet: {', '.join(shipped())}" if shipped() else ""
            raise FileNotFoundError(f"no saved model at '{name}': expected a folder with {CONFIG} and {WEIGHTS}{names}")
        try:
            return super().from_pretrained(name, **kwargs)
        except (HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled) as error:
            reason = str(error).strip().splitlines()[0]
            raise FileNotFoundError(f"'{name}' is neither a folder nor a model on the Hub: {reason}") from None

    @classmethod
    def _from_pretrained(
        cls: type[T], *, model_id: str, map_location: str = "cpu", config: dict[str, Any] | None = None, **kwargs: Any
    ) -> T:
        """Build the network and load its weights, as :meth:`from_pretrained` of the Hub's mixin requires."""
        hub_options = {
            key: kwargs.pop(key) for key in ("revision", "cache_dir", "force_download", "local_files_only", "token")
        }
        config_file, weights_file = (
            Path(model_id, file) if Path(model_id).is_dir() else Path(hf_hub_download(model_id, file, **hub_options))
            for file in (CONFIG, WEIGHTS)
        )
        model = cls._build(config_file, set(config or {}), kwargs)
        assert isinstance(model, nn.Module)
        try:
            with safetensors.safe_open(weights_file, framework="pt", device=map_location) as file:
                checksum = (file.metadata() or {}).get("config_sha256")
                state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        except safetensors.SafetensorError as error:
            raise ValueError(f"'{weights_file}' is not a complete safetensors file: {error}") from None
        if checksum is not None and checksum != _checksum(json.loads(config_file.read_text())):
            raise ValueError(
                f"'{config_file}' is not the configuration that {WEIGHTS} was saved with: save the model again"
            )
        try:
            model.load_state_dict(state, assign=True)
        except RuntimeError as error:
            raise ValueError(f"'{weights_file}' does not fit {CONFIG}: {error}") from None
        return model.eval()

    @classmethod
    def _build(cls: type[T], config_file: Path, config_keys: set[str], arguments: dict[str, Any]) -> T:
        """Call the constructor with arguments from ``config_file``. The file is named in every error."""
        parameters = inspect.signature(cls).parameters
        required = {name for name, parameter in parameters.items() if parameter.default is inspect.Parameter.empty}
        invalid_file = f"'{config_file}' is not a configuration of {cls.__name__}"
        for problem, keys in (("unknown", config_keys - set(parameters)), ("missing", required - set(arguments))):
            if keys:
                raise ValueError(f"{invalid_file}: {problem} {sorted(keys)}")
        try:
            return cls(**arguments)
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"{invalid_file}: {error}") from None


def shipped() -> list[str]:
    """List the trained networks that are part of the package.

    Returns:
        Their names, for :meth:`Pretrained.from_pretrained`.
    """
    return sorted(path.parent.name for path in SHIPPED_FOLDER.glob(f"*/{CONFIG}"))


def _check_model_folder(folder: Path, class_name: str) -> None:
    """Raise an error if a file is missing, or if the configuration is not a JSON object."""
    for file in (CONFIG, WEIGHTS):
        if not (folder / file).is_file():
            raise FileNotFoundError(f"expected a saved model with {CONFIG} and {WEIGHTS}, '{folder}' has no {file}")
    try:
        config = json.loads((folder / CONFIG).read_text())
    except ValueError as error:
        raise ValueError(f"'{folder / CONFIG}' is not JSON: {error}") from None
    if not isinstance(config, dict):
        raise ValueError(
            f"'{folder / CONFIG}' is not a configuration of {class_name}: "
            f"expected a JSON object, got {type(config).__name__}"
        )


def _may_overwrite_card(card: Path) -> bool:
    """Whether the model card does not exist or was generated."""
    if not card.exists():
        return True
    text = card.read_text(encoding="utf-8", errors="replace")
    return GENERATED_CARD_MARK in text or OLD_GENERATED_CARD_MARK in text


def _checksum(config: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()
