"""The ledger on disk: what it holds, what it refuses, and what a crash can leave of it."""

import contextlib
import math
import os
import pickle
import shutil
import sqlite3
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.mechanisms import comparisons, spend
from privrank.privacy import budget as ledgers

WIN = pd.DataFrame({"item1": ["a", "b"], "item2": ["b", "a"], "outcome": [1, 1]})
pytestmark = pytest.mark.filterwarnings("ignore:.*(ridge penalty|boundary of|consensus may)")
FACTS = {"epsilon": 1.0, "delta": 1e-6, "unit": "row", "label": "tea survey"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "survey.ledger"


@pytest.fixture
def quick(monkeypatch):
    """Without waiting for the disk, which only a power failure shows."""
    monkeypatch.setattr(ledgers, "_SETTINGS", "PRAGMA synchronous = OFF")


def filled(path, number=2):
    budget = pr.Budget(path, **FACTS)
    for k in range(number):
        budget.reserve(f"model {k}", 0.25, 0.0, unit="row", released="net wins")
    return budget


def names(path):
    return [line.by for line in pr.Budget(path).spendings]


def refusal(path, kind=ValueError, **facts):
    with pytest.raises(kind) as caught:
        pr.Budget(path, **facts)
    said = str(caught.value)
    assert type(caught.value) is kind and "\n" not in said and str(path.parent) not in said
    assert said.endswith(".") and said.count(". ") <= 2 and (": " in said or ". " in said)
    return said


def model():
    return pr.PrivateBTL(WIN, items=["a", "b"], respondent=None, ties=False)


# --- what it holds ---


@pytest.mark.parametrize("kind", [str, Path])
def test_it_is_made_once_and_opened_by_its_path(path, kind):
    first = pr.Budget(kind(path), **FACTS)
    second = pr.Budget(kind(path))
    assert (second.epsilon, second.delta, second.unit) == (1.0, 1e-6, "row")
    assert second.path == path and second.label == "tea survey"
    second.reserve("test", 0.75, 0.0, unit="row")
    assert first.spendings == second.spendings and first.left == (0.25, 1e-6)
    with pytest.raises(pr.BudgetExceeded, match="only 0.25 and 1e-06 of 1 and 1e-06 remain"):
        first.reserve("test", 0.5, 0.0, unit="row")
    assert pr.Budget(path, **FACTS).left == (0.25, 1e-6)
    assert repr(second).startswith("Budget('survey.ledger', epsilon=1, delta=1e-06, unit='row'; l")


def test_left_out_facts_are_the_usual_ones(path):
    budget = pr.Budget(path, epsilon=np.inf)
    assert (budget.delta, budget.unit, budget.label) == (0.0, "row", "survey")
    budget.reserve("test", np.inf, 0.0, unit="row")
    assert pr.Budget(path).spent == (np.inf, 0.0)


def test_minus_zero_is_zero(path):
    assert str(pr.Budget(path, epsilon=1.0, delta=-0.0).delta) == "0.0"
    pr.Budget(path, epsilon=1.0, delta=0.0).reserve("test", 0.5, -0.0, unit="row")
    budget = pr.Budget(path, delta=-0.0)
    assert str(budget.spendings[0].delta) == "0.0" and budget.left == (0.5, 0.0)


def test_a_link_and_another_folder_sensitivity_the_same_ledger(path, monkeypatch):
    filled(path, 1)
    (path.parent / "link").symlink_to(path)
    monkeypatch.chdir(path.parent)
    budget = pr.Budget("link")
    monkeypatch.chdir("/")
    budget.reserve("linked", 0.25, 0.0, unit="row")
    assert names(path) == ["model 0", "linked"] and budget.path == path


def test_a_fit_enters_when_what_was_released_by_whom(path):
    budget = pr.Budget(path, epsilon=2.0, label="tea < coffee")
    model().fit(epsilon=1.0, budget=budget)
    (line,) = budget.spendings
    assert (line.by, line.epsilon, line.delta) == ("PrivateBTL", 1.0, 0.0)
    assert line.released and line.rho > 0
    age = pd.Timestamp.now("UTC") - pd.Timestamp(line.date, tz="UTC")
    assert abs(age) < pd.Timedelta(minutes=5)
    table = budget.summary()
    assert table.columns == ("date (UTC)", "model", "released", "epsilon", "delta")
    assert table.rows[0] == (line.date, "PrivateBTL", line.released, "1", "0")
    assert ("Data:", "tea < coffee") in table.header
    html = budget._repr_html_()
    assert html == table.as_html() and "tea &lt; coffee" in html and line.date in html
    assert "survey.ledger" in html and str(path.parent) not in html


def test_in_memory_there_is_no_date():
    budget = pr.Budget(epsilon=2.0)
    model().fit(epsilon=1.0, budget=budget)
    assert budget.summary().columns == ("release", "epsilon", "delta")
    assert "PrivateBTL: " in budget._repr_html_()
    assert budget.path is None and budget.label is None


@pytest.mark.parametrize(
    ("arguments", "facts", "kind", "reason"),
    [
        ((), {}, TypeError, "epsilon must be given"),
        (
            (1.0,),
            {},
            TypeError,
            "path must be text or os.PathLike, got float.* give epsilon= alone",
        ),
        ((b"a.ledger",), {"epsilon": 1.0}, TypeError, "path must be .* got bytes"),
        (
            (),
            {"epsilon": 1.0, "label": "tea"},
            ValueError,
            "label= is for .* Give its path",
        ),
        (("new.ledger",), {"epsilon": 1.0, "label": 3}, TypeError, "label must be text, got int"),
        (("a\0b",), {"epsilon": 1.0}, ValueError, "file name that a disk can hold"),
        (("new.ledger",), {"epsilon": -1.0}, ValueError, "epsilon must be positive"),
        (("new.ledger",), {"epsilon": 1.0, "unit": "person"}, ValueError, "unit must be one of"),
    ],
)
def test_what_no_budget_can_be_is_refused(arguments, facts, kind, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=reason):
        pr.Budget(*arguments, **facts)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "other", [{"epsilon": 2.0}, {"delta": 0.0}, {"unit": "respondent"}, {"label": "tea"}]
)
def test_another_survey_is_refused(path, other):
    filled(path)
    before = path.read_bytes()
    ((name, value),) = other.items()
    said = refusal(path, **FACTS | other)
    assert f"was made with {name} " in said and str(value) in said
    assert path.read_bytes() == before
    assert refusal(path, **other) == said


# --- another past than the one it saw ---

LACKS = "lacks lines that it had since it was opened, or is another ledger. Restore it as"


def refused_past(budget):
    for ask in (lambda: budget.reserve("again", 0.1, 0.0, unit="row"), budget.summary):
        with pytest.raises(ValueError, match=LACKS):
            ask()


def test_an_open_ledger_notices_that_its_file_was_put_back(path):
    """The same .9 would be granted twice."""
    budget = pr.Budget(path, epsilon=1.0)
    kept = path.read_bytes()
    budget.reserve("first", 0.9, 0.0, unit="row")
    new = path.read_bytes()
    path.write_bytes(kept)
    refused_past(budget)
    path.write_bytes(new)
    assert [line.by for line in budget.spendings] == ["first"]


@pytest.mark.parametrize("look", [True, False])
def test_what_others_added_is_a_past_once_it_was_seen(path, look):
    budget, other = filled(path, 1), pr.Budget(path)
    kept = path.read_bytes()
    other.reserve("other", 0.25, 0.0, unit="row")
    assert not look or budget.left == (0.5, 1e-6)
    path.write_bytes(kept)
    refused_past(other)
    if look:
        refused_past(budget)
    else:  # the docstring says so
        assert budget.left == (0.75, 1e-6)


def test_a_different_past_of_the_same_length_is_refused(path):
    budget = filled(path, 1)
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    budget.reserve("one", 0.25, 0.0, unit="row")
    pr.Budget(copy).reserve("another", 0.25, 0.0, unit="row")
    os.replace(copy, path)
    refused_past(budget)


def test_a_ledger_put_in_its_place_is_not_spent(path, tmp_path):
    budget = filled(path)
    pr.Budget(tmp_path / "other.ledger", epsilon=9.0)
    os.replace(tmp_path / "other.ledger", path)
    refused_past(budget)
    assert names(path) == []
    path.unlink()
    with pytest.raises(FileNotFoundError, match="cannot be written .*. No noise was drawn, though"):
        budget.reserve("test", 0.1, 0.0, unit="row")
    assert not path.exists()


# --- processes and threads ---


def take(path, number):
    budget = pr.Budget(path)
    granted = 0
    for _ in range(number):
        try:
            budget.reserve("worker", 0.02, 0.0, unit="row")
            granted += 1
        except pr.BudgetExceeded:
            pass
    return granted


def test_all_who_open_it_spend_the_total_and_no_more(path, quick):
    pr.Budget(path, epsilon=1.0)
    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(take, [path, path], [30, 30])) == 50
    assert pr.Budget(path).left == (0.0, 0.0)


@pytest.mark.parametrize("in_a_file", [False, True])
def test_threads_share_one_object(path, quick, in_a_file):
    budget = pr.Budget(path, epsilon=1.0) if in_a_file else pr.Budget(epsilon=1.0)

    def enter(_):
        try:
            budget.reserve("thread", 0.05, 0.0, unit="row")
        except pr.BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(enter, range(40))) == 20
    assert len(budget.spendings) == 20 and budget.left == (0.0, 0.0)


def test_many_may_make_it_at_once(path, quick):
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: pr.Budget(path, **FACTS), range(16)))
    for budget in made:
        budget.reserve("test", 1 / 16, 0.0, unit="row")
    assert pr.Budget(path).left == (0.0, 1e-6) and len(names(path)) == 16


def test_it_is_not_pickled(path):
    with pytest.raises(TypeError, match="open its path in each process"):
        pickle.dumps(filled(path))


def test_a_lock_that_is_not_given_back_is_one_sentence(path, monkeypatch):
    budget = filled(path)
    monkeypatch.setattr(ledgers, "PATIENCE", 0.02)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TimeoutError) as caught:
            budget.reserve("waits", 0.1, 0.0, unit="row")
        said = str(caught.value)
        assert "has been locked by another process for 0.02 seconds" in said
    assert len(names(path)) == 2


def test_readers_keep_nobody_out_and_a_writer_keeps_no_reader_out(path, monkeypatch):
    monkeypatch.setattr(ledgers, "PATIENCE", 0.02)
    budget = filled(path)
    with budget._transaction("read"):
        assert len(names(path)) == 2
    with budget._held():
        assert len(names(path)) == 2


# --- damage ---


def entered(path, *lines):
    """Rows put into the file by another program."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for line in lines:
            marks = ", ".join("?" * len(line))
            names = ", ".join(f'"{name}"' for name in line)
            connection.execute(
                f"INSERT INTO ledger ({names}) VALUES ({marks})", tuple(line.values())
            )
        connection.commit()


def content_of(path):
    budget = pr.Budget(path)
    facts = budget.epsilon, budget.delta, budget.unit, budget.label
    return facts, budget.spendings


def test_a_changed_byte_is_refused_or_changes_what_is_read(path):
    """Structure is checked, and what no fit writes; a digit that was changed is another digit."""
    filled(path)
    content, whole = path.read_bytes(), content_of(path)
    refused = 0
    for place in [k for k, byte in enumerate(content) if byte][::4]:
        changed = bytearray(content)
        changed[place] ^= 255
        path.write_bytes(changed)
        try:
            (epsilon, delta, unit, _), lines = content_of(path)
        except ValueError:
            refusal(path)
            refused += 1
        else:
            copy = pr.Budget(epsilon=epsilon, delta=delta, unit=unit)
            for line in lines:
                copy.reserve(line.by, line.epsilon, line.delta, unit=unit, rho=line.rho)
    path.write_bytes(content)
    assert refused > 150 and content_of(path) == whole


def test_every_cut_is_refused(path):
    filled(path)
    content = path.read_bytes()
    for length in {*range(1, len(content), 61), 4096, len(content) - 1}:
        path.write_bytes(content[:length])
        assert refusal(path) == refusal(path, **FACTS)
        assert path.read_bytes() == content[:length]  # nothing is made anew over it
    path.write_bytes(content)
    assert names(path) == ["model 0", "model 1"]


def test_lines_are_added_and_never_changed(path):
    filled(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for change in ("DELETE FROM ledger", "UPDATE ledger SET epsilon = 0.1"):
            with pytest.raises(sqlite3.IntegrityError, match="a ledger only grows"):
                connection.execute(change)
    assert names(path) == ["model 0", "model 1"]


HEAD = (ledgers.FORMAT, "tea", 1.0, 0.0, "row")
FIT = {"by": "test", "epsilon": 0.6, "delta": 0.0}


def changed(place, value):
    return (*HEAD[:place], value, *HEAD[place + 1 :])


@pytest.mark.parametrize(
    ("heads", "lines", "reason"),
    [
        ([], [], "is not a ledger of this version of privrank, or was changed"),
        ([HEAD, HEAD], [], "is not a ledger"),
        ([changed(0, "privrank ledger 4")], [], "is a 'privrank ledger 4', and this version"),
        ([changed(0, None)], [], "is not a ledger"),
        *(
            ([changed(place, value)], [], "was damaged")
            for place, values in {
                2: (math.nan, "much", -1.0, 0.0, None, b"1"),
                3: (1.5, -0.1, 1.0, "none", None),
                4: ("person", 3),
            }.items()
            for value in values
        ),
        ([HEAD], [FIT | {"by": None}], "was damaged"),
        *(
            ([HEAD], [FIT | {name: value}], "was damaged")
            for name, values in {
                "epsilon": (-0.6, 0.0, math.nan, "much", b"1"),
                "delta": (-0.1, 1.0, math.nan, "some"),
                "rho": (-0.1, "some"),
            }.items()
            for value in values
        ),
        ([HEAD], [FIT, FIT], "holds more spendings than its total covers, .*. Restore"),
        ([HEAD], [FIT | {"delta": 1e-9}], "holds more spendings"),
        ([HEAD], [FIT | {"epsilon": math.inf}], "holds more spendings"),
    ],
)
def test_rows_that_no_fit_wrote_are_refused(path, heads, lines, reason):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for statement in ledgers._TABLES:
            connection.execute(statement.replace("format TEXT NOT NULL", "format TEXT"))
        connection.executemany("INSERT INTO survey VALUES (?, ?, ?, ?, ?)", heads)
        connection.commit()
    if lines and lines[0]["by"] is None:
        with pytest.raises(sqlite3.IntegrityError, match="NOT NULL"):
            entered(path, *lines)
        return
    entered(path, *lines)
    with pytest.raises(ValueError, match=reason) as caught:
        _ = pr.Budget(path).left
    said = str(caught.value)
    assert type(caught.value) is ValueError and said.startswith("the ledger 'survey.ledger' ")
    later = "made it." if "this version of privrank has" in said else "last fit."
    assert said.endswith("path." if "not a ledger" in said else later)


def test_text_that_is_none_is_refused(path):
    filled(path)
    entered(path, FIT | {"epsilon": 0.1})
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(
            """INSERT INTO ledger ("by", epsilon, delta) VALUES (CAST(x'ff' AS TEXT), .1, 0.0)"""
        )
        connection.commit()
    assert "was damaged or cut short" in refusal(path)


def test_bytes_in_the_place_of_a_text_are_refused(path):
    filled(path)
    entered(path, FIT | {"by": b"fit"})
    assert "was damaged or cut short" in refusal(path)


def test_a_file_of_no_whole_pages_is_refused(path):
    filled(path)
    with open(path, "ab") as file:
        file.write(b"x")
    assert "was damaged or cut short" in refusal(path)


def test_no_ledger_admits_more_where_another_program_overspent_it(path):
    budget = filled(path)
    entered(path, FIT)
    for ask in (lambda: budget.reserve("test", 0.1, 0.0, unit="row"), budget.summary):
        with pytest.raises(ValueError, match="holds more spendings than its total covers"):
            ask()


# --- files that are none ---


def test_no_file_no_ledger_and_no_epsilon(path):
    assert "there is no ledger 'survey.ledger'. Give epsilon=" in refusal(path, FileNotFoundError)
    path.write_bytes(b"")
    assert "is not a ledger" in refusal(path)
    assert pr.Budget(path, **FACTS).left == (1.0, 1e-6)  # an empty file can become one


OLD = b'{"format": "privrank ledger 1", "label": "tea", "epsilon": "1.0"}\n'


@pytest.mark.parametrize(
    "content", [b"a,b\n1,2\n", b"\x00\xff" * 99, b"{}", b"[" * 99_999, b"\n", OLD]
)
def test_another_file_is_refused_and_left_as_it_is(path, content):
    path.write_bytes(content)
    for facts in ({}, FACTS):
        assert "is not a ledger of this version" in refusal(path, **facts)
    assert path.read_bytes() == content and list(path.parent.iterdir()) == [path]


def test_another_database_is_refused_and_left_as_it_is(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE answers (x)")
    content = path.read_bytes()
    for facts in ({}, FACTS):
        assert "is not a ledger of this version" in refusal(path, **facts)
    assert path.read_bytes() == content and list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("name", ["a\0b", "\udce9", "caf\udce9.ledger", ""])
@pytest.mark.parametrize("facts", [{}, {"epsilon": 1.0}])
def test_names_that_no_file_can_have_are_refused_before_one_is_made(
    name, facts, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for path in (name, Path(name) if name else Unnamed()):
        with pytest.raises(ValueError, match="^path must be a file name that a disk can hold, got"):
            pr.Budget(path, **facts)
    with pytest.raises(TypeError, match="^path must be text or os.PathLike, got DirEntry"):
        (tmp_path / "found").touch()
        pr.Budget(next(os.scandir(os.fsencode(tmp_path))), **facts)
    assert os.listdir(tmp_path) == ["found"]


class Unnamed(os.PathLike):
    def __fspath__(self):
        return ""


def test_a_folder_is_one_sentence(tmp_path):
    folder = tmp_path / "survey"
    folder.mkdir()
    for facts in ({}, FACTS):
        assert "'survey' is a folder" in refusal(folder, IsADirectoryError, **facts)
    missing = refusal(tmp_path / "no" / "x", FileNotFoundError, **FACTS)
    assert "cannot be made (unable to open" in missing and "a folder that can be written" in missing


def unprivileged(call):
    """What `call()` raises in a process that may not write where its user may not, as text."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            if os.geteuid() == 0:
                os.seteuid(65534)
            try:
                call()
            except Exception as error:
                os.write(there, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(there)
    os.waitpid(child, 0)
    with open(here, "rb") as stream:
        return stream.read().decode()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("file", ["may be written", "may be read"])
def test_in_a_read_only_folder_it_can_be_looked_at(file):
    with TemporaryDirectory() as name:
        folder, path = Path(name), Path(name, "survey.ledger")
        model().fit(epsilon=0.25, budget=pr.Budget(path, **FACTS))
        path.chmod(0o666 if "written" in file else 0o444)
        folder.chmod(0o555)

        def look():
            budget = pr.Budget(path, **FACTS)
            assert budget.left == (0.75, 1e-6) and "PrivateBTL" in str(budget.summary())

        assert unprivileged(look) == ""
        said = unprivileged(lambda: model().fit(epsilon=0.1, budget=pr.Budget(path)))
        assert said.startswith("OSError: the ledger 'survey.ledger' cannot be written (")
        assert ". No noise was drawn, though" in said and said.endswith("that can be written.")
        said = unprivileged(lambda: pr.Budget(folder / "new.ledger", epsilon=1.0))
        assert said.startswith("FileNotFoundError: the ledger 'new.ledger' cannot be made (")
        assert "spent" not in said
        folder.chmod(0o755)


def test_a_full_disk_refuses_the_fit_before_the_data_are_read(path, monkeypatch):
    budget = filled(path)
    before = path.read_bytes()
    full = f"{ledgers._SETTINGS}; PRAGMA max_page_count = {len(before) // 4096}"

    def forbid(*_, **__):
        raise AssertionError("data were read")

    monkeypatch.setitem(comparisons.STATISTICS, "win matrix", forbid)
    with monkeypatch.context() as patch:
        patch.setattr(ledgers, "_SETTINGS", full)
        patch.setattr(ledgers, "astuple", lambda line: ("x" * 9999, 0.1, 0.0, None, None, None))
        with pytest.raises(OSError, match="disk is full.. .* may be recorded as spent. Name"):
            model().fit(epsilon=0.25, budget=budget)
    assert path.read_bytes() == before and len(names(path)) == 2
    with pytest.raises(pr.FitError, match="nothing was released.*AssertionError"):
        model().fit(epsilon=0.25, budget=budget)
    assert budget.left == (0.25, 1e-6)


# --- crashes ---


def test_a_spending_is_on_disk_before_noise_is_drawn(path, monkeypatch):
    budget, read, seen = filled(path), comparisons.STATISTICS["win matrix"], []

    def look(*arguments, **options):
        seen.extend(names(path))
        return read(*arguments, **options)

    monkeypatch.setitem(comparisons.STATISTICS, "win matrix", look)
    model().fit(epsilon=0.25, budget=budget)
    assert seen == ["model 0", "model 1", "PrivateBTL"]


@pytest.mark.parametrize("doing", ["read", "written", "made"])
def test_what_is_committed_is_on_disk(path, doing):
    with filled(path)._transaction(doing) as connection:
        asked = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "fullfsync", "journal_mode", "integrity_check")
        ]
    assert asked == [3, 1, "delete", "ok"]


LONG = f"""INSERT INTO ledger ("by", epsilon, delta, released)
VALUES ('a', .6, 0.0, '{"x" * 400}')"""


def test_a_journal_that_a_crash_left_restores_the_state_before(path):
    """The files as they are in the middle of a commit: pages written, the journal still there."""
    budget = filled(path)
    before, journal = path.read_bytes(), path.with_name(path.name + "-journal")
    with budget._transaction("written") as connection:
        connection.execute("PRAGMA cache_size = 1")  # pages go to the file before the commit
        for _ in range(99):
            connection.execute(LONG)
        torn, undo = path.read_bytes(), journal.read_bytes()
    assert torn != before and path.read_bytes() == before
    path.write_bytes(torn)
    journal.write_bytes(undo)
    assert budget.left == (0.5, 1e-6) and names(path) == ["model 0", "model 1"]
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]
    budget.reserve("after", 0.5, 0.0, unit="row")
    assert names(path) == ["model 0", "model 1", "after"]


def test_a_ledger_whose_making_was_cut_short_is_made_by_the_next(path):
    """Nothing can have been spent of it; who does not give the total is told that it is none."""
    other = filled(path.with_name("other"), 0)
    other._path, journal = os.fspath(path), path.with_name(path.name + "-journal")
    with other._transaction("made") as connection:
        connection.execute("PRAGMA cache_size = 1")  # pages go to the file before the commit
        for statement in (*ledgers._TABLES, *[LONG] * 99):
            connection.execute(statement)
        torn, undo = path.read_bytes(), journal.read_bytes()
    assert len(torn) > 4096
    path.write_bytes(torn)
    journal.write_bytes(undo)
    assert "is not a ledger" in refusal(path)
    path.write_bytes(torn)
    journal.write_bytes(undo)
    assert pr.Budget(path, **FACTS).left == (1.0, 1e-6)
    assert names(path) == [] and not journal.exists()


def test_what_is_interrupted_before_it_is_added_is_not_spent(path):
    budget = filled(path)
    with pytest.raises(KeyboardInterrupt), budget._held() as (_, _add):
        raise KeyboardInterrupt
    assert len(names(path)) == 2 and list(path.parent.iterdir()) == [path]


def test_a_reader_sees_a_line_whole_or_not_at_all(path):
    budget, found = filled(path), []
    with budget._held() as (_, add):
        reader = threading.Thread(target=lambda: found.append(names(path)))
        reader.start()
        add(ledgers.Spending("slow", 0.25, 0.0))
        assert not found
    reader.join()
    assert found == [["model 0", "model 1", "slow"]]


# --- a fit without a budget ---


def unsaid(monkeypatch):
    monkeypatch.setattr(spend, "_ADVISED", threading.Lock())


def test_of_several_threads_one_is_warned(monkeypatch):
    said, together = [], threading.Barrier(2)
    monkeypatch.setattr(warnings, "warn", lambda *_, **__: said.append(time.sleep(0.01)))
    unsaid(monkeypatch)

    def advise(_):
        together.wait()
        spend._advise("row")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(advise, range(2)))
    assert len(said) == 1


def test_a_fit_without_a_budget_is_warned_of_once(monkeypatch):
    ranks = pd.DataFrame([[1, 2], [2, 1]], columns=["a", "b"])
    aggregation = pr.PrivateRankAggregation(ranks)
    for fitted in (model(), aggregation):
        unsaid(monkeypatch)
        with pytest.warns(pr.PrivrankWarning, match="not recorded in a budget") as caught:
            unit = fitted.fit(epsilon=1.0).release.survey.unit
        (said,) = [w for w in caught if "in a budget" in str(w.message)]
        assert said.filename == __file__ and f"unit={unit!r})" in str(said.message)
        assert quiet(lambda fitted=fitted: fitted.fit(epsilon=1.0))


def quiet(call):
    with pytest.warns() as caught:
        warnings.warn("something", stacklevel=1)
        call()
    return not [w for w in caught if "in a budget" in str(w.message)]


def test_seeded_non_private_and_counted_fits_are_not_warned_of(path, monkeypatch):
    unsaid(monkeypatch)
    rng = np.random.default_rng(1)
    assert quiet(lambda: model().fit(epsilon=1.0, rng=rng))
    assert quiet(lambda: model().fit(epsilon=np.inf))
    assert quiet(lambda: model().fit(epsilon=0.1, budget=filled(path)))
    assert not quiet(lambda: model().fit(epsilon=1.0))


def test_the_warning_as_an_error_stops_the_fit_before_the_data_are_read(monkeypatch):
    def forbid(*_, **__):
        raise AssertionError("data were read")

    monkeypatch.setitem(comparisons.STATISTICS, "win matrix", forbid)
    monkeypatch.setattr(comparisons, "sample_rows", forbid)
    unsaid(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(pr.PrivrankWarning):
                model().fit(epsilon=1.0)
