"""Plankton of the National Data Science Bowl (2014): grey images on white, in 121 classes of very different sizes."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int, UInt8

from tigranet.data.npz_file import open_npz
from tigranet.data.sources.array_checks import check_images, count_labels
from tigranet.data.sources.source import ImagePool, Source, labelled_bytes

NPZ_NAME = "plankton64.npz"
SIZE = 64
"""Side length in pixels. The original images were padded with white to a square and resized."""
NUM_IMAGES = 30_336
_NAMES = """
acantharia_protist acantharia_protist_big_center acantharia_protist_halo amphipods appendicularian_fritillaridae
appendicularian_s_shape appendicularian_slight_curve appendicularian_straight artifacts artifacts_edge
chaetognath_non_sagitta chaetognath_other chaetognath_sagitta chordate_type1 copepod_calanoid copepod_calanoid_eggs
copepod_calanoid_eucalanus copepod_calanoid_flatheads copepod_calanoid_frillyAntennae copepod_calanoid_large
copepod_calanoid_large_side_antennatucked copepod_calanoid_octomoms copepod_calanoid_small_longantennae
copepod_cyclopoid_copilia copepod_cyclopoid_oithona copepod_cyclopoid_oithona_eggs copepod_other crustacean_other
ctenophore_cestid ctenophore_cydippid_no_tentacles ctenophore_cydippid_tentacles ctenophore_lobate
decapods detritus_blob detritus_filamentous detritus_other diatom_chain_string diatom_chain_tube
echinoderm_larva_pluteus_brittlestar echinoderm_larva_pluteus_early echinoderm_larva_pluteus_typeC
echinoderm_larva_pluteus_urchin echinoderm_larva_seastar_bipinnaria echinoderm_larva_seastar_brachiolaria
echinoderm_seacucumber_auricularia_larva echinopluteus ephyra euphausiids euphausiids_young fecal_pellet
fish_larvae_deep_body fish_larvae_leptocephali fish_larvae_medium_body fish_larvae_myctophids fish_larvae_thin_body
fish_larvae_very_thin_body heteropod hydromedusae_aglaura hydromedusae_bell_and_tentacles hydromedusae_h15
hydromedusae_haliscera hydromedusae_haliscera_small_sideview hydromedusae_liriope hydromedusae_narco_dark
hydromedusae_narco_young hydromedusae_narcomedusae hydromedusae_other hydromedusae_partial_dark hydromedusae_shapeA
hydromedusae_shapeA_sideview_small hydromedusae_shapeB hydromedusae_sideview_big hydromedusae_solmaris
hydromedusae_solmundella hydromedusae_typeD hydromedusae_typeD_bell_and_tentacles hydromedusae_typeE
hydromedusae_typeF invertebrate_larvae_other_A invertebrate_larvae_other_B jellies_tentacles polychaete
protist_dark_center protist_fuzzy_olive protist_noctiluca protist_other protist_star pteropod_butterfly
pteropod_theco_dev_seq pteropod_triangle radiolarian_chain radiolarian_colony shrimp-like_other shrimp_caridean
shrimp_sergestidae shrimp_zoea siphonophore_calycophoran_abylidae siphonophore_calycophoran_rocketship_adult
siphonophore_calycophoran_rocketship_young siphonophore_calycophoran_sphaeronectes
siphonophore_calycophoran_sphaeronectes_stem siphonophore_calycophoran_sphaeronectes_young siphonophore_other_parts
siphonophore_partial siphonophore_physonect siphonophore_physonect_young stomatopod tornaria_acorn_worm_larvae
trichodesmium_bowtie trichodesmium_multiple trichodesmium_puff trichodesmium_tuft trochophore_larvae
tunicate_doliolid tunicate_doliolid_nurse tunicate_partial tunicate_salp tunicate_salp_chains
unknown_blobs_and_smudges unknown_sticks unknown_unclassified
"""
CLASSES = tuple(_NAMES.split())
"""In alphabetical order, as in ``class_names`` of the file."""


class Plankton(NamedTuple):
    """All labelled images of the competition, in grey."""

    images: UInt8[np.ndarray, "images 64 64"]
    """Pixels."""
    labels: Int[np.ndarray, " images"]
    """Positions in ``CLASSES``."""


def load_plankton(folder: Path) -> Plankton:
    """Load the plankton from a data folder.

    Args:
        folder: The data folder.

    Returns:
        The images.

    Raises:
        FileNotFoundError: If the plankton is not in the folder.
        ValueError: If the file is damaged, or has other images or classes.
    """
    path = folder / NPZ_NAME
    if not path.exists():
        raise FileNotFoundError(
            f"there is no plankton in '{folder}': put {NPZ_NAME} there, with the arrays images, label and class_names, "
            "or set TIGRANET_DATA to another folder"
        )
    with open_npz(path) as arrays:
        check_images("plankton", path, arrays.header("images"), (NUM_IMAGES, SIZE, SIZE))
        images, labels, names = (arrays.read(name) for name in ("images", "label", "class_names"))
    if tuple(names.tolist()) != CLASSES:
        raise ValueError(
            f"expected the {len(CLASSES)} classes of the competition in alphabetical order, '{CLASSES[0]}' to "
            f"'{CLASSES[-1]}', got {names.size} other names in class_names of '{path}'"
        )
    sizes = count_labels("plankton", path, labels, len(CLASSES))
    if len(labels) != NUM_IMAGES or 0 in sizes:
        raise ValueError(
            f"expected {NUM_IMAGES} labels of {len(CLASSES)} classes, got {len(labels)} of "
            f"{len(sizes) - sizes.count(0)} in '{path}'"
        )
    return Plankton(images, labels)


def _pool(folder: Path) -> ImagePool:
    plankton = load_plankton(folder)
    return ImagePool(labelled_bytes(plankton.images[:, None], plankton.labels))


PLANKTON = Source("plankton", lambda folder: (folder / NPZ_NAME).exists(), _pool)
"""All images of plankton."""
