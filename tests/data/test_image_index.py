from tigranet.data.image_index import PART_NAMES


def test_every_name_of_a_part_is_lower_case_and_means_one_of_three_parts():
    assert all(name == name.lower() for name in PART_NAMES)
    assert set(PART_NAMES.values()) == {"train", "validation", "test"}
    assert all(PART_NAMES[part] == part for part in PART_NAMES.values())
