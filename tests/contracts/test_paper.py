"""The paper says what the repository has: its numbers, its files and its references."""

import re
from datetime import datetime
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[2]
PAPER = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
BIBLIOGRAPHY = (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8")
EVIDENCE = PAPER.partition("# Research impact statement")[2].partition("\n# ")[0]
NUMBER = r"(?<![\w.,-])\d*\.\d+(?![\w.])"


def test_every_number_stands_in_the_table_that_is_named():
    paragraphs = [text for text in EVIDENCE.split("\n\n") if re.search(r"`docs/\S+\.md`", text)]
    assert len(paragraphs) == 3
    for text in paragraphs:
        (path,) = re.findall(r"`(docs/\S+\.md)`", text)
        table = (ROOT / path).read_text(encoding="utf-8")
        stated = [float(number) for number in re.findall(NUMBER, table)]
        numbers = re.findall(NUMBER, re.sub(r"`.*?`", "", text))
        assert len(numbers) >= 2
        for number in numbers:
            places = len(number.partition(".")[2])
            assert any(abs(float(number) - one) <= 0.5001 * 10**-places for one in stated), number


def test_the_settings_of_the_coverage_are_counted():
    (said,) = re.findall(
        r"one\s+of (\d+) settings\..+? below ([\d.]+)\. "
        r"In (\d+) .+? above ([\d.]+),.+? in (\d+) of these",
        EVIDENCE,
        flags=re.S,
    )
    table = pd.read_csv(ROOT / "docs/validation/coverage.csv")
    wide = table[table["coverage"] > float(said[3])]
    assert [int(said[0]), int(said[2])] == [len(table), len(wide)]
    assert int(said[4]) == (wide["warned"] > 0.9).sum()
    (more,) = re.findall(r"in (\d+) others the\s+released", EVIDENCE)
    assert int(more) == ((wide["withheld"] > 0.5) & (wide["warned"] <= 0.9)).sum()
    assert table["coverage"].min() >= float(said[1])


def test_the_command_is_that_of_the_table():
    for text in EVIDENCE.split("\n\n"):
        for command in re.findall(r"`(python validation/[^`]+|make bench)`", text):
            (path,) = re.findall(r"`(docs/\S+\.md)`", text)
            head = (ROOT / path).read_text(encoding="utf-8").split("\n")[2]
            assert f"Command `{command}`" in head


def test_every_reference_is_cited_and_the_other_way_round():
    listed = re.findall(r"^@\w+\{(\w+),", BIBLIOGRAPHY, flags=re.M)
    assert len(listed) == len(set(listed)) > 10
    assert set(re.findall(r"@(\w+\d{4})", PAPER)) == set(listed)


def test_files_that_are_named_exist():
    for name in re.findall(r"`((?:docs|tests|validation)/[\w./]+)`", PAPER):
        assert (ROOT / name).exists(), name


PARTS = ["Summary", "Statement of need", "State of the field", "Software design"]
PARTS += ["Research impact statement", "AI usage disclosure", "Acknowledgements", "References"]


def test_it_has_the_parts_that_reviewers_look_for():
    heads = re.findall(r"^# (.+)$", PAPER, flags=re.M)
    assert heads == [part for part in PARTS if part in heads]
    # what was used in writing is for the authors who submit to say
    assert set(PARTS) - set(heads) <= {"AI usage disclosure"}
    assert 750 < len(PAPER.split()) < 1750


def test_its_header_has_a_date():
    header = PAPER.split("\n---\n")[0]
    (date,) = re.findall(r"^date: (.+)$", header, flags=re.M)
    assert datetime.strptime(date, "%d %B %Y")


def test_every_entry_says_when_or_where_it_was_published():
    for entry in re.split(r"^(?=@)", BIBLIOGRAPHY, flags=re.M)[1:]:
        fields = dict(re.findall(r"^  (\w+) = \{(.*)\}", entry, flags=re.M))
        assert fields.keys() & {"year", "url"}, entry
        assert fields.keys() & {"doi", "url", "volume"}, entry
        assert not re.search(r"and others", entry), entry
