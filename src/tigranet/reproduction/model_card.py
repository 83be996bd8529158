"""What a model card says of a model that was trained and measured here."""

from tigranet.reproduction.runner import Measured


def card(measured: Measured, images: int, command: str) -> str:
    """In Markdown: the data, the network, how it was trained, and the accuracy on test images, moved in every way."""
    rows = [("upright", f"{measured.test:.2f}", "")]
    rows += [
        (how, str(seen), f"{measured.robustness.drop(how):.2f}") for how, seen in measured.robustness.moved.items()
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"""\
## What it is

`{measured.architecture}`, {measured.parameters:,} parameters, boundary {measured.boundary}, trained on {images:,}
upright images of {measured.data}, never turned. It reads images with values in [0, 1].

Recipe: {measured.recipe}. Made by `{command}`.

## What it does

Accuracy in per cent on {measured.robustness.images:,} test images that it was not trained on, and what is lost when
they are moved:

| test images | accuracy | drop |
| --- | --- | --- |
{table}
"""
