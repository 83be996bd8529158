"""Configuration of the documentation site. ``make docs`` builds it.

The source folder of Sphinx is the repository, so that pages, results and CONTRIBUTING.md link to each other in the same
way on the site and in a checkout.
"""

import sys
from pathlib import Path

import tigranet

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER / "extensions"))

import gallery_programs  # noqa: E402

project = "tigranet"
author = "the tigranet developers"
project_copyright = author
release = version = tigranet.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "api_names",
    "command_reference",
    "gallery_programs",
    "mathml",
    "public_names",
]
root_doc = "docs/index"
include_patterns = ["docs/**", "results/**.md", "examples/browser/README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
exclude_patterns = [
    ".*", "benchmarks", "build", "demo", "examples/browser/node_modules", "explorations", "src", "tests", "torture",
    "docs/_root", "docs/_static", "docs/extensions", "docs/gallery/*/**", "docs/gallery/*.py",
]  # fmt: skip
highlight_language = "none"
smartquotes_action = "D"  # dashes only: quoted commands keep their quotes
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_custom_sections = [("Shape", "notes_style")]
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "docs/gallery",
    "default_thumb_file": str(FOLDER / "images" / "rotated-digits.png"),
    "filename_pattern": gallery_programs.PATTERN,
    "reset_argv": gallery_programs.Arguments(),
    "image_scrapers": (gallery_programs.WrittenPictures(),),
    "reset_modules": (),
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 10_000,
    "notebook_extensions": set(),
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = f"tigranet {release}"
html_static_path = ["_static"]
html_extra_path = ["_root"]
html_css_files = ["style.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "header_links_before_dropdown": 6,
    "logo": {"text": "tigranet"},
    "navbar_align": "left",
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"docs/index": []}
