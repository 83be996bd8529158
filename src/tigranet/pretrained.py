"""Save a network to a folder with config.json and model.safetensors, and load it again. Nothing is pickled."""

import hashlib
import inspect
import json
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import safetensors.torch
import torch
from huggingface_hub import ModelHubMixin, hf_hub_download
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled
from torch import nn

from tigranet.abandoned_files import STAGING_PREFIX, delete_abandoned_files
from tigranet.atomic_files import replace_file
from tigranet.json_file import read_json_object
from tigranet.model_folder import CONFIG, WEIGHTS
from tigranet.quoted_text import shorten
from tigranet.safetensors_header import read_safetensors_header
from tigranet.stored_weights import check_stored_weights, read_stored_weights

T = TypeVar("T", bound="Pretrained")

MAX_CONFIG_BYTES = 16_000_000
"""Largest configuration, enough for 100,000 class names of 100 characters."""
MAX_REASON_CHARACTERS = 1_000
"""Length beyond which an error of the constructor is shortened."""
HUB_OPTIONS = ("revision", "cache_dir", "force_download", "local_files_only", "token")
"""Arguments of :meth:`Pretrained.from_pretrained` that are passed on to the Hub."""
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

    The module must keep its constructor's arguments in ``self.config``, as JSON values. Its constructor checks their
    types and sizes, and keeps tensors as parameters or buffers only: it is called on the device "meta", to compare the
    shapes of the network with the file before any memory is used.

    It extends the Hub's own mixin in four ways. Nothing is ever unpickled. The weights must fit the network exactly.
    NaN and infinite weights are refused. An incomplete file never replaces a good one: the weights carry the checksum
    of their configuration, so a folder whose two files do not belong together, for example after a crash while saving,
    is rejected.
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
        delete_abandoned_files(target)
        try:
            with tempfile.TemporaryDirectory(dir=target, prefix=STAGING_PREFIX) as staging_folder:
                commit_address: str | None = super().save_pretrained(staging_folder, **kwargs)
                files = [WEIGHTS, CONFIG]
                if _may_overwrite_card(target / MODEL_CARD):
                    files.append(MODEL_CARD)
                for file in files:
                    replace_file(Path(staging_folder, file), target / file)
        except BaseException:
            if is_new_folder:
                with suppress(OSError):  # The first error matters more.
                    target.rmdir()
            raise
        return commit_address

    def _save_pretrained(self, save_directory: Path) -> None:
        """Write the configuration and the weights, as :meth:`save_pretrained` of the Hub's mixin requires."""
        assert isinstance(self, nn.Module)
        config_file, weights_file = save_directory / CONFIG, save_directory / WEIGHTS
        text = json.dumps(self.config, indent=2) + "\n"
        if len(text) > MAX_CONFIG_BYTES:
            raise ValueError(f"expected a configuration of at most {MAX_CONFIG_BYTES:,} bytes: use shorter class names")
        config_file.write_text(text)
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
            **kwargs: Options of the Hub (``revision``, ``token``, ``cache_dir``, ``force_download``,
                ``local_files_only``), the device of the weights as ``map_location`` (``"cpu"`` by default), and
                arguments of the constructor that replace those of the configuration.

        Returns:
            The network.

        Raises:
            FileNotFoundError: If there is no model of this name, or if one of its files is missing.
            ValueError: If a file is damaged, if the files do not belong together, or if a weight is NaN or infinite.
        """
        name = str(pretrained_model_name_or_path).rstrip("/")
        if name in shipped() and not Path(name).is_dir():
            name = str(SHIPPED_FOLDER / name)
        hub_options = {key: kwargs.pop(key) for key in HUB_OPTIONS if key in kwargs}
        if Path(name).is_dir():
            config_file, weights_file = _files_of_folder(Path(name))
        elif Path(name).exists() or not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", name):
            names = f", or one of the networks shipped with tigranet: {', '.join(shipped())}" if shipped() else ""
            raise FileNotFoundError(f"no saved model at '{name}': expected a folder with {CONFIG} and {WEIGHTS}{names}")
        else:
            config_file, weights_file = _files_of_hub(name, hub_options)
        device = str(kwargs.pop("map_location", "cpu"))
        return cls._load(config_file, weights_file, device, kwargs)

    @classmethod
    def _load(cls: type[T], config_file: Path, weights_file: Path, device: str, overrides: dict[str, Any]) -> T:
        """Compare the two files with each other and with the constructor, and only then load the weights."""
        config = read_json_object(config_file, MAX_CONFIG_BYTES, f"a configuration of {cls.__name__}")
        with torch.device("meta"):  # Shapes without values, which take no memory.
            model = cls._build(config_file, config, overrides)
        assert isinstance(model, nn.Module)
        header = read_safetensors_header(weights_file)
        checksum = header.metadata.get("config_sha256")
        if checksum is not None and checksum != _checksum(config):
            raise ValueError(
                f"'{config_file}' is not the configuration that {WEIGHTS} was saved with: save the model again"
            )
        check_stored_weights(weights_file, header.tensors, model.state_dict())
        weights = read_stored_weights(weights_file, device)
        model.load_state_dict(weights, assign=True)
        if any(tensor.is_meta for tensor in model.buffers()):  # Buffers that are computed, and never saved.
            model = cls._build(config_file, config, overrides)
            assert isinstance(model, nn.Module)
            model.load_state_dict(weights, assign=True)
        return model.eval()

    @classmethod
    def _build(cls: type[T], config_file: Path, config: dict[str, Any], overrides: dict[str, Any]) -> T:
        """Call the constructor with arguments from ``config_file``. The file is named in every error."""
        arguments = config | overrides
        parameters = inspect.signature(cls).parameters
        required = {name for name, parameter in parameters.items() if parameter.default is inspect.Parameter.empty}
        invalid_file = f"'{config_file}' is not a configuration of {cls.__name__}"
        for problem, keys in (("unknown", config.keys() - set(parameters)), ("missing", required - set(arguments))):
            if keys:
                raise ValueError(f"{invalid_file}: {problem} {shorten(str(sorted(keys)))}")
        try:
            return cls(**arguments)
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ValueError(f"{invalid_file}: {shorten(str(error), MAX_REASON_CHARACTERS)}") from None


def shipped() -> list[str]:
    """List the trained networks that are part of the package.

    Returns:
        Their names, for :meth:`Pretrained.from_pretrained`.
    """
    return sorted(path.parent.name for path in SHIPPED_FOLDER.glob(f"*/{CONFIG}"))


def _files_of_folder(folder: Path) -> tuple[Path, Path]:
    """Return the paths of configuration and weights, which must be regular files."""
    for file in (CONFIG, WEIGHTS):
        if not (folder / file).is_file():
            raise FileNotFoundError(f"expected a saved model with {CONFIG} and {WEIGHTS}, '{folder}' has no {file}")
    return folder / CONFIG, folder / WEIGHTS


def _files_of_hub(name: str, options: dict[str, Any]) -> tuple[Path, Path]:
    """Download configuration and weights from the Hub, unless they are in its cache, and return their paths."""
    try:
        return Path(hf_hub_download(name, CONFIG, **options)), Path(hf_hub_download(name, WEIGHTS, **options))
    except (HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled) as error:
        reason = str(error).strip().splitlines()[0]
        raise FileNotFoundError(f"'{name}' is neither a folder nor a model on the Hub: {reason}") from None


def _may_overwrite_card(card: Path) -> bool:
    """Whether the model card does not exist or was generated."""
    if not card.exists():
        return True
    text = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
    return GENERATED_CARD_MARK in text or OLD_GENERATED_CARD_MARK in text


def _checksum(config: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()
