"""The worked examples run, keep to their rules, and become pages that need no network."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "vignettes").glob("*.py"))
YEARS = {"1998", "2001"}  # of publications

TINY = """
# %% [markdown]
# # A small page
#
# > A warning, and $\\\\theta_i < 1$ in a line that also costs \\\\$5.
#
# $$\\\\sum_i \\\\theta_i = 0$$
#
# See [groups](groups.py), [a guide](../docs/planning.md) and [w3](http://www.w3.org/1998/Math/MathML).

# %%
import sys
import warnings

from matplotlib.figure import Figure

print(sys.executable)
figure = Figure()
warnings.warn("mind the gap")
figure.add_subplot()
figure
""".replace("\\\\", "\\")


def python(*arguments, **environment):
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": paths} | environment,
        capture_output=True,
        text=True,
    )


def build(script, out, **environment):
    return python(ROOT / "tools" / "vignettes.py", script, "--out", out, **environment)


@pytest.fixture(scope="module", params=SCRIPTS, ids=lambda path: path.stem)
def vignette(request):
    """The text of a vignette, and what it does as an ordinary script."""
    return request.param.read_text(encoding="utf-8"), python(request.param)


def prose(text):
    """The text cells, without code spans and formulas."""
    cells = re.split(r"^# %%", text, flags=re.M)
    words = "\n".join(cell for cell in cells if cell.startswith(" [markdown]"))
    return re.sub(r"`[^`]*`|\$[^$]*\$", "", words)


def test_every_subject_has_a_vignette():
    subjects = (
        "consensus covariates groups immigration last_year leaderboard local maxdiff planning"
    )
    later = "rankings_worths sites uniformity university"
    assert [path.stem for path in SCRIPTS] == [*subjects.split(), *later.split()]


def test_vignette_runs_as_a_script(vignette):
    _, process = vignette
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""


# Lines of scripts that are longer than all others since their code is at most 79 columns wide.
LONGER = {"immigration": 211, "leaderboard": 188, "local": 198, "maxdiff": 219, "university": 251}


def test_vignette_is_a_short_percent_script(vignette):
    text, _ = vignette
    lines = text.splitlines()
    name = next(path.stem for path in SCRIPTS if path.read_text(encoding="utf-8") == text)
    assert len(lines) <= LONGER.get(name, 175)
    assert lines[0] == "# %% [markdown]" and lines[1].startswith("# # ")
    marks = [line for line in lines if line.startswith("# %%")]
    assert set(marks) == {"# %%", "# %% [markdown]"}
    assert marks.count("# %%") >= 5
    assert not re.search(r"^# [%!]\w", text, flags=re.M), "magics are no Python"


def test_prose_has_no_number_that_the_code_does_not_print(vignette):
    text, process = vignette
    printed = set(re.findall(r"\d+(?:\.\d+)?", process.stdout))
    assert set(re.findall(r"\d+(?:\.\d+)?", prose(text))) - YEARS <= printed


def test_only_the_last_section_draws_secure_noise(vignette):
    text, process = vignette
    sources = re.findall(r"Noise: +(\w+)", process.stdout)
    if "local" not in sources:  # whose devices draw no noise of the package's
        assert sources[-1] == "secure" and sources.count("secure") == 1
        assert sources.count("seeded") >= 1
    sections = re.split(r"^# ## ", prose(text), flags=re.M)
    assert "seeded noise" in sections[0] and "secure" in sections[-1]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A page built where another program is registered under the usual name of the kernel."""
    folder = tmp_path_factory.mktemp("tiny")
    script = folder / "tiny.py"
    script.write_text(TINY, encoding="utf-8")
    spec = folder / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps({"argv": ["false"], "display_name": "x", "language": "python"}))
    processes = [build(script, folder / name, JUPYTER_PATH=str(folder)) for name in ("a", "b")]
    return processes[0], [(folder / name / "tiny.html") for name in ("a", "b")]


def test_builder_says_what_it_wrote_and_how_long_it_took(tiny):
    process, (path, _) = tiny
    assert process.returncode == 0 and process.stderr == ""
    assert re.fullmatch(rf"\S+tiny\.py: \d+\.\d s, {re.escape(str(path))}\n", process.stdout)


def test_page_holds_text_formulas_output_and_figure(tiny):
    html = tiny[1][0].read_text(encoding="utf-8")
    assert "<title>A small page</title>" in html
    assert html.count("<math") == 2 and 'display="block"' in html and "formula0x" not in html
    assert "costs $5" in html
    assert sys.executable in html, "the kernel is not the interpreter that ran the builder"
    assert html.count("data:image/png;base64,") == 1


def test_page_loads_nothing(tiny):
    html = tiny[1][0].read_text(encoding="utf-8")
    assert not re.search(r"<script|<link|@import|url\(|src=\"(?!data:)", html)
    addresses = set(re.findall(r"https?://[^\s\"<]+", html))
    assert addresses <= {"http://www.w3.org/1998/Math/MathML"}


def test_links_lead_to_pages_of_vignettes_alone(tiny):
    html = tiny[1][0].read_text(encoding="utf-8")
    assert '<a href="groups.html">groups</a>, a guide and <a href="http://www.w3.org' in html


def test_warning_is_shown_without_the_path_that_raised_it(tiny):
    html = tiny[1][0].read_text(encoding="utf-8")
    assert "UserWarning: mind the gap" in html and "ipykernel" not in html


def test_page_can_be_reproduced(tiny):
    first, second = tiny[1]
    assert first.read_bytes() == second.read_bytes()


def test_a_script_that_fails_is_named_and_the_others_are_built(tmp_path):
    scripts = [tmp_path / "broken.py", tmp_path / "whole.py"]
    scripts[0].write_text(
        "# %%\nprint(1)\n\n# %%\nraise ValueError('no bread')\n", encoding="utf-8"
    )
    scripts[1].write_text("# %%\nprint(1)\n", encoding="utf-8")
    out = tmp_path / "out"
    out.mkdir()
    (out / "broken.html").write_text("of an earlier run")
    process = python(ROOT / "tools" / "vignettes.py", *scripts, "--out", out)
    assert process.returncode == 1
    assert process.stderr.splitlines()[-1] == f"{scripts[0]}: a cell raised ValueError: no bread"
    assert "raise ValueError('no bread')" in process.stderr
    assert not (out / "broken.html").exists() and (out / "whole.html").exists()
