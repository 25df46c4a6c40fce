"""The ledger on disk: what it holds, what it refuses, and what a crash can leave of it."""

import contextlib
import errno
import os
import pickle
import shutil
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.mechanisms import comparisons, spend
from privrank.privacy import ledgerfile

WIN = pd.DataFrame({"item1": ["a", "b"], "item2": ["b", "a"], "outcome": [1, 1]})
pytestmark = pytest.mark.filterwarnings("ignore:.*(the ridge|noise has carried|Low accuracy)")
FACTS = {"epsilon": 1.0, "delta": 1e-6, "unit": "row", "label": "tea survey"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "survey.ledger"


@pytest.fixture
def quick(monkeypatch):
    """Without waiting for the disk, which only a power failure shows."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


def seal(path):
    return path.with_name(path.name + ".seal")


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
    assert said.endswith(".") and said.count(". ") == 0 and ": " in said
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
    with pytest.raises(pr.BudgetExceeded, match="left of 1"):
        first.reserve("test", 0.5, 0.0, unit="row")
    assert pr.Budget(path, **FACTS).left == (0.25, 1e-6)
    assert repr(second).startswith("Budget('survey.ledger', epsilon=1, delta=1e-06, unit='row'; l")


def test_left_out_facts_are_the_usual_ones(path):
    budget = pr.Budget(path, epsilon=np.inf)
    assert (budget.delta, budget.unit, budget.label) == (0.0, "row", "survey")
    budget.reserve("test", np.inf, 0.0, unit="row")
    assert pr.Budget(path).spent == (np.inf, 0.0)


def test_minus_zero_is_zero(path):
    assert (
        pr.Budget(path, epsilon=1.0, delta=-0.0).delta == 0.0 and b"-0.0" not in path.read_bytes()
    )
    pr.Budget(path, epsilon=1.0, delta=0.0).reserve("test", 0.5, -0.0, unit="row")
    assert b"-0.0" not in path.read_bytes() and pr.Budget(path, delta=-0.0).left == (0.5, 0.0)


def test_a_link_and_another_folder_reach_the_same_ledger(path, monkeypatch):
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
    assert table.columns == ("date (UTC)", "spent by", "released", "epsilon", "delta")
    assert table.rows[0] == (line.date, "PrivateBTL", line.released, "1", "0")
    assert ("Data:", "tea < coffee") in table.header
    html = budget._repr_html_()
    assert html == table.as_html() and "tea &lt; coffee" in html and line.date in html
    assert "survey.ledger" in html and str(path.parent) not in html


def test_in_memory_there_is_no_date():
    budget = pr.Budget(epsilon=2.0)
    model().fit(epsilon=1.0, budget=budget)
    assert budget.summary().columns == ("spent by", "epsilon", "delta")
    assert "PrivateBTL: " in budget._repr_html_()
    assert budget.path is None and budget.label is None


def test_its_json_is_a_copy_in_memory(path):
    budget = filled(path)
    copy = pr.Budget.from_json(budget.to_json())
    assert copy.spendings == budget.spendings and copy.to_json() == budget.to_json()
    copy.reserve("copy", 0.5, 0.0, unit="row")
    assert budget.left == (0.5, 1e-6)


@pytest.mark.parametrize(
    ("arguments", "facts", "kind", "reason"),
    [
        ((), {}, TypeError, "epsilon must be given"),
        ((1.0,), {}, TypeError, "path must be the file .* got float: the total .* is epsilon="),
        ((b"a.ledger",), {"epsilon": 1.0}, TypeError, "path must be .* got bytes"),
        ((), {"epsilon": 1.0, "label": "tea"}, ValueError, "label= names .* give its path, too"),
        (("new.ledger",), {"epsilon": 1.0, "label": 3}, TypeError, "label must be text, got int"),
        (("a\0b",), {"epsilon": 1.0}, ValueError, "path must be .* without NUL characters.$"),
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
    before = path.read_bytes(), seal(path).read_bytes()
    ((name, value),) = other.items()
    said = refusal(path, **FACTS | other)
    assert f"was made with {name} " in said and str(value) in said
    assert (path.read_bytes(), seal(path).read_bytes()) == before
    assert refusal(path, **other) == said


def test_a_ledger_put_in_its_place_is_not_spent(path, tmp_path):
    budget, other = filled(path), tmp_path / "other.ledger"
    pr.Budget(other, epsilon=9.0)
    for name in (str, seal):
        os.replace(name(other), name(path))
    with pytest.raises(ValueError, match="is another one than when it was opened: open it again"):
        budget.reserve("test", 0.1, 0.0, unit="row")
    with pytest.raises(ValueError, match="is another one"):
        _ = budget.left
    assert names(path) == []


# --- a file put in place of another ---


def copied(path):
    return Path(shutil.copy(path, path.with_name("copy")))


def during(monkeypatch, step, act, when):
    """Let `act` happen once, before or after a step of adding."""
    original = getattr(ledgerfile, step)

    def stepped(*arguments, **options):
        monkeypatch.setattr(ledgerfile, step, original)
        if when == "before":
            act()
        result = original(*arguments, **options)
        if when == "after":
            act()
        return result

    monkeypatch.setattr(ledgerfile, step, stepped)


@pytest.mark.parametrize("fits", [False, True])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", ["_read", "_append", "_seal"])
def test_two_files_never_grant_the_same(path, monkeypatch, quick, step, when, fits):
    """One is put in place while a fit holds the lock of the other; another fit may find it."""
    budget, granted = filled(path), []
    copy = copied(path)

    def take():
        pr.Budget(path).reserve("other", 0.5, 0.0, unit="row")
        granted.append("other")

    def swap():
        os.replace(copy, path)
        if fits:
            with contextlib.suppress(ValueError):
                take()

    during(monkeypatch, step, swap, when)
    seals_differ = (step, when, fits) == ("_read", "before", True)
    reason = "has lost lines" if seals_differ else "was replaced or removed .* no noise was drawn: "
    with pytest.raises(ValueError if seals_differ else RuntimeError, match=reason):
        budget.reserve("first", 0.5, 0.0, unit="row")
    with contextlib.suppress(ValueError, pr.BudgetExceeded):  # ValueError where both sealed
        take()
    assert len(granted) <= 1


def test_a_file_put_in_place_after_a_grant_lacks_it_and_is_refused(path):
    budget = filled(path)
    copy = copied(path)
    budget.reserve("first", 0.5, 0.0, unit="row")
    os.replace(copy, path)
    assert "has lost lines at its end" in refusal(path)


def test_who_waited_for_the_lock_of_a_replaced_file_opens_the_new_one(path, monkeypatch):
    budget = filled(path)
    copy = copied(path)
    during(monkeypatch, "_lock", lambda: os.replace(copy, path), "before")
    budget.reserve("third", 0.25, 0.0, unit="row")
    assert names(path) == ["model 0", "model 1", "third"]
    during(monkeypatch, "_lock", path.unlink, "before")
    with pytest.raises(FileNotFoundError, match="cannot be written .*: no noise was drawn; name"):
        budget.reserve("fourth", 0.25, 0.0, unit="row")


def test_a_file_that_is_replaced_again_and_again_is_one_sentence(path, monkeypatch):
    filled(path)
    opened = len(os.listdir("/dev/fd")) if os.path.isdir("/dev/fd") else None
    monkeypatch.setattr(ledgerfile, "_in_place", lambda *_: False)
    assert "was replaced each time that it was opened" in refusal(path, RuntimeError)
    assert opened is None or len(os.listdir("/dev/fd")) == opened


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


def test_threads_share_one_object(path, quick):
    budget = pr.Budget(path, epsilon=1.0)

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
    monkeypatch.setattr(ledgerfile, "PATIENCE", 0.02)
    with budget._keeper.held():
        said = refusal(path, TimeoutError)
        assert "has been locked by another process for 0.02 seconds" in said
    assert len(names(path)) == 2


def test_readers_do_not_keep_each_other_out(path, monkeypatch):
    monkeypatch.setattr(ledgerfile, "PATIENCE", 0.02)
    filled(path)
    with ledgerfile._locked(str(path), os.O_RDONLY):
        assert len(names(path)) == 2


# --- damage ---


def spoilt(path, content):
    path.write_bytes(content)
    said = refusal(path)
    assert refusal(path, **FACTS) == said
    return said


@pytest.mark.parametrize("which", [Path, seal])
def test_every_changed_byte_is_refused(path, which):
    filled(path)
    file = which(path)
    content = file.read_bytes()
    for place in range(len(content)):
        for change in (1, 255):
            changed = bytearray(content)
            changed[place] ^= change
            file.write_bytes(changed)
            refusal(path)
    file.write_bytes(content)
    assert names(path) == ["model 0", "model 1"]


@pytest.mark.parametrize("which", [Path, seal])
def test_every_cut_is_refused(path, which):
    filled(path)
    file = which(path)
    content = file.read_bytes()
    for length in range(len(content)):
        spoilt_file = content[:length]
        file.write_bytes(spoilt_file)
        refusal(path)
        refusal(path, **FACTS)
        assert file.read_bytes() == spoilt_file  # nothing is made anew over it
    file.write_bytes(content)
    assert names(path) == ["model 0", "model 1"]


def test_lines_left_out_moved_or_put_in_are_refused(path):
    filled(path, 3)
    head, one, two, three = path.read_bytes().splitlines(keepends=True)
    reasons = {
        b"".join(lines): spoilt(path, b"".join(lines))
        for lines in (
            (head, one, two),
            (head,),
            (head, two, three),
            (head, two, one, three),
            (head, one, one, two, three),
            (head, one, two.replace(b"0.25", b"0.01"), three),
            (head, one, b"\n", two, three),
            (one, two, three),
        )
    }
    assert "has lost lines at its end" in reasons[head + one + two]
    assert "changed, damaged or cut short at line 2" in reasons[head + two + three]
    assert "changed, damaged or cut short at line 3" in reasons[head + one + one + two + three]
    assert "is not a ledger" in reasons[one + two + three]
    path.write_bytes(head + one + two + three)
    assert len(names(path)) == 3


def test_an_older_half_of_the_pair_is_refused_and_an_older_pair_is_not_seen(path):
    budget = filled(path, 1)
    old = {file: file.read_bytes() for file in (path, seal(path))}
    budget.reserve("later", 0.5, 0.0, unit="row")
    new = {file: file.read_bytes() for file in old}
    path.write_bytes(old[path])
    assert "has lost lines at its end" in refusal(path)
    path.write_bytes(new[path])
    seal(path).write_bytes(old[seal(path)])  # as a crash between file and seal leaves it
    assert names(path) == ["model 0", "later"]
    path.write_bytes(old[path])
    assert names(path) == ["model 0"]  # the docstring says so


def test_either_file_alone_is_refused(path):
    filled(path)
    seal(path).rename(path.with_name("kept"))
    assert "is without its seal, the file 'survey.ledger.seal' beside it" in refusal(path)
    assert "is without its seal" in refusal(path, **FACTS)
    path.with_name("kept").rename(seal(path))
    path.unlink()
    assert "is missing, but its seal is there" in refusal(path, FileNotFoundError)
    assert "is missing" in refusal(path, FileNotFoundError, **FACTS)
    assert not path.exists()


def test_well_formed_lines_of_no_fit_are_refused(path):
    budget = filled(path)
    with budget._file.held() as (_, add):
        add({"label": "tea survey", "by": "test", "epsilon": "-1.0", "delta": "0.0"})
    with pytest.raises(ValueError, match="holds what no fit wrote .epsilon must be positive"):
        _ = budget.left


HEAD = {
    "format": ledgerfile.FORMAT,
    "label": "tea",
    "epsilon": "1.0",
    "delta": "0.0",
    "unit": "row",
}
FIT = {"label": "tea", "by": "test", "epsilon": "0.6", "delta": "0.0"}


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        *(([{k: v for k, v in HEAD.items() if k != key}], "must have") for key in list(HEAD)[1:]),
        ([HEAD | {"more": "1"}], "its first line must have"),
        ([HEAD | {"epsilon": "nan"}], "epsilon must be positive"),
        ([HEAD | {"epsilon": "much"}], "a number must be text"),
        ([HEAD | {"delta": "1.5"}], "delta must lie in"),
        ([HEAD | {"unit": "person"}], "unit must be one of"),
        ([HEAD | {"label": 3}], "is not a ledger"),
        ([HEAD, FIT, FIT], "the spendings add up to more than the total.: restore"),
    ],
)
def test_whole_lines_that_no_ledger_has_are_refused(path, lines, reason):
    content, check = b"", ""
    for record in lines:
        line, check = ledgerfile._line(record, check)
        content += line
    path.write_bytes(content)
    ledgerfile._seal(str(path), len(lines) - 1, check)
    with pytest.raises(ValueError, match=reason) as caught:
        _ = pr.Budget(path).left
    said = str(caught.value)
    assert type(caught.value) is ValueError and said.startswith("the ledger 'survey.ledger' ")
    assert said.endswith("path." if "not a ledger" in said else "last fit.")


def test_no_ledger_admits_more_where_another_program_overspent_it(path):
    budget = filled(path)
    with budget._file.held() as (_, add):
        add({"label": "tea survey", "by": "test", "epsilon": "0.75", "delta": "0.0"})
    for ask in (lambda: budget.reserve("test", 0.1, 0.0, unit="row"), budget.summary):
        with pytest.raises(
            ValueError, match="holds what no fit wrote .the spendings add up to mor"
        ):
            ask()


# --- files that are none ---


def test_no_file_no_ledger_and_no_epsilon(path):
    assert "there is no ledger 'survey.ledger': give epsilon=" in refusal(path, FileNotFoundError)
    path.write_bytes(b"")
    assert "is not a ledger" in refusal(path)
    assert pr.Budget(path, **FACTS).left == (1.0, 1e-6)  # an empty file can become one


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"\x00\xff" * 99, b"{}", b"[" * 99_999, b"\n"])
def test_another_file_is_refused_and_left_as_it_is(path, content):
    path.write_bytes(content)
    for facts in ({}, FACTS):
        assert "is not a ledger of this version" in refusal(path, **facts)
    assert path.read_bytes() == content and list(path.parent.iterdir()) == [path]


def test_a_folder_is_one_sentence(tmp_path):
    folder = tmp_path / "survey"
    folder.mkdir()
    for facts in ({}, FACTS):
        assert "(is a directory)" in refusal(folder, IsADirectoryError, **facts)
    assert "(no such file or dir" in refusal(tmp_path / "no" / "x", FileNotFoundError, **FACTS)
    assert "(not a directory)" in refusal(
        filled(tmp_path / "a.ledger").path / "b", NotADirectoryError, **FACTS
    )


def test_on_a_read_only_file_system_it_can_be_looked_at(path, monkeypatch):
    filled(path)
    opened = os.open

    def read_only(name, flags, *mode):
        if flags & (os.O_RDWR | os.O_WRONLY | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), name)
        return opened(name, flags, *mode)

    monkeypatch.setattr(os, "open", read_only)
    budget = pr.Budget(path, **FACTS)
    assert budget.left == (0.5, 1e-6) and "model 1" in str(budget.summary())
    with pytest.raises(OSError, match="cannot be written .read-only file system.: no noise was"):
        model().fit(epsilon=0.1, budget=budget)
    said = refusal(path.with_name("new.ledger"), OSError, epsilon=1.0)
    assert "cannot be made (read-only file system): name a file on a local disk that can" in said
    assert "spent" not in said


def test_a_full_disk_refuses_the_fit_before_the_data_are_read(path, monkeypatch):
    budget = filled(path)
    before, write = path.read_bytes(), os.write

    def full(file, content):
        write(file, content[:40])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def forbid(*_, **__):
        raise AssertionError("data were read")

    monkeypatch.setattr(comparisons, "statistic", forbid)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="no space left on device.: .* may stand as spent; name"):
            model().fit(epsilon=0.25, budget=budget)
    assert path.read_bytes()[: len(before)] == before and len(names(path)) == 2
    with pytest.raises(AssertionError, match="data were read"):
        model().fit(epsilon=0.25, budget=budget)
    assert budget.left == (0.25, 1e-6)


@pytest.mark.parametrize("known", [True, False])
def test_where_fsync_stops_at_the_drives_cache_the_stronger_call_is_made(path, monkeypatch, known):
    fcntl, calls = pytest.importorskip("fcntl"), []

    def control(file, command):
        calls.append(command)
        if not known:
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    budget = filled(path)
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", "full", raising=False)
    monkeypatch.setattr(fcntl, "fcntl", control)
    monkeypatch.setattr(os, "fsync", lambda file: calls.append("fsync"))
    budget.reserve("test", 0.25, 0.0, unit="row")
    assert calls == (["full"] if known else ["full", "fsync"]) * 3  # line, seal, folder


# --- crashes ---


def test_a_spending_is_on_disk_before_noise_is_drawn(path, monkeypatch):
    budget, log = filled(path), []
    synchronise, read = os.fsync, comparisons.statistic
    replaced = os.replace

    def note(what, original):
        def call(*arguments):
            log.append(what)
            return original(*arguments)

        return call

    monkeypatch.setattr(os, "fsync", note("fsync", synchronise))
    monkeypatch.setattr(os, "write", note("write", os.write))
    monkeypatch.setattr(os, "replace", note("replace", replaced))
    monkeypatch.setattr(comparisons, "statistic", note("read", read))
    model().fit(epsilon=0.25, budget=budget)
    assert log[: log.index("read") + 1] == ["write", "fsync", "fsync", "replace", "fsync", "read"]


def crashes(new):
    """What can be on disk of a line that was being added, before it was synchronised."""
    yield from (new[:length] for length in range(len(new)))
    yield from (bytes(length) for length in (1, len(new), 4096))
    yield from (bytes(length) + new[length:] for length in (1, len(new) // 2, len(new) - 1))
    yield from (new[:length] + bytes(len(new) - length) for length in (1, len(new) // 2))


def test_a_torn_line_was_never_granted_and_loses_nothing(path, quick):
    budget = filled(path)
    old, sealed = path.read_bytes(), seal(path).read_bytes()
    budget.reserve("third", 0.25, 0.0, unit="row")
    new = path.read_bytes()[len(old) :]
    for torn in crashes(new):
        path.write_bytes(old + torn)
        seal(path).write_bytes(sealed)
        assert budget.left == (0.5, 1e-6) and names(path) == ["model 0", "model 1"]
        with pytest.raises(pr.BudgetExceeded):
            budget.reserve("too much", 0.75, 0.0, unit="row")
        budget.reserve("after", 0.5, 0.0, unit="row")
        assert names(path) == ["model 0", "model 1", "after"] and budget.left == (0.0, 1e-6)
        assert path.read_bytes().startswith(old)


def test_a_line_that_was_not_sealed_yet_counts_and_is_sealed_by_the_next(path):
    budget = filled(path)
    sealed = seal(path).read_bytes()
    budget.reserve("third", 0.25, 0.0, unit="row")
    seal(path).write_bytes(sealed)
    assert budget.left == (0.25, 1e-6)
    budget.reserve("fourth", 0.25, 0.0, unit="row")
    whole = path.read_bytes()
    assert budget.left == (0.0, 1e-6)
    path.write_bytes(whole[: whole.index(b"third")])
    refusal(path)


def test_a_crash_while_it_is_made_leaves_what_can_be_made(path, quick):
    pr.Budget(path, **FACTS)
    header = path.read_bytes()
    for length in range(len(header) + 1):
        path.write_bytes(header[:length])
        seal(path).unlink()
        assert ": " in refusal(path)
        assert pr.Budget(path, **FACTS).left == (1.0, 1e-6)
        assert path.read_bytes() == header


def test_two_threads_may_stop_in_the_middle_of_each_others_reading(path):
    """A reader waits for a writer that is between line and seal."""
    budget, found = filled(path), []
    with budget._file.held() as (_, add):
        reader = threading.Thread(target=lambda: found.append(names(path)))
        reader.start()
        add({"label": "tea survey", "by": "slow", "epsilon": "0.25", "delta": "0.0"})
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
        with pytest.warns(pr.PrivrankWarning, match="counted in no budget") as caught:
            unit = fitted.fit(epsilon=1.0).release.survey.unit
        (said,) = [w for w in caught if "no budget" in str(w.message)]
        assert said.filename == __file__ and f"unit={unit!r})" in str(said.message)
        assert quiet(lambda fitted=fitted: fitted.fit(epsilon=1.0))


def quiet(call):
    with pytest.warns() as caught:
        warnings.warn("something", stacklevel=1)
        call()
    return not [w for w in caught if "no budget" in str(w.message)]


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

    monkeypatch.setattr(comparisons, "statistic", forbid)
    monkeypatch.setattr(comparisons, "bounded", forbid)
    unsaid(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(pr.PrivrankWarning):
                model().fit(epsilon=1.0)
