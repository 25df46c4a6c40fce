"""The report: what it writes, and that it spends only what its ledgers say."""

import base64
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import privrank as pr
from privrank.release.archived import archive
from privrank.reporting import __main__ as report
from privrank.reporting import examples, spending

ROOT = Path(__file__).parents[2]
SURVEYS = {"university": pr.datasets.load_university, "immigration": pr.datasets.load_immigration}
EPSILONS = ("0.5", "1", "2")


def run(out, *arguments):
    command = [sys.executable, "-m", "privrank.reporting", "--out", str(out), "--no-vignettes"]
    return subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True)


def report_again(out, *arguments):
    report.main(["--out", str(out), "--no-vignettes", *arguments])


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def ledger(out, survey):
    return pr.Budget(out / "releases" / f"{survey}.ledger")


def spent(out, survey):
    return [line.epsilon for line in ledger(out, survey).spendings]


def archived(out, survey, what="worths-epsilon-1"):
    return pr.from_json((out / "releases" / f"{survey}-{what}.json").read_text())


def written(source, target):
    """A copy of a report whose archive can be spoilt."""
    for name, data in contents(source / "releases").items():
        path = target / "releases" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return target


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    out = tmp_path_factory.mktemp("first") / "report"
    return out, run(out)


@pytest.fixture(scope="module")
def out(first):
    return first[0]


@pytest.fixture
def copy(out, tmp_path):
    return written(out, tmp_path / "copy")


def test_report_says_what_it_did_and_where_it_is(first):
    out, process = first
    assert process.returncode == 0 and process.stderr == ""
    said = process.stdout
    assert "University: 303 respondents; spending epsilon 0.5, 1, 2, 1 (consensus) ..." in said
    assert "Immigration: 98 respondents; spending epsilon 0.5, 1, 2, 1 (consensus) ..." in said
    for survey in SURVEYS:
        assert str(archived(out, survey).summary()) in said
    assert said.count("epsilon spent in all: 4.5") == 2
    assert str(out / "index.html") in said


def test_report_has_every_table_figure_and_release(out):
    names = set(contents(out))
    for survey in SURVEYS:
        tables = ("worths", "pairwise", "top2", "consensus", "precision", "epsilons", "ledger")
        assert {
            f"tables/{survey}-{table}.{kind}" for table in tables for kind in ("txt", "csv")
        } <= (names)
        assert {
            f"figures/{survey}-{name}.png" for name in ("worths", "pairwise", "top2", "consensus")
        } <= names
        assert {f"releases/{survey}-worths-epsilon-{e}.json" for e in EPSILONS} <= names
        assert f"releases/{survey}-consensus-epsilon-1.json" in names
    assert {"index.html", "tables/overview.txt", "tables/overview.csv"} <= names
    assert not [name for name in names if name.endswith(".part")]


@pytest.mark.parametrize("survey", SURVEYS)
def test_tables_are_those_of_the_archived_results(out, survey):
    fit, top = archived(out, survey), archived(out, survey, "top2-epsilon-1")
    agreed = archived(out, survey, "consensus-epsilon-1")
    for result, name in ((fit, "worths"), (top, "top2"), (agreed, "consensus")):
        text = (out / "tables" / f"{survey}-{name}.txt").read_text()
        assert text == str(result.summary()) + "\n"
        frame = pd.read_csv(out / "tables" / f"{survey}-{name}.csv", index_col=0)
        pd.testing.assert_frame_equal(frame, result.to_frame(), check_dtype=False, rtol=1e-12)
    pairs = pd.read_csv(out / "tables" / f"{survey}-pairwise.csv")
    pd.testing.assert_frame_equal(pairs, fit.pairwise(), check_dtype=False, rtol=1e-12)
    assert pr.PrivateTopK.from_release(fit.release, k=2).selected == top.selected


@pytest.mark.parametrize("survey", SURVEYS)
def test_releases_are_secure_and_stated_as_they_were_made(out, survey):
    data = SURVEYS[survey]()
    for epsilon in EPSILONS:
        release = archived(out, survey, f"worths-epsilon-{epsilon}").release
        assert release.source == "secure" and release.epsilon == float(epsilon)
        assert release.design.items == data.items and release.design.nobs == len(data.students)
        assert release.design.unit == "respondent" and release.design.kind == "public"
        assert release.design.max_rows == len(data.items) * (len(data.items) - 1) // 2
    consensus = archived(out, survey, "consensus-epsilon-1").release
    assert consensus.source == "secure" and consensus.epsilon == 1.0
    assert consensus.sample.unit == "respondent" and consensus.sample.nobs == len(data.students)
    assert "pairs" in consensus.parts and "Kemeny score" not in consensus.parts
    assert spent(out, survey) == [0.5, 1.0, 2.0, 1.0]
    assert ledger(out, survey).epsilon == math.inf and ledger(out, survey).label == survey


def test_page_loads_nothing_and_states_noise_and_design(out):
    html = (out / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://|<script|<link|@import|url\(", html)
    assert set(re.findall(r'src="([a-z]+):', html)) == {"data"}
    assert "<strong>Secure noise.</strong>" in html and "secure (operating system)" in html
    assert "SEEDED" not in html
    assert 'design="private"' in html and "--fresh" in html
    assert str(ROOT) not in html and str(out) not in html
    pictures = [base64.b64decode(data) for data in re.findall(r"base64,([^\"]+)", html)]
    assert pictures and sorted(pictures) == sorted(
        path.read_bytes() for path in (out / "figures").iterdir()
    )


def test_second_run_spends_nothing_and_writes_the_same(out):
    before = contents(out)
    process = run(out)
    assert process.returncode == 0
    assert process.stdout.count("nothing is spent") == 2
    assert contents(out) == before


def test_another_epsilon_pays_for_the_missing_fits_only(copy, capsys):
    before = contents(copy / "releases")
    report_again(copy, "--epsilon", "2")
    assert "spending epsilon 4, 2 (consensus) ..." in capsys.readouterr().out
    after = contents(copy / "releases")
    for survey in SURVEYS:
        assert spent(copy, survey) == [0.5, 1.0, 2.0, 1.0, 4.0, 2.0]
        assert ledger(copy, survey).spent == (10.5, 0.0)
        for epsilon in EPSILONS:
            name = f"{survey}-worths-epsilon-{epsilon}.json"
            assert after[name] == before[name]


def test_fresh_draws_anew_and_the_ledger_keeps_both(copy):
    before = archived(copy, "university")
    report_again(copy, "--fresh")
    assert not before.params.equals(archived(copy, "university").params)
    for survey in SURVEYS:
        assert spent(copy, survey) == [0.5, 1.0, 2.0, 1.0] * 2
    assert "0.5, 1, 2, 1, 0.5, 1, 2, 1" in (copy / "index.html").read_text(encoding="utf-8")
    assert "9" in (copy / "tables" / "overview.csv").read_text().splitlines()[1].split(",")


def test_budget_adds_up_at_awkward_epsilons(tmp_path):
    report_again(tmp_path, "--epsilon", "0.1")
    assert ledger(tmp_path, "university").spent == (0.45, 0.0)


def test_interrupted_run_never_understates_the_ledger(tmp_path, monkeypatch):
    write = spending.write

    def broken(path, text):
        if "worths" in path.name:
            raise OSError("disk full")
        write(path, text)

    monkeypatch.setattr(spending, "write", broken)
    with pytest.raises(SystemExit, match="disk full"):
        report_again(tmp_path)
    assert spent(tmp_path, "university") == [0.5]
    monkeypatch.undo()
    report_again(tmp_path)
    assert spent(tmp_path, "university") == [0.5, 0.5, 1.0, 2.0, 1.0]


def test_archive_without_its_ledger_is_refused(copy):
    (copy / "releases" / "university.ledger").unlink()
    with pytest.raises(SystemExit, match="holds releases but not their ledger"):
        report_again(copy)


def test_spoilt_ledger_is_refused(copy):
    (copy / "releases" / "university.ledger").write_text("{}")
    with pytest.raises(SystemExit, match="is not a ledger"):
        report_again(copy)


def test_a_ledger_that_cannot_be_opened_is_one_sentence(tmp_path):
    (tmp_path / "releases" / "university.ledger").mkdir(parents=True)
    with pytest.raises(
        SystemExit, match="ledger' cannot be .*, or choose another --out[.]$"
    ) as end:
        report_again(tmp_path)
    assert "unable to open" in str(end.value) and str(end.value).count(".") == 3


def test_a_failed_write_ends_with_one_full_stop(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("the ledger 'a.ledger' cannot be written (disk full): free some space.")

    monkeypatch.setattr(report, "investigate", fail)
    with pytest.raises(SystemExit, match="free some space[.]$"):
        report_again(tmp_path)


def test_an_archive_of_the_worths_alone_is_completed(copy, capsys):
    for survey in SURVEYS:
        (copy / "releases" / f"{survey}-consensus-epsilon-1.json").unlink()
    report_again(copy)
    assert capsys.readouterr().out.count("spending epsilon 1 (consensus) ...") == 2
    assert spent(copy, "university") == [0.5, 1.0, 2.0, 1.0, 1.0]


@pytest.mark.parametrize("what", ["worths", "consensus"])
@pytest.mark.parametrize("text", ["", "{}", '{"result": "BTLResult"}'])
def test_spoilt_release_is_refused(copy, text, what):
    (copy / "releases" / f"university-{what}-epsilon-1.json").write_text(text)
    with pytest.raises(SystemExit, match="not a release any more"):
        report_again(copy)


def test_seeded_release_is_refused(copy):
    path = copy / "releases" / "immigration-worths-epsilon-1.json"
    record = json.loads(path.read_text())
    record["release"]["source"] = "seeded"
    path.write_text(archive({name: each for name, each in record.items() if name != "check"}))
    with pytest.raises(SystemExit, match="holds another release than its name says"):
        report_again(copy)


def test_release_of_another_survey_is_refused(copy):
    releases = copy / "releases"
    other = (releases / "immigration-worths-epsilon-1.json").read_bytes()
    (releases / "university-worths-epsilon-1.json").write_bytes(other)
    with pytest.raises(SystemExit, match="holds another release than its name says"):
        report_again(copy)


def test_release_of_another_model_is_refused(copy):
    releases = copy / "releases"
    other = (releases / "university-worths-epsilon-1.json").read_bytes()
    (releases / "university-consensus-epsilon-1.json").write_bytes(other)
    with pytest.raises(SystemExit, match="holds another release than its name says"):
        report_again(copy)


def test_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    file = tmp_path / "file"
    file.write_text("not a folder")
    process = run(file / "report")
    assert process.returncode == 1
    (line,) = process.stderr.splitlines()
    assert line.startswith("privrank.reporting: cannot write to ") and line.endswith(".")


@pytest.mark.parametrize("epsilon", ["0", "-1", "inf", "nan", "much"])
def test_epsilon_must_be_positive_and_finite(epsilon, tmp_path, capsys):
    with pytest.raises(SystemExit):
        report_again(tmp_path, f"--epsilon={epsilon}")
    assert "must be a positive, finite number" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


# --- worked examples: a checkout with a builder of three lines ---

BUILDER = """
import sys; from pathlib import Path
*scripts, _, out = sys.argv[1:]
Path(out).mkdir(exist_ok=True)
for script in scripts:
    target = Path(out) / (Path(script).stem + ".html"); target.write_text("page")
"""


@pytest.fixture
def checkout(tmp_path):
    root = tmp_path / "checkout"
    for name, text in (
        ("tools/vignettes.py", BUILDER),
        ("vignettes/one.py", "# %% [markdown]\n# # Salt & pepper\n"),
        ("vignettes/two.py", "# %%\n"),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_worked_examples_are_built_once_and_linked(copy, checkout, capsys):
    arguments = ["--out", str(copy), "--vignettes", str(checkout / "vignettes")]
    report.main(arguments)
    assert "running one, two" in capsys.readouterr().out
    html = (copy / "index.html").read_text(encoding="utf-8")
    assert '<a href="vignettes/one.html">Salt &amp; pepper</a>' in html
    assert '<a href="vignettes/two.html">two</a>' in html
    report.main(arguments)
    assert "running" not in capsys.readouterr().out
    assert (copy / "index.html").read_text(encoding="utf-8") == html


def test_a_worked_example_that_fails_is_named_and_the_others_stand(copy, checkout, capsys):
    broken = BUILDER + "    if script.endswith('one.py'): __import__('os').remove(target)\n"
    broken += "sys.exit(f'{scripts[0]}: a cell raised ValueError: no bread')\n"
    (checkout / "tools" / "vignettes.py").write_text(broken)
    arguments = ["--out", str(copy), "--vignettes", str(checkout / "vignettes")]
    with pytest.raises(SystemExit) as stopped:
        report.main(arguments)
    one = checkout / "vignettes" / "one.py"
    assert str(stopped.value) == (
        f"Worked example not built: {one}: a cell raised ValueError: no bread"
    )
    html = (copy / "index.html").read_text(encoding="utf-8")
    assert "one.py could not be built" in html and "one.html" not in html
    assert '<a href="vignettes/two.html">two</a>' in html
    # the next run tries the failing one alone
    (checkout / "tools" / "vignettes.py").write_text(BUILDER)
    os.utime(checkout / "tools" / "vignettes.py", (0, 0))
    capsys.readouterr()
    report.main(arguments)
    assert "running one ..." in capsys.readouterr().out
    assert "one.html" in (copy / "index.html").read_text(encoding="utf-8")


def test_a_builder_that_fails_as_a_whole_does_not_stop_the_report(copy, checkout):
    (checkout / "tools" / "vignettes.py").write_text("raise SystemExit('the oven is cold')")
    (copy / "vignettes").mkdir(exist_ok=True)
    (copy / "vignettes" / "one.html").write_text("of an earlier run")
    os.utime(copy / "vignettes" / "one.html", (0, 0))
    with pytest.raises(SystemExit, match="one.py: the oven is cold\n.*two.py: the oven is cold"):
        report.main(["--out", str(copy), "--vignettes", str(checkout / "vignettes")])
    html = (copy / "index.html").read_text(encoding="utf-8")
    assert html.count("could not be built") == 2 and "one.html" not in html
    assert not (copy / "vignettes" / "one.html").exists()


def test_without_the_tools_the_report_says_how_to_get_them(copy, checkout, capsys, monkeypatch):
    monkeypatch.setattr(examples, "find_spec", lambda name: None)
    report.main(["--out", str(copy), "--vignettes", str(checkout / "vignettes")])
    assert 'pip install ".[docs]"' in capsys.readouterr().out
    assert 'pip install ".[docs]"' in (copy / "index.html").read_text(encoding="utf-8")


def test_outside_a_checkout_the_report_says_where_they_are(copy, tmp_path):
    report.main(["--out", str(copy), "--vignettes", str(tmp_path / "none")])
    assert "part of the source repository" in (copy / "index.html").read_text(encoding="utf-8")
