"""Sphinx: MyST pages, numpydoc reference, a gallery of examples that run at every build."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import lptml

os.environ.setdefault("OMP_NUM_THREADS", "2")
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "_ext")]  # pictures, mathml

project = "lptml"
author = "The lptml developers"
copyright = author
release = version = lptml.__version__

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "auto_examples/*.ipynb", "auto_examples/*.py", "auto_examples/*.zip"]
suppress_warnings = ["config.cache"]  # the gallery's settings hold functions, which cannot be cached
templates_path = ["_templates"]
nitpicky = False

html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"lptml {release}"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#2457c5", "color-brand-content": "#2457c5"},
    "dark_css_variables": {"color-brand-primary": "#7aa7ff", "color-brand-content": "#7aa7ff"},
}

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's Parameters sections say the types in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 5,
    "show_memory": False,
    "abort_on_example_error": False,
}


def setup(app):
    """Draw the pictures first; unlink what inherited docstrings refer to in scikit-learn's pages."""

    def draw(app):
        from pictures import draw_all

        draw_all(Path(app.srcdir) / "generated" / "pictures")

    def unlink(app, what, name, obj, options, lines):
        lines[:] = [re.sub(r":ref:`([^<`]*?)\s*(<[^>`]*>)?`", r"\1", line) for line in lines]

    app.connect("builder-inited", draw)
    app.connect("autodoc-process-docstring", unlink)
