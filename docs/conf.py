"""Settings of the documentation site, which `make docs` builds from this folder."""

from docutils import nodes
from latex2mathml.converter import convert

from privrank import __version__

project = "privrank"
author = "The privrank authors"
copyright = author
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
exclude_patterns = ["figures/*"]
nitpicky = True
# Docstrings name inner functions for readers of the code; they have no page here.
nitpick_ignore_regex = [
    (r"py:.*", r"privrank\..*"),
    (r"py:.*", r"[A-Z]\w+(\.\w+)?"),
]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
default_role = "literal"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "furo"
html_title = f"privrank {version}"
# Colours and fonts of the page that privrank.report writes (privrank/templates/style.css).
_FONTS = {
    "font-stack": 'system-ui, "Segoe UI", Helvetica, Arial, sans-serif',
    "font-stack--monospace": 'ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace',
}
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#1b3a4b",
        "color-brand-content": "#1d5f86",
        "color-brand-visited": "#1d5f86",
        "color-content-foreground": "#1f2933",
        **_FONTS,
    },
    "dark_css_variables": {
        "color-brand-primary": "#b9d3e2",
        "color-brand-content": "#7fbde0",
        "color-brand-visited": "#7fbde0",
        "color-content-foreground": "#dde3e7",
    },
}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"


def _formula(display):
    """Return a visitor that writes a formula as MathML, which browsers draw without a script."""

    def visit(self, node):
        self.body.append(convert(node.astext(), display=display))
        raise nodes.SkipNode

    return visit


def setup(app):
    """Register the writer of formulas."""
    app.add_html_math_renderer(
        "mathml", (_formula("inline"), None), (_formula("block"), None)
    )
