"""Settings of the documentation site; `make docs` builds it and takes every warning for an error."""

import importlib.util
import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS / "_extensions"))

project = "whileai"
author = "The whileai developers"
copyright = "The whileai developers, Apache-2.0"
release = version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "markdown_docstrings",
    "sphinx.ext.napoleon",
    "reference_pages",
]
exclude_patterns = ["_build", "_extensions"]
html_theme = "furo"
html_title = f"whileai {release}"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

suppress_warnings = ["ref.python"]  # two classes of one name in two packages: the link goes to the nearer one
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": False}
autodoc_typehints = "signature"
add_module_names = False
# Extras that are not installed here are stood in for, so that the modules that need them are described all the same.
OPTIONAL = [
    "datasets",
    "lm_eval",
    "math_verify",
    "polars",
    "pyarrow",
    "rensa",
    "tqdm",
    "transformers",
    "trl",
    "wordllama",
]
autodoc_mock_imports = [name for name in OPTIONAL if importlib.util.find_spec(name) is None]
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # an Attributes section describes the fields once, beside what autodoc finds itself
