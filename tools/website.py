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

# The side bar. Pages of docs/ without a group are at the end of the second group.
GROUPS = {
    "Start": ["quick-start", "ten-minutes", "tutorials/index", "gallery"],
    "Guides": ["data-in", "planning", "models", "after-the-release", "scale", "local"]
    + ["local-format", "weights", "coming-from", "compared", "privacy", "security"],
    "Reference": ["api/index", "glossary"],
    "Papers": ["papers/index"],
    "Evidence": ["proofs", "validation/README", "speed"],
    "Development": ["architecture", "contributing", "conduct", "changelog", "data", "licences"],
}
SPREAD = "Guides"

# Pages whose sources are outside docs/.
OUTSIDE = {"contributing": "CONTRIBUTING.md", "changelog": "CHANGELOG.md"}
OUTSIDE |= {"data": "data/README.md", "security": "SECURITY.md", "conduct": "CODE_OF_CONDUCT.md"}

# Index pages, and the pages that they list.
BELOW = {
    "tutorials/index": r"tutorials/.+",
    "papers/index": r"papers/.+",
    "validation/README": r"validation/.+",
    "speed": r"benchmarks.*",
}

# Tutorials in the suggested reading order; others follow.
READ = ("university", "immigration", "covariates", "uniformity", "groups", "consensus")
READ += ("rankings_worths", "planning", "leaderboard", "local")

# Base classes with their own pages: pages of subclasses list inherited members, with links. The
# examples of a base class are about one protocol or plan and would not fit another one's page.
BASES = (Protocol, Asking, Power)

# Members of a result that come first, in this order, if it has them.
FIRST = ("params", "bse", "selected", "order", "consensus", "statistic", "pvalue", "reject")
FIRST += ("effect", "pvalues", "conf_int", "ranks", "rank_conf_int", "borda", "pairwise")
FIRST += ("summary", "to_frame", "plot")

LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\(([^)\s]+)\)")
FENCED = re.compile(r"(^`{5}.*?^`{5}$|^`{3}.*?^`{3}$)", flags=re.S | re.M)
CAPTION = re.compile(r"^(?:figure = .*|\))  # (.+)", flags=re.M)
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


def groups(pages):
    """Return the side bar: captions and names of pages, without the pages below an index page."""
    placed = {name for names in GROUPS.values() for name in names}
    loose = [name for name in pages if "/" not in name and not name.startswith("benchmarks")]
    rest = [name for name in loose if name not in placed | {"index"}]
    return GROUPS | {SPREAD: GROUPS[SPREAD] + rest}


def kind(value):
    """Return the group of a public object in the list of the reference."""
    if not inspect.isclass(value):
        return "Functions"
    if re.match(r"Private|\w+Test$", value.__name__):
        return "Models and tests"
    return "Results" if value.__name__.endswith("Result") else "Other classes"


def public():
    """Return public objects by group and full name; each module has its own group.

    Objects that their methods return are included, although they have no short name.
    """
    found = {name: {} for name in ("Models and tests", "Results", "Functions", "Other classes")}
    for name in privrank.__all__:
        value = getattr(privrank, name)
        if inspect.ismodule(value):
            inner = {f"privrank.{name}.{one}": getattr(value, one) for one in value.__all__}
            known = [other for objects in found.values() for other in objects.values()]
            found[f"pr.{name}"] = {one: own for one, own in inner.items() if own not in known}
        else:
            found[kind(value)][f"privrank.{name}"] = value
    found["What methods return"] = {
        f"{one.__module__}.{one.__name__}": one
        for one in (Table, ContrastTests, HypothesisTest, DetectableEffect, Null)
        + (ReleasedPart, Design, Sample)
    }
    return found


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
        directive = [f".. autoclass:: {last}", "   :members:"]
        directive += [stop if shared else "   :inherited-members:"]
        first = read_first(value) if kind(value) == "Results" else {}
        if first:
            directive += [f"   :exclude-members: {', '.join(first)}", "", *rubric("Read first")]
            for one, word in first.items():
                directive += [f"   .. auto{word}:: {last}.{one}", ""]
            directive += rubric("All else")
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
    rows += ["Examples of methods go on from the example of their class.", ""]
    order = ["", ".. toctree::", "   :hidden:", ""]
    for group, objects in (public() | {"What protocols, or plans, share": bases()}).items():
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
    """Run a vignette and write it as a page with its figures."""
    figures, out = [], page.parent

    def picture(encoded):
        name = f"{script.stem}-{len(figures) + 1}.png"
        (out / name).write_bytes(base64.b64decode(encoded))
        figures.append(name)
        return name

    print(f"{script.relative_to(ROOT)} ...", flush=True)
    parts = []
    for cell in execute(script).cells:
        if cell.cell_type == "markdown":
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
    texts = {name: relinked(text, name, pages) for name, text in texts.items()}
    for index, below in BELOW.items():
        names = sorted(name for name in pages if re.fullmatch(below, name) and name != index)
        names.sort(key=lambda name: (*READ, Path(name).name).index(Path(name).name))
        texts[index] += listing(names, pages) + toctree([f"/{name}" for name in names])
    for caption, names in groups(pages).items():
        texts["index"] += toctree(names, caption)
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
    found = []
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
    failures = tutorials(made)
    assemble(folder, made)
    shutil.rmtree(out, ignore_errors=True)
    strict = ["-W", "--keep-going", "-n", "-q", "-b", "html", "-d", f"{folder}-read"]
    run = subprocess.run([sys.executable, "-m", "sphinx", *strict, folder, out], check=False)
    found = faults(out)
    print("\n".join(found) or f"{out / 'index.html'}: all links lead somewhere", flush=True)
    print(*(f"Left out: {failure}" for failure in failures), sep="\n", end="", file=sys.stderr)
    sys.exit(run.returncode or bool(found + failures))


if __name__ == "__main__":
    main()
