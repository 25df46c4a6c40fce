"""Run vignettes and write each of them as one HTML page that needs no network.

    python tools/vignettes.py vignettes/*.py --out build/vignettes

A vignette is a py:percent script: `# %%` starts a cell of code, `# %% [markdown]` one of text.
It runs in a kernel of the interpreter that runs this file, with the privrank of this checkout,
and a figure or table that ends a cell is shown. Formulas between dollar signs become MathML.
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
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbconvert import HTMLExporter
from pygments.formatters import HtmlFormatter

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT = 600  # seconds that a cell may take

sys.path.insert(0, str(ROOT))  # the checkout that this file belongs to, installed or not
from privrank.reporting.examples import heading  # noqa: E402
from privrank.reporting.pages import page  # noqa: E402

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
DISPLAYED = re.compile(r"\$\$(.+?)\$\$", flags=re.S)
INLINE = re.compile(r"(?<![\\$])\$([^$\n]+?)\$")
# Python prefixes a warning with the file and line that raised it, which says nothing to a reader
WARNED_AT = re.compile(r"^\S*[/\\][^\n:]*:\d+: ", flags=re.M)


def kernel(folder):
    """A kernel of this very interpreter, whichever other kernels are registered."""
    home = folder / "kernels" / "vignette"
    home.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    figures = ["--matplotlib=inline", "--InlineBackend.figure_formats={'retina'}"]
    spec = {"argv": command + figures, "display_name": "vignette", "language": "python"}
    (home / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    specs = KernelSpecManager(kernel_dirs=[str(folder / "kernels")], ensure_native_kernel=False)
    return AsyncKernelManager(kernel_name="vignette", kernel_spec_manager=specs)


def execute(script):
    """The script as a notebook with its outputs; exits when a cell raises."""
    notebook = jupytext.read(script, fmt="py:percent")
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"  # the default is random, and would differ in every page
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
                trace = ANSI.sub("", str(error)).rstrip()
                sys.exit(f"{trace}\n\n{script}: a cell raised {error.ename}: {error.evalue}")
            except (DeadKernelError, RuntimeError) as error:
                log.seek(0)
                sys.exit(f"{log.read()}\n{script}: the kernel died: {error}")
    return notebook


def take_formulas(notebook):
    """Put a word for each formula of the text; returns what the words stand for."""
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


def render(notebook, title):
    """The notebook as a page."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr":
                output.text = WARNED_AT.sub("", output.text)
    formulas = take_formulas(notebook)
    body, _ = HTMLExporter(template_name="basic").from_notebook_node(notebook)
    for name, formula in formulas.items():
        body = body.replace(name, formula)
    return page(title, body, STYLE + HtmlFormatter().get_style_defs(".highlight"))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scripts", nargs="+", type=Path, help="py:percent scripts")
    parser.add_argument("--out", type=Path, default=Path("build/vignettes"), help="output folder")
    arguments = parser.parse_args(argv)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for script in arguments.scripts:
        start = time.perf_counter()
        html = render(execute(script), heading(script))
        target = arguments.out / f"{script.stem}.html"
        target.write_text(html, encoding="utf-8", newline="\n")
        print(f"{script}: {time.perf_counter() - start:.1f} s, {target}", flush=True)


if __name__ == "__main__":
    main()
