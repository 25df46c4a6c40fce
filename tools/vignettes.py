"""Run vignettes and write each of them as an HTML page that needs no network.

    python tools/vignettes.py vignettes/*.py --out build/vignettes

A vignette is a py:percent script: `# %%` starts a cell of code, `# %% [markdown]` one of text.
It runs in a kernel of the interpreter that runs this file, with the privrank of this checkout,
and a figure or table that ends a cell is shown. Formulas between dollar signs become MathML.
A vignette that fails leaves no page and does not stop the others. It is named at the end, and the
exit status is 1.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jupytext
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpecManager
from latex2mathml.converter import convert
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbconvert import HTMLExporter
from pygments.formatters import HtmlFormatter

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT = 600  # seconds that a cell may take

sys.path.insert(0, str(ROOT))  # the checkout of this file, installed or not
from privrank.results.tables import render as page  # noqa: E402

STYLE = """
div.input { margin: 1.2rem 0 .4rem; }
.highlight pre { color: #1f2933; background: #f5f7f8; border-left: 3px solid #8fb3c7; }
.prompt, a.anchor-link { display: none; }
.output_text pre, .output_stream pre { padding-left: .9rem; }
.output_html, math[display="block"] { overflow-x: auto; overflow-y: hidden; max-width: 100%; }
:not(pre) > code { overflow-wrap: anywhere; }
@media (max-width: 40rem) { body { margin-top: 1rem; } pre { font-size: .72rem; } }
.output_stderr pre { background: var(--warned); white-space: pre-wrap; }
"""

ANSI = re.compile(r"\x1b\[[0-9;]*m")
LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\((?!\w+:)([^)\s]+)\)")
DISPLAYED = re.compile(r"\$\$(.+?)\$\$", flags=re.S)
INLINE = re.compile(r"(?<![\\$])\$([^$\n]+?)\$")
# Python prefixes a warning with its file and line, which readers do not need
WARNED_AT = re.compile(r"^\S*[/\\][^\n:]*:\d+: ", flags=re.M)


class Failure(Exception):
    """Raised if a vignette fails, with one line that names it and the reason."""


def kernel(folder):
    """A kernel of this interpreter, regardless of registered kernels."""
    home = folder / "kernels" / "vignette"
    home.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    figures = ["--matplotlib=inline", "--InlineBackend.figure_formats={'retina'}"]
    spec = {"argv": command + figures, "display_name": "vignette", "language": "python"}
    (home / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    specs = KernelSpecManager(kernel_dirs=[str(folder / "kernels")], ensure_native_kernel=False)
    return AsyncKernelManager(kernel_name="vignette", kernel_spec_manager=specs)


def execute(script):
    """Return the script as a notebook with outputs; print the traceback of a failing cell."""
    notebook = jupytext.read(script, fmt="py:percent")
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"  # the default is random and would differ between runs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        environment = os.environ | {
            "IPYTHONDIR": str(folder / "ipython"),
            "JUPYTER_PLATFORM_DIRS": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        }
        place = {"metadata": {"path": str(script.parent)}}
        client = NotebookClient(notebook, km=kernel(folder), timeout=TIMEOUT, resources=place)
        with (folder / "kernel.log").open("w+", encoding="utf-8", errors="replace") as log:
            try:
                client.execute(
                    env=environment, cleanup_kc=True, stdout=subprocess.DEVNULL, stderr=log
                )
            except CellExecutionError as error:
                print(ANSI.sub("", str(error)).rstrip(), file=sys.stderr)
                reason = " ".join(f"{error.ename}: {error.evalue}".split())
                raise Failure(f"{script}: a cell raised {reason}") from None
            except (DeadKernelError, CellTimeoutError, RuntimeError) as error:
                log.seek(0)
                print(log.read(), file=sys.stderr)
                reason = " ".join(str(error).split())
                raise Failure(f"{script}: the kernel stopped: {reason}") from None
    return notebook


def heading(script):
    """Return the first heading of a script, or its name if it has none."""
    found = re.search(r"^# # (.+)$", script.read_text(encoding="utf-8"), flags=re.M)
    return found[1] if found else script.stem


def each(write, pages):
    """Write the page of each script in a mapping; return a line for each that failed.

    The page of an earlier run is deleted first, so every existing page is of this run.
    """
    failures = []
    for script, target in pages.items():
        target.unlink(missing_ok=True)
        try:
            write(script, target)
        except Failure as failure:
            failures.append(str(failure))
    return failures


def take_formulas(notebook):
    """Replace each formula of the text by a word; return the formula of each word."""
    formulas = {}

    def word(display):
        def replace(match):
            name = f"formula{len(formulas)}x"
            formulas[name] = convert(match[1].strip(), display=display)
            return name

        return replace

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = DISPLAYED.sub(word("block"), cell.source)
            cell.source = INLINE.sub(word("inline"), cell.source)
    return formulas


def relinked(text):
    """Return the text with links to pages of vignettes; other files have no page."""

    def link(match):
        other = re.fullmatch(r"(\w+)\.py", match[2])
        return f"[{match[1]}]({other[1]}.html)" if other else match[1]

    return LINK.sub(link, text)


def render(notebook, title):
    """Return the notebook as a page."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = relinked(cell.source)
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr":
                output.text = WARNED_AT.sub("", output.text)
    formulas = take_formulas(notebook)
    body, _ = HTMLExporter(template_name="basic").from_notebook_node(notebook)
    for name, formula in formulas.items():
        body = body.replace(name, formula)
    style = STYLE + HtmlFormatter().get_style_defs(".highlight")
    return page("page.html", title=title, body=body, style=style)


def write(script, target):
    """Run a vignette and write its page."""
    start = time.perf_counter()
    html = render(execute(script), heading(script))
    target.write_text(html, encoding="utf-8", newline="\n")
    print(f"{script}: {time.perf_counter() - start:.1f} s, {target}", flush=True)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scripts", nargs="+", type=Path, help="py:percent scripts")
    parser.add_argument("--out", type=Path, default=Path("build/vignettes"), help="output folder")
    arguments = parser.parse_args(argv)
    arguments.out.mkdir(parents=True, exist_ok=True)
    pages = {script: arguments.out / f"{script.stem}.html" for script in arguments.scripts}
    sys.exit("\n".join(each(write, pages)) or 0)


if __name__ == "__main__":
    main()
