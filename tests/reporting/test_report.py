"""The report: what it writes, and that it spends only what its ledgers say."""

import base64
import importlib.util
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mutating import with_check

import privrank as pr

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "report.py"
SURVEYS = {"university": pr.datasets.load_university, "immigration": pr.datasets.load_immigration}

spec = importlib.util.spec_from_file_location("report_tool", TOOL)
report = importlib.util.module_from_spec(spec)
spec.loader.exec_module(report)


def run(out, *arguments):
    command = [sys.executable, str(TOOL), "--out", str(out)]
    return subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True)


def report_again(out, *arguments):
    report.main(["--out", str(out), *arguments])


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
    return pr.from_json((out / "releases" / f"{survey}-{what}.json").read_text(encoding="utf-8"))


def labelled(out, survey, what="worths-epsilon-1"):
    return archived(out, survey, what).with_labels(report.LABELS[survey])


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
    for survey, respondents in (("University", 303), ("Immigration", 98)):
        for what in ("worths", "consensus"):
            assert f"{survey}: {what} of {respondents} respondents, epsilon 1 ..." in said
        result = labelled(out, survey.lower())
        assert str(result.summary()) in said
        assert str(ledger(out, survey.lower()).summary()) in said
    assert str(out / "index.html") in said


def test_report_has_a_page_and_every_release(out):
    names = set(contents(out))
    for survey in SURVEYS:
        for what in ("worths", "consensus"):
            assert f"releases/{survey}-{what}-epsilon-1.json" in names
    assert "index.html" in names and not [name for name in names if name.endswith(".part")]


@pytest.mark.parametrize("survey", SURVEYS)
def test_tables_are_those_of_the_archived_results(out, survey):
    page = (out / "index.html").read_text(encoding="utf-8")
    fit, agreed = labelled(out, survey), labelled(out, survey, "consensus-epsilon-1")
    top = pr.PrivateTopK.from_release(fit.release, k=2)
    for result in (fit, top, agreed, ledger(out, survey)):
        assert result.summary().as_html() in page


@pytest.mark.parametrize("survey", SURVEYS)
def test_releases_are_secure_and_stated_as_they_were_made(out, survey):
    data = SURVEYS[survey]()
    release = archived(out, survey).release
    assert release.source == "secure" and release.epsilon == 1.0
    assert release.design.items == data.items and release.design.nobs == len(data.students)
    assert release.design.unit == "respondent" and release.design.kind == "public"
    assert release.design.max_rows == len(data.items) * (len(data.items) - 1) // 2
    consensus = archived(out, survey, "consensus-epsilon-1").release
    assert consensus.source == "secure" and consensus.epsilon == 1.0
    assert consensus.sample.unit == "respondent" and consensus.sample.nobs == len(data.students)
    assert "pairs" in consensus.parts and "Kemeny score" not in consensus.parts
    assert spent(out, survey) == [1.0, 1.0]
    assert ledger(out, survey).epsilon == math.inf and ledger(out, survey).label == survey


def test_page_loads_nothing_and_states_noise_and_design(out):
    html = (out / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://|<script|<link|@import|url\(", html)
    assert set(re.findall(r'src="([a-z]+):', html)) == {"data"}
    assert "secure (system RNG)" in html
    assert "seeded" not in html and "do not publish" not in html
    assert str(ROOT) not in html and str(out) not in html
    pictures = [base64.b64decode(data) for data in re.findall(r"base64,([^\"]+)", html)]
    # worths, win rates, consensus, and twice the pairs of items
    assert len(pictures) == 5 * len(SURVEYS)


def test_the_report_is_for_clients(out):
    page = (out / "index.html").read_text(encoding="utf-8")
    places = [page.index(words) for words in ('id="findings"', "<nav>", 'id="result-1"')]
    assert places == sorted(places) and "epsilon buys" not in page
    # ledgers are the last of its chapters, and no item is named by its code
    heads = re.findall(r"<h2[^>]*>([^<]+)", page)
    assert [head.split(": ")[-1] for head in heads[-2:]] == ["privacy budget"] * 2
    assert "Training places" in page and not re.search(r"crimRate|socBurd|StGallen", page)


def test_second_run_spends_nothing_and_writes_the_same(out):
    before = contents(out)
    process = run(out)
    assert process.returncode == 0
    assert " ..." not in process.stdout
    assert contents(out) == before


def test_what_is_deleted_is_drawn_anew_and_the_ledger_keeps_both(copy):
    before = archived(copy, "university")
    for path in (copy / "releases").glob("*.json"):
        path.unlink()
    report_again(copy)
    assert not before.params.equals(archived(copy, "university").params)
    for survey in SURVEYS:
        assert spent(copy, survey) == [1.0, 1.0] * 2
        assert ledger(copy, survey).summary().as_html() in (copy / "index.html").read_text(
            encoding="utf-8"
        )


def test_interrupted_run_never_understates_the_ledger(tmp_path, monkeypatch):
    write = report.write

    def broken(path, text):
        if "worths" in path.name:
            raise OSError("disk full")
        write(path, text)

    monkeypatch.setattr(report, "write", broken)
    with pytest.raises(SystemExit, match="disk full"):
        report_again(tmp_path)
    assert spent(tmp_path, "university") == [1.0]
    monkeypatch.undo()
    report_again(tmp_path)
    assert spent(tmp_path, "university") == [1.0, 1.0, 1.0]


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
        SystemExit, match="ledger' is a folder.* Or choose another --out[.]$"
    ) as end:
        report_again(tmp_path)
    assert str(end.value).count(". ") == 2


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
    assert capsys.readouterr().out.count("respondents, epsilon 1 ...") == 2
    assert spent(copy, "university") == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("what", ["worths", "consensus"])
@pytest.mark.parametrize("text", ["", "{}", '{"result": "BTLResult"}'])
def test_spoilt_release_is_refused(copy, text, what):
    (copy / "releases" / f"university-{what}-epsilon-1.json").write_text(text)
    with pytest.raises(SystemExit, match="holds no such release"):
        report_again(copy)


def test_seeded_release_is_refused(copy):
    path = copy / "releases" / "immigration-worths-epsilon-1.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    record["release"]["source"] = "seeded"
    path.write_text(with_check(record))
    with pytest.raises(SystemExit, match="holds no such release"):
        report_again(copy)


def test_release_of_another_survey_is_refused(copy):
    releases = copy / "releases"
    other = (releases / "immigration-worths-epsilon-1.json").read_bytes()
    (releases / "university-worths-epsilon-1.json").write_bytes(other)
    with pytest.raises(SystemExit, match="holds no such release"):
        report_again(copy)


def test_release_of_another_model_is_refused(copy):
    releases = copy / "releases"
    other = (releases / "university-worths-epsilon-1.json").read_bytes()
    (releases / "university-consensus-epsilon-1.json").write_bytes(other)
    with pytest.raises(SystemExit, match="holds no such release"):
        report_again(copy)


def test_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    file = tmp_path / "file"
    file.write_text("not a folder")
    process = run(file / "report")
    assert process.returncode == 1
    (line,) = process.stderr.splitlines()
    assert line.startswith("report: cannot write to ") and line.endswith(".")
