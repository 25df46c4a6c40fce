"""Print the oldest versions that setup.cfg allows, as constraints for pip.

    python tools/oldest.py install_requires test docs

The arguments are lists of requirements: install_requires, or an extra. The oldest versions have
wheels for the oldest Python only, so the script requires this Python.
"""

import configparser
import re
import sys
from pathlib import Path

REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)(\[[a-z,]+\])?>=(?P<floor>[0-9.]+)")
OWN = re.compile(r"privrank\[(?P<extras>[a-z,]+)\]")


def floors(config, wanted):
    """Map the packages in lists of requirements to the oldest version of each."""
    lists = {"install_requires": config["options"]["install_requires"]}
    lists.update(config["options.extras_require"])
    found = {}
    for name in wanted:
        for line in lists[name].split("\n"):
            if not line.strip() or line.startswith("#"):
                continue
            if own := OWN.fullmatch(line.strip()):
                found.update(floors(config, own["extras"].split(",")))
            elif required := REQUIREMENT.fullmatch(line.strip()):
                found[required["name"]] = required["floor"]
            else:
                raise ValueError(f"setup.cfg must give {line.strip()!r} as package>=version.")
    return found


def main(wanted):
    """Print the constraints, or the Python version that they are for."""
    config = configparser.ConfigParser()
    config.read(Path(__file__).parents[1] / "setup.cfg", encoding="utf-8")
    python = config["options"]["python_requires"].removeprefix(">=")
    if sys.version_info[:2] != tuple(map(int, python.split("."))):
        here = ".".join(map(str, sys.version_info[:2]))
        sys.exit(
            f"The oldest versions are for Python {python}, and this is Python {here}: "
            f"make oldest PYTHON=/path/to/python{python}."
        )
    for name, floor in sorted(floors(config, wanted).items()):
        print(f"{name}=={floor}")


if __name__ == "__main__":
    main(sys.argv[1:])
