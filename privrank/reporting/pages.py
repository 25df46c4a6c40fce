"""The look of a page: style and skeleton, shared by the report and the worked examples."""

from __future__ import annotations

from html import escape

__all__ = ["page"]

STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --head: #1b3a4b; --soft: #52606d; --page: #fff;
  --line: #cfd8dd; --rule: #1b3a4b; --link: #1d5f86; --warn: #c8553d; --warned: #fbf3f1; }
@media (prefers-color-scheme: dark) { :root { --ink: #dde3e8; --head: #b9d3e2; --soft: #a3b1bd;
  --page: #12191f; --line: #35444f; --rule: #7f9bab; --link: #7fbde0; --warn: #e08a74;
  --warned: #2a1e1b; } }
* { box-sizing: border-box; }
body { font: 1rem/1.55 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; color: var(--ink);
  background: var(--page); max-width: 58rem; margin: 2.5rem auto 4rem; padding: 0 1.25rem;
  overflow-wrap: break-word; }
h1, h2, h3 { color: var(--head); line-height: 1.25; }
h1 { font-size: 1.9rem; margin-bottom: .6rem; }
h2 { font-size: 1.4rem; margin-top: 2.8rem; border-bottom: 1px solid var(--line);
  padding-bottom: .3rem; }
h3 { font-size: 1.1rem; margin-top: 2rem; }
a { color: var(--link); }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
code { font-size: .9em; }
pre { font-size: .82rem; line-height: 1.4; overflow-x: auto; padding: .6rem .9rem;
  margin: .5rem 0; }
img { max-width: 100%; height: auto; background: #fff; border-radius: 4px; }
figure { margin: 1.2rem 0; text-align: center; }
figcaption, .privrank-table p { font-size: .88rem; color: var(--soft); margin: .3rem 0; }
figcaption { text-align: left; }
summary { cursor: pointer; color: var(--link); }
.banner, blockquote { border-left: 4px solid var(--warn); background: var(--warned);
  padding: .7rem 1rem; margin: 1.2rem 0; }
blockquote p { margin: 0; }
.privrank-table { margin: 1.2rem 0; }
.box { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
.privrank-table table { width: 100%; border-top: 2px solid var(--rule); }
.privrank-table .rows { border-bottom: 2px solid var(--rule); margin: 0 0 .8rem; }
.facts :is(th, td) { text-align: left; white-space: normal; }
thead tr:last-child > * { border-bottom: 1px solid var(--rule); }
thead [colspan] { text-align: center; border-bottom: 1px solid var(--line); }
.rule > * { border-top: 1px solid var(--rule); }
caption { font-weight: 600; text-align: left; padding: .3rem 0; }
th, td { padding: .2rem .6rem; text-align: right; vertical-align: top; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
.rows tbody th { white-space: normal; min-width: 6rem; }
th { font-weight: 600; }
@media (max-width: 34rem) { body { margin-top: 1.2rem; padding: 0 .9rem; } h1 { font-size: 1.5rem; }
  .facts tr { display: grid; grid-template-columns: 10.5rem 1fr; } .facts th { padding-left: 0; } }
@media print { body { max-width: none; margin: 0; } h2 { break-before: page; } }
"""


def page(title: str, body: str, style: str = "") -> str:
    """Return a complete HTML page, which loads nothing: its style, then rules of `style`."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )
