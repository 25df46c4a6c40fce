"""Write immigration.csv and immigration_students.csv from immigration_answers.csv.

Usage, from the top of the repository: ``python tools/data/immigration.py data``
"""

import csv
import sys
from collections.abc import Iterable
from pathlib import Path

OUTCOME = {"1": "1", "2": "-1", "0": "0", ".": ""}


def write_table(path: Path, header: list[str], rows: Iterable[list[str]]) -> None:
    """Write comma-separated rows under a header, with Unix line ends."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def main(folder: Path) -> None:
    """Expand each counted combination of answers into that many respondents."""
    with (folder / "immigration_answers.csv").open(encoding="utf-8", newline="") as stream:
        table = list(csv.DictReader(stream))
    pairs = [name for name in table[0] if ":" in name]
    respondents = [row for row in table for _ in range(int(row["count"]))]

    write_table(
        folder / "immigration.csv",
        ["respondent", "item1", "item2", "outcome"],
        (
            [str(number), *pair.split(":"), OUTCOME[row[pair]]]
            for number, row in enumerate(respondents, start=1)
            for pair in pairs
        ),
    )
    write_table(
        folder / "immigration_students.csv",
        ["respondent", "sex"],
        ([str(number), row["sex"]] for number, row in enumerate(respondents, start=1)),
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/data/immigration.py FOLDER")
    main(Path(sys.argv[1]))
