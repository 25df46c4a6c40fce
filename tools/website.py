"""Build the documentation site: the pages of docs/, tutorials, figures and the API reference.

    python tools/website.py --out build/site

The pages of docs/ are copied together with generated pages: a tutorial of each vignette with its
output and figures, the gallery of these figures, and a page of each public name. Sphinx builds the
copy without warnings. Then all links of the pages are checked within the site. Loading anything
from other sites is an error, because the site must work without a network. A vignette that fails
leaves no page and no link to one; it is named at the end, and the exit status is 1.
"""

import argparse
import base64
import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from types import FunctionType
from urllib.parse import unquote, urlsplit

import jupytext

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

sys.path[:0] = [str(ROOT), str(ROOT / "tools")]  # the modules of this checkout, installed or not
import privrank  # noqa: E402
from privrank.hypotheses.effects import DetectableEffect  # noqa: E402
from privrank.hypotheses.nulls import Null  # noqa: E402
from privrank.local.protocols import Asking, Protocol  # noqa: E402
from privrank.power.base import Power  # noqa: E402
from privrank.release.release import ReleasedPart  # noqa: E402
from privrank.release.survey import Design, Sample  # noqa: E402
from privrank.results.hypotheses import ContrastTests, HypothesisTest  # noqa: E402
from privrank.results.tables import Table  # noqa: E402
from vignettes import WARNED_AT, each, execute, heading  # noqa: E402

# The side bar: groups, and pages as lines of a table of contents (`title <page>` or a page).
GROUPS = {
    "Get started": ["quick-start", "ten-minutes", "summary-table", "which-method"],
    "Tutorials": ["All tutorials <tutorials/index>"],
    "How-to guides": ["All guides <guides>"],
    "Methods": ["All methods <methods>"],
    "Privacy": ["privacy", "Security policy <security>", "proofs"],
    "Reference": ["api/index", "glossary", "Local client format <local-format>"]
    + ["Data sets <data>"],
    "Evidence": ["validation/README", "The papers and corrections <papers/index>"]
    + ["Benchmarks <speed>"],
    "About": ["Related software <compared>", "changelog", "cite", "licences", "contributing"],
}

# Pages whose sources are outside docs/.
OUTSIDE = {"contributing": "CONTRIBUTING.md", "changelog": "CHANGELOG.md"}
OUTSIDE |= {"data": "data/README.md", "security": "SECURITY.md", "conduct": "CODE_OF_CONDUCT.md"}

# Index pages, and the pages that they list, by name or by a pattern of names.
BELOW = {
    "tutorials/index": [r"tutorials/.+", "gallery"],
    "guides": ["data-in", "planning", "budget", "designs", "reports", "after-the-release"]
    + ["assigned-sets", "contests", "pooling", "weights", "scale", "coming-from"],
    "methods": ["models", "standard-errors", "rank-aggregation", "tests", "local", "assumptions"],
    "papers/index": [r"papers/.+"],
    "validation/README": [r"validation/.+"],
    "speed": [r"benchmarks.*"],
    "contributing": ["architecture", "conduct"],
}
# The heading of the list, on index pages that have sections of their own.
LISTED = {"validation/README": "All studies", "contributing": "Further pages"}
# The index page of the pages of docs/ that no group and no index page names.
SPREAD = "guides"

# Tutorials in the order of a project; others come after these.
READ = ("planning", "university", "immigration", "covariates", "uniformity", "groups")
READ += ("last_year", "consensus", "rankings_worths", "maxdiff", "leaderboard", "sites", "local")

# Base classes with their own pages: pages of subclasses list inherited members, with links. The
# examples of a base class are about one protocol or plan and would not fit another one's page.
BASES = (Protocol, Asking, Power)

# Members of a result that come first, in this order, if it has them.
FIRST = ("params", "bse", "selected", "order", "consensus", "statistic", "pvalue", "reject")
FIRST += ("effect", "pvalues", "conf_int", "ranks", "rank_conf_int", "borda", "pairwise")
FIRST += ("summary", "to_frame", "plot")

# Classes with so many methods and properties have a table of them.
MIN_OVERVIEW = 4

# Headings of the attributes and methods of results on the pages of the reference.
MAIN = "Main attributes and methods"
FURTHER = "Further attributes and methods"

LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\(([^)\s]+)\)")
FENCED = re.compile(r"(^`{5}.*?^`{5}$|^`{3}.*?^`{3}$)", flags=re.S | re.M)
MEMBER = re.compile(r":(?:meth|attr|func|obj):`(\w+)`")
TABLE = re.compile(r"^\|.*\|\n\| ?:?-{3}.*\|\n(?:\|.*\|\n)+", flags=re.M)
CELL = re.compile(r"(?<!\\)\|")
NUMERIC = re.compile(r"|[-+]?(?:[\d.,]+(?:e[-+]?\d+)?|inf|nan)(?: ?%)?(?:/[\d.]+)?")
# A file of data/ that a tutorial reads.
DATA = re.compile(r"\.\./data/([\w.]+)")
# The comment above a figure.
CAPTION = re.compile(r"^# (?!%%)(.+)\n(?=figure = )", flags=re.M)
NAMED = re.compile(r"(?<![`\[])`([\w./-]+)`(?![`\]])")


def sources():
    """Return the repository source of each page that is not made from docstrings."""
    found = {
        path.relative_to(DOCS).with_suffix("").as_posix(): path
        for path in sorted(DOCS.rglob("*.md"))
    }
    found |= {name: ROOT / path for name, path in OUTSIDE.items()}
    vignettes = sorted((ROOT / "vignettes").glob("*.py"))
    return found | {f"tutorials/{path.stem}": path for path in vignettes}


def relinked(text, page, pages):
    """Return the text with links, paths and public names that lead to pages of the site."""
    source, names = pages[page], names_of_pages()
    places = {path: name for name, path in pages.items()}

    def to(target):
        path, _, fragment = target.partition("#")
        for base in (source.parent, ROOT):
            name = places.get((base / path).resolve())
            if path and name:
                way = os.path.relpath(f"{name}.md", Path(page).parent)
                return Path(way).as_posix() + (f"#{fragment}" if fragment else "")
        return None

    def link(match):
        target = match[2]
        if urlsplit(target).scheme or target.startswith("#"):
            return match[0]
        inside = (source.parent / target.partition("#")[0]).is_relative_to(DOCS)
        return f"[{match[1]}]({to(target)})" if to(target) else match[0] if inside else match[1]

    def named(match):
        name = names.get(match[1].removeprefix("pr."))
        way = os.path.relpath(f"{name}.rst", Path(page).parent) if name else to(match[1])
        return f"[{match[0]}]({way})" if way else match[0]

    parts = FENCED.split(text)
    parts[::2] = [NAMED.sub(named, LINK.sub(link, part)) for part in parts[::2]]
    return "".join(parts)


def aligned(text):
    """Return the text with numbers aligned to the right and without empty columns of tables."""
    parts = FENCED.split(text)
    parts[::2] = [TABLE.sub(lambda match: aligned_table(match[0]), part) for part in parts[::2]]
    return "".join(parts)


def aligned_table(table):
    """Return a table of Markdown, as :func:`aligned` has it."""
    rows = [CELL.split(line.strip())[1:-1] for line in table.splitlines()]
    head, _, *body = rows
    if not body or any(len(row) != len(head) for row in rows):
        return table
    columns = [[row[place].strip() for row in body] for place in range(len(head))]
    kept = [place for place, column in enumerate(columns) if any(column)]
    marks = ["---:" if all(map(NUMERIC.fullmatch, column)) else "---" for column in columns]
    lines = [head, marks, *body]
    chosen = [" | ".join(line[place].strip() for place in kept) for line in lines]
    return "".join(f"| {line} |\n" for line in chosen)


def toctree(names, caption=""):
    """Return a hidden table of contents, which the theme shows in the side bar."""
    options = [":hidden:", f":caption: {caption}" if caption else ""]
    lines = ["```{toctree}", *filter(None, options), "", *names, "```"]
    return "\n" + "\n".join(lines) + "\n"


def listing(names, pages):
    """Return a list of pages by their headings."""
    rows = [(name, first_heading(pages[name])) for name in names]
    return "".join(f"- [{title}](/{name}.md)\n" for name, title in rows)


def first_heading(path):
    """Return the heading of a Markdown page or of a vignette."""
    if path.suffix == ".py":
        return heading(path)
    return re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), flags=re.M)[1]


def named_in(line):
    """Return the page that a line of a table of contents names."""
    return re.sub(r"^.*<(.+)>$", r"\1", line).lstrip("/")


def below(pages):
    """Return the pages that each index page lists, by the name of the index page."""
    found = {}
    for index, patterns in BELOW.items():
        listed = []
        for pattern in patterns:
            fitting = [name for name in sorted(pages) if re.fullmatch(pattern, name)]
            listed += sorted(fitting, key=place_of)
        found[index] = [name for name in listed if name != index]
    placed = {named_in(line) for lines in GROUPS.values() for line in lines}
    placed |= {name for names in found.values() for name in names}
    found[SPREAD] += [name for name in pages if name not in placed | {"index"}]
    return found


def place_of(name):
    """Return the position of a tutorial in the list of tutorials; 0 for other pages."""
    if not name.startswith("tutorials/"):
        return 0
    return (*READ, Path(name).name).index(Path(name).name)


# The reference by task: results come after the class that returns them, and the names of a module
# after the names that are listed. Names that no task lists come last.
TASKS = {
    "Paired comparisons": ["PrivateBTL", "BTLResult", "PrivateTopK", "TopKResult", "Link"],
    "Consensus rankings": ["PrivateRankAggregation", "AggregationResult", "kemeny_score"]
    + ["kendall_distance"],
    "Tests": ["UniformityTest", "IdentityTest", "RankTestResult"]
    + ["ClosenessTest", "ClosenessResult"],
    "Data": ["as_comparisons", "as_rankings", "as_choices", "read_preflib", "datasets"],
    "Privacy budget": ["Budget", "BudgetExceeded"],
    "Reports, archives and pooling": ["report", "summary_col", "from_json", "Release", "pool"]
    + ["PooledResult"],
    "Errors and warnings": ["FitError", "PrivrankWarning"],
    "Planning (pr.power)": ["power", "contribution_tradeoff"],
    "Local model (pr.local)": ["local"],
    "Models of rankings and simulation (pr.simulate)": ["Mallows", "PlackettLuce"]
    + ["tolerance_to_phi", "simulate"],
    "Other": [],
}


def public():
    """Return public objects by task and full name, with the objects that methods return.

    The latter are documented although they have no short name.
    """
    listed = {name for names in TASKS.values() for name in names}
    loose = [name for name in privrank.__all__ if name not in listed]
    found = {}
    known = []
    for task, names in (TASKS | {"Other": loose}).items():
        found[task] = {}
        for name in names:
            value = getattr(privrank, name)
            objects = {f"privrank.{name}": value}
            if inspect.ismodule(value):
                objects = {f"privrank.{name}.{one}": getattr(value, one) for one in value.__all__}
            found[task] |= {one: own for one, own in objects.items() if own not in known}
            known += objects.values()
    found["Objects that methods return"] = {
        f"{one.__module__}.{one.__name__}": one
        for one in (Table, ContrastTests, HypothesisTest, DetectableEffect, Null)
        + (ReleasedPart, Design, Sample)
    }
    return {task: objects for task, objects in found.items() if objects}


def bases():
    """Return the base classes with their own pages, by full name."""
    return {f"{one.__module__}.{one.__name__}": one for one in BASES}


@cache
def names_of_pages():
    """Return the page of each public name, written as after `pr.`."""
    objects = [name for group in public().values() for name in group]
    return {name.removeprefix("privrank."): f"api/{name}" for name in objects}


def read_first(result):
    """Return the first members of a class of results; fields are in its docstring."""
    found = {name: inspect.getattr_static(result, name, None) for name in FIRST}
    words = {property: "property", FunctionType: "method"}
    return {name: words[type(value)] for name, value in found.items() if type(value) in words}


def members(kind):
    """Return the public methods and properties of a class with summary lines, main ones first."""
    found = {}
    for base in kind.__mro__:
        own = vars(base) if base.__module__.startswith("privrank") else {}
        for name, value in own.items():
            inner = [getattr(value, of, None) for of in ("__func__", "fget", "func")]
            function = next(filter(None, inner), value)
            if not name.startswith("_") and inspect.isfunction(function):
                found.setdefault(name, inspect.getdoc(function) or "")
    order = (*FIRST, *found)
    lines = {name: text.split("\n\n")[0].replace("\n", " ") for name, text in found.items()}
    return dict(sorted(lines.items(), key=lambda item: order.index(item[0])))


def overview(name, value):
    """Return a table of the methods and properties of a class, one line for each."""
    lines = members(value)
    if len(lines) < MIN_OVERVIEW:
        return []
    rows = [".. list-table:: Methods and properties", "   :widths: 30 70", ""]
    for one, sentence in lines.items():
        # outside of the class its members need their full names
        full = MEMBER.sub(rf":obj:`~{name}.\1`", sentence)
        rows += [f"   * - :obj:`~{name}.{one}`", f"     - {full}"]
    return [*rows, ""]


def inherited(kind):
    """Return unchanged members inherited from base classes with their own pages, by base."""
    found, seen = {}, {*vars(kind), *getattr(kind, "__dataclass_fields__", ())}
    pages = {base: name for name, base in bases().items()}
    for base in kind.__mro__[1:]:
        own = [name for name in vars(base) if not name.startswith("_") and name not in seen]
        seen |= {*own}
        if base in pages and own:
            found[pages[base]] = own
    return found


def rubric(title):
    """Return a heading within the description of a class."""
    return [f"   .. rubric:: {title}", ""]


def described(name, value):
    """Return the page of a public object, which Sphinx fills from its docstring."""
    module, _, last = name.rpartition(".")
    if inspect.isclass(value) and issubclass(value, BaseException):
        directive = [f".. autoexception:: {last}"]
    elif inspect.isclass(value):
        shared = inherited(value)
        stop = " ".join(["   :inherited-members:", ",".join(one.__name__ for one in BASES)])
        directive = [*overview(name, value), f".. autoclass:: {last}", "   :members:"]
        directive += [stop if shared else "   :inherited-members:"]
        first = read_first(value) if value.__name__.endswith("Result") else {}
        if first:
            directive += [
                f"   :exclude-members: {', '.join(first)}",
                "",
                *rubric("Main attributes and methods"),
            ]
            for one, word in first.items():
                directive += [f"   .. auto{word}:: {last}.{one}", ""]
            directive += rubric(FURTHER)
        for base, names in shared.items():
            links = ", ".join(f":obj:`~{base}.{one}`" for one in names)
            directive += ["", *rubric("Inherited"), f"   Of :doc:`/api/{base}`: {links}.", ""]
            # targets for references in docstrings of the class
            for one in names:
                function = isinstance(inspect.getattr_static(value, one), FunctionType)
                word = "method" if function else "attribute"
                directive += [f"   .. py:{word}:: {one}", "      :no-typesetting:", ""]
    else:
        word = "function" if inspect.isroutine(value) else "data"
        directive = [f".. auto{word}:: {last}"]
    short = name.removeprefix("privrank.")
    lines = [short, "=" * len(short), "", f".. currentmodule:: {module}", "", *directive]
    return "\n".join(lines) + "\n"


def reference():
    """Return the pages of the API reference by name, beginning with the list of all."""
    pages, rows = {}, ["API reference", "=============", "", "``import privrank as pr``", ""]
    rows += ["The example of a method continues the example of its class.", ""]
    order = ["", ".. toctree::", "   :hidden:", ""]
    for group, objects in (public() | {"Base classes of protocols and plans": bases()}).items():
        rows += [group, "-" * len(group), "", ".. list-table::", "   :widths: 30 70", ""]
        for name, value in objects.items():
            pages[f"api/{name}"] = described(name, value)
            plain = type(value).__module__ == "typing"
            sentence = "" if plain else inspect.getdoc(value).split("\n\n")[0].replace("\n", " ")
            rows += [f"   * - :doc:`{name.removeprefix('privrank.')} </api/{name}>`"]
            rows += [f"     - {sentence}"]
            order.append(f"   /api/{name}")
        rows.append("")
    return {"api/index": "\n".join(rows + order) + "\n"} | pages


# --------------------------------------------------------------------------------- tutorials


def fenced(text, language, name=""):
    """Return a block of code or output, with a class if it is named."""
    fence = "`" * 5
    block = f"{fence}{language}\n{text.rstrip()}\n{fence}\n"
    return f"::::{{container}} {name}\n{block}::::\n" if name else block


def shown(output, caption, picture):
    """Return an output of a cell as Markdown; `picture` stores a figure and returns its name."""
    if output.output_type == "stream":
        error = output.name == "stderr"
        text = WARNED_AT.sub("", output.text) if error else output.text
        return fenced(text, "text", "warned" if error else "printed")
    data = output.get("data", {})
    if "image/png" in data:
        return f"![{caption}]({picture(data['image/png'])})\n"
    if "text/html" in data:
        return fenced(f'<div class="output">\n{data["text/html"]}\n</div>', "{raw} html")
    return fenced(data.get("text/plain", ""), "text", "printed")


def tutorial(script, page):
    """Run a vignette and write it as a page with its figures, with copies to download."""
    figures, out = [], page.parent

    def picture(encoded):
        name = f"{script.stem}-{len(figures) + 1}.png"
        (out / name).write_bytes(base64.b64decode(encoded))
        figures.append(name)
        return name

    print(f"{script.relative_to(ROOT)} ...", flush=True)
    shutil.copy(script, out)
    jupytext.write(jupytext.read(script), out / f"{script.stem}.ipynb")
    copies = [f"script <{script.name}>", f"notebook <{script.stem}.ipynb>"]
    for name in sorted({*DATA.findall(script.read_text(encoding="utf-8"))}):
        shutil.copy(ROOT / "data" / name, out)
        copies.append(f"data <{name}>")
    downloads = ", ".join(f"{{download}}`{copy}`" for copy in copies)
    parts = []
    for cell in execute(script).cells:
        if cell.cell_type == "markdown" and not parts:
            title, _, text = cell.source.partition("\n")
            parts += [title + "\n", f"Download: {downloads}\n", text + "\n"]
        elif cell.cell_type == "markdown":
            parts.append(cell.source + "\n")
        elif cell.source.strip():
            parts.append(fenced(cell.source, "python"))
            caption = "".join(CAPTION.findall(cell.source))
            parts += [shown(output, caption, picture) for output in cell.outputs]
    page.write_text("\n".join(parts), encoding="utf-8")


def tutorials(out):
    """Run the vignettes without a page that is newer than its sources.

    Return a line for each that failed.
    """
    out.mkdir(parents=True, exist_ok=True)
    tools = [Path(__file__), Path(__file__).with_name("vignettes.py")]
    code = [*(ROOT / "privrank").rglob("*.py"), *tools]
    newest = max(path.stat().st_mtime for path in code)
    pages = {script: out / f"{script.stem}.md" for script in (ROOT / "vignettes").glob("*.py")}
    for loose in {*out.glob("*.md")} - {*pages.values()}:
        loose.unlink()
    stale = {
        script: page
        for script, page in sorted(pages.items())
        if not page.exists() or page.stat().st_mtime <= max(newest, script.stat().st_mtime)
    }
    return each(tutorial, stale)


def gallery(made):
    """Return a grid of the tutorials' figures, with their captions and links to their sections."""
    cells = []
    for page in sorted(made.glob("*.md")):
        text = re.sub(r"^`{5}.*?^`{5}$", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
        for title, caption, figure in re.findall(r"^#+ (.+)|^!\[(.+)\]\((.+)\)", text, flags=re.M):
            if title:
                place = re.sub(r"\W+", "-", title.lower()).strip("-")
                continue
            options = f":alt: {caption}\n:target: tutorials/{page.stem}.html#{place}\n"
            cells.append(f":::{{figure}} tutorials/{figure}\n{options}\n{caption}\n:::\n")
    return "\n::::{container} gallery\n" + "\n".join(cells) + "::::\n"


# ------------------------------------------------------------------------------------- build


def assemble(folder, made=None):
    """Write all input of Sphinx into a folder; without tutorials unless they are `made`."""
    pages = sources()
    if made:
        pages = {
            name: path
            for name, path in pages.items()
            if path.suffix != ".py" or (made / f"{path.stem}.md").exists()
        }
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns("*.csv", "__pycache__"))
    texts = {name: path.read_text(encoding="utf-8") for name, path in pages.items()}
    (folder / "tutorials").mkdir(exist_ok=True)
    if made:
        shutil.copytree(made, folder / "tutorials", dirs_exist_ok=True)
        texts |= {f"tutorials/{one.stem}": one.read_text("utf-8") for one in made.glob("*.md")}
        texts["gallery"] += gallery(made)
    texts = {name: aligned(relinked(text, name, pages)) for name, text in texts.items()}
    for index, names in below(pages).items():
        head = f"\n## {LISTED[index]}\n\n" if index in LISTED else "\n"
        texts[index] += head + listing(names, pages) + toctree([f"/{name}" for name in names])
    for caption, lines in GROUPS.items():
        texts["index"] += toctree(lines, caption)
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    (folder / "api").mkdir()
    for name, text in reference().items():
        (folder / f"{name}.rst").write_text(text, encoding="utf-8")


class Links(HTMLParser):
    """The links and loaded files of a page, and its own anchors."""

    def __init__(self):
        super().__init__()
        self.links, self.loads, self.places = [], [], set()

    def handle_starttag(self, tag, attributes):
        """Collect the addresses and anchors of one tag."""
        values = dict(attributes)
        self.places |= {values[key] for key in ("id", "name") if values.get(key)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        elif tag != "a":
            self.loads += [values[key] for key in ("href", "src") if values.get(key)]


def faults(out):
    """Return links of the built pages that are broken within the site, and external files."""
    pages = {}
    for path in sorted(out.rglob("*.html")):
        pages[path.resolve()] = page = Links()
        page.feed(path.read_text(encoding="utf-8"))
    # without pages no link is wrong
    found = [] if (out / "index.html").is_file() else [f"{out / 'index.html'} was not built"]
    for path, page in pages.items():
        here = path.relative_to(out.resolve())
        for address in page.links + page.loads:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page.loads and parts.scheme != "data":
                    found.append(f"{here} loads {address}")
                continue
            goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not goal.is_file():
                found.append(f"{here}: no file for {address}")
            elif parts.fragment and goal in pages:
                if unquote(parts.fragment) not in pages[goal].places:
                    found.append(f"{here}: no place for {address}")
    return found


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/site"), help="output folder")
    out = parser.parse_args(argv).out
    made, folder = out.with_name(f"{out.name}-tutorials"), out.with_name(f"{out.name}-source")
    if importlib.util.find_spec("sphinx") is None:
        sys.exit("The site needs Sphinx: install it with python -m pip install '.[site]'.")
    failures = tutorials(made)
    assemble(folder, made)
    shutil.rmtree(out, ignore_errors=True)
    strict = ["-W", "--keep-going", "-n", "-q", "-b", "html", "-d", f"{folder}-read"]
    run = subprocess.run([sys.executable, "-m", "sphinx", *strict, folder, out], check=False)
    found = faults(out)
    if found:
        print(*found, sep="\n", flush=True)
    elif run.returncode:
        print("Sphinx failed or warned: see above. All links between pages work.", flush=True)
    else:
        print(f"{out / 'index.html'}: all links work", flush=True)
    print(*(f"Left out: {failure}" for failure in failures), sep="\n", end="", file=sys.stderr)
    sys.exit(run.returncode or bool(found + failures))


if __name__ == "__main__":
    main()
