"""The look of a page: style and skeleton, shared by the report and the worked examples."""

from __future__ import annotations

from html import escape

__all__ = ["page"]

STYLE = """
:root { color-scheme: light; }
body { font: 1rem/1.55 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; color: #1f2933;
  background: #fff; max-width: 58rem; margin: 2.5rem auto 4rem; padding: 0 1.25rem; }
h1, h2, h3 { color: #1b3a4b; line-height: 1.25; }
h1 { font-size: 1.9rem; margin-bottom: .6rem; }
h2 { font-size: 1.4rem; margin-top: 2.8rem; border-bottom: 1px solid #cfd8dd;
  padding-bottom: .3rem; }
h3 { font-size: 1.1rem; margin-top: 2rem; }
a { color: #1d5f86; }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
code { font-size: .9em; }
pre { font-size: .82rem; line-height: 1.4; overflow-x: auto; padding: .6rem .9rem;
  margin: .5rem 0; }
img { max-width: 100%; height: auto; }
figure { margin: 1.2rem 0; text-align: center; }
figcaption, .privrank-table p { font-size: .88rem; color: #52606d; margin: .3rem 0; }
figcaption { text-align: left; }
.banner, blockquote { border-left: 4px solid #c8553d; background: #fbf3f1;
  padding: .7rem 1rem; margin: 1.2rem 0; }
blockquote p { margin: 0; }
.privrank-table { overflow-x: auto; margin: 1.2rem 0; }
.privrank-table br { display: none; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums;
  margin: 0 0 .8rem; }
.privrank-table table { width: 100%; border-top: 2px solid #1b3a4b;
  border-bottom: 2px solid #1b3a4b; }
.privrank-table table:not(:last-of-type) { border-bottom: none; margin: 0; }
.privrank-table table:not(:last-of-type) :is(th, td) { text-align: left; }
.privrank-table table:last-of-type tr:first-child > * { border-bottom: 1px solid #9fb3c8; }
caption { font-weight: 600; text-align: left; padding: .3rem 0; }
th, td { padding: .2rem .6rem; text-align: right; vertical-align: top; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
th { font-weight: 600; }
@media print { body { max-width: none; margin: 0; } h2 { break-before: page; } }
"""


def page(title: str, body: str, style: str = "") -> str:
    """Return a complete HTML page, which loads nothing: the report's style, then rules of `style`."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )
