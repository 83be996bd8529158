import json
from pathlib import Path

from tigranet.data import UnreadableFile
from tigranet.evaluation.suggestions import ImageSuggestion, ImageSuggestions, LabelSuggestion, LabelSuggestions


def test_suggestions_become_json():
    unreadable = (UnreadableFile(Path("broken.png"), "empty"),)
    image = ImageSuggestion("a.png", "nut", 0.5, None, 0.0, 0.5)
    images = ImageSuggestions((image,), examined=3, labelled=1, duplicates=1, unreadable_files=unreadable)
    label = LabelSuggestion(None, 4, "nut", "bolt", 0.9, "predicted")
    labels = LabelSuggestions((label,), 5, 80.0, 0, ("rare",), 1, unreadable_files=unreadable)
    for result, name in ((images, "images"), (labels, "labels")):
        values = json.loads(json.dumps(result.to_json()))
        assert values["unreadable_files"] == [{"path": "broken.png", "reason": "empty"}]
        assert list(values[name][0].values()) == list(vars(getattr(result, name)[0]).values())
