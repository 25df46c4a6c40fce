"""Column headings of the pages of studies, in words.

CSV files keep the short names of the columns, which other code reads. A column without an entry
has the same heading on its page. `python validation/headings.py` renews the headings of all pages.
"""

from __future__ import annotations

import csv
from pathlib import Path

COMMON = {
    "SE": "std err",
    "n": "respondents",
    "m": "items",
    "k": "categories",
    "per pair": "comparisons per pair",
    "of each pair": "comparisons per pair",
    "units": "respondents or rows",
    "nobs": "respondents or rows",
    "level": "size",
    "most": "bound for the size",
    "RMSE": "root mean square error",
    "worst": "minimum coverage",
    "least": "minimum coverage",
    "best": "maximum coverage",
    "worst pair": "minimum coverage of a pair",
    "average": "mean coverage",
    "warned": "fits with a warning",
}

TABLES = {
    "activity": {
        "pairs": "rows sampled by pair",
        "votes of active": "share of votes of active voters",
        "target, first - last": "true difference of first and last item",
        "worst pair": "minimum coverage of a pair",
        "its floor": "floor of this minimum",
    },
    "aggregation_orders": {
        "auto": "release of the default",
        "excess": "excess of the default",
        "its excess": "excess of the rival",
        "within": "within two standard errors",
    },
    "aggregation_orders_rivals": {
        "auto": "release of the default",
        "excess": "excess of the default",
        "its excess": "excess of the rival",
    },
    "aggregation_ranks": {"none": "no noise", "auto": "default", "auto, sample": "default, sample"}
    | {"auto, delta": "default with delta", "pairs, delta": "pairs with delta"},
    "assumptions": {"wanted": "nominal value", "found": "observed value", "number": "measure"},
    "audit": {"found": "largest measured loss", "loss": "how the loss was found"},
    "ccw_experiments": {"p": "fraction of pairs compared"},
    "ccw_surveys": {"p": "fraction of comparisons kept", "in place": "items at their position"}
    | {"in place, std err": "items at their position, std err"},
    "closeness_details": {
        "units": "group sizes",
        "details_epsilon": "epsilon of details",
        "all hold": "all intervals cover",
        "smallest group's hold": "intervals of the smallest group cover",
        "named wrongly": "wrong differences detected",
        "named rightly": "true differences detected",
    },
    "closeness_details_university": {
        "details_epsilon": "epsilon of details",
        "city named": "city of the language detected",
        "another city named": "another city detected",
    },
    "closeness_features": {
        "p by matrix": "p-value by matrix",
        "p by features": "p-value by features",
        "apart": "mean difference of p-values",
        "most": "largest difference of p-values",
    },
    "closeness_intervals": {
        "cell": "setting",
        "too high": "interval above the distance",
        "rejects": "power of the test",
        "agree": "interval and test agree",
        "L > 0": "lower end above 0 before the zero rule",
        "interval": "mean interval",
        "corrected": "corrected effect",
        "width then": "width by concentration alone",
    },
    "closeness_power": {"auto": "default", "sizes": "group sizes"},
    "closeness_tables": {"sizes": "group sizes", "p that the level is at most 0.05": "p-value"},
    "closeness_borders": {
        "sizes": "group sizes",
        "simple": "simple rival",
        "default": "default method",
        "loss": "power lost by the default",
    },
    "closeness_tables_intervals": {
        "sizes": "group sizes",
        "above": "interval above the distance",
        "below": "interval below the distance",
        "details": "coverage of all differences",
        "shares": "coverage of all shares",
        "wrong": "a wrong difference is clear",
        "agree": "interval and test agree",
    },
    "closeness_activity": {"most": "0.05 plus two standard errors"},
    "core_tables": {
        "found": "observed",
        "bound": "bound by chance",
        "earlier rule": "observed, earlier rule",
        "width, specified": "relative width, specified",
        "width": "relative width",
        "worst": "worst contrast or setting",
    },
    "coverage": {"of stated": "coverage of stated intervals", "privacy part": "privacy component"},
    "covariates": {"level of the null term": "size of the test of a term without effect"},
    "davidson": {
        "cell": "setting",
        "contrasts": "mean coverage of contrasts",
        "lambda": "coverage of lambda",
        "lambda one-sided": "lambda: interval unbounded on one side",
    },
    "davidson_camps": {
        "cell": "setting",
        "stated": "mean std err of contrasts",
        "pairs found": "pairs detected",
        "contrasts": "mean coverage of contrasts",
        "lambda": "coverage of lambda",
        "stated of lambda": "mean std err of lambda",
    },
    "davidson_surveys": {
        "its error": "std err of the RMSE",
        "predicted": "predicted std err",
        "stated": "mean std err",
    },
    "departures_choices": {"m": "categories", "n": "answers"},
    "departures_rankings": {"n": "rankings"},
    "dependence": {
        "people": "population",
        "its floor": "floor of the worst pair",
        "worst item": "minimum coverage of an item",
        "item floor": "floor of the worst item",
        "largest effect": "largest design effect",
        "its pair": "coverage of the pair with this effect",
        "all at once": "simultaneous intervals of pairs",
        "width": "relative width",
        "unwarned average": "without a warning: mean coverage",
        "unwarned worst pair": "without a warning: minimum coverage",
        "unwarned floor": "without a warning: floor",
    },
    "dependence_tests": {"people": "population"},
    "effects": {"n": "answers"},
    "fuzz": {"surface": "entry point", "cases": "inputs", "taken": "accepted"},
    "hypotheses": {
        "pairs, mean": "size, mean over pairs",
        "worst pair": "worst pair of items",
        "worst": "size for the worst pair",
        "ceiling": "ceiling for the worst pair",
        "all pairs": "size of the joint test",
        "zero, a pair": "rejection of equal worths, a pair",
        "zero, all pairs": "rejection of equal worths, all",
    },
    "identified": {
        "ratio": "comparisons per item / sd of the noise",
        "connected": "connects items without comparisons",
        "withheld": "identified differences withheld",
        "wrong": "wrong intervals, mean",
        "worst pair": "wrong intervals, worst pair",
        "its bound": "bound for the worst pair",
        "coverage": "coverage of stated intervals",
    },
    "identity_null": {
        "n": "answers",
        "level, taken as exact": "size, null taken as exact",
        "level, null_nobs": "size with null_nobs",
        "most": "0.05 plus two standard errors",
        "power, null_nobs": "power with null_nobs",
        "level, noise untold": "size, noise of the null not stated",
        "level, null_noise": "size with null_noise",
        "power, null_noise": "power with null_noise",
    },
    "item_scatter": {
        "scatter": "sd of the deviations",
        "z found": "z significant",
        "on the line": "z significant, deviations ignored",
    },
    "ledger_kills": {
        "spends": "what the processes do",
        "spendings per ledger": "entries until full",
        "granted": "grants reported",
        "entered": "entries",
        "not heard of": "entries without a report",
        "overspent": "ledgers above their total",
        "lost": "grants without an entry",
        "entered twice": "duplicate entries",
        "moved": "entries in the wrong account",
        "failed": "failed processes",
    },
    "links": {"privacy part": "privacy component"},
    "local": {"RR KwikSort": "KwikSort, :RR", "Lap KwikSort": "KwikSort, :Lap"}
    | {"RR Borda": "Borda, :RR", "Duchi search": "local search, Duchi", "cap": "CapBorda"},
    "local_adaptive": {
        "asked": "respondents",
        "dropout, late": "dropout, late answers",
        "sort alone": "order of the sort alone",
        "neighbours": "agreement on neighbours",
        "covered": "simultaneous coverage",
        "unplaced": "items without a position",
    },
    "local_few": {
        "votes": "votes per pair",
        "cap": "CapBorda",
        "most": "largest loss against Borda, in std errs",
        "default - cap": "default minus CapBorda",
        "by model": "by model of rankings",
    },
    "local_intervals": {
        "pairs": "mean coverage of pairs",
        "most": "maximum coverage of a pair",
        "open": "intervals equal to [0, 1]",
        "all pairs": "simultaneous coverage of pairs",
        "scores": "coverage of Borda scores",
        "worst score": "minimum coverage of a score",
        "ranks": "coverage of rank sets",
        "known": "pairs with a stated order",
    },
    "localtests_rankings": {
        "rejected at .05": "rejected at 0.05",
        "at .2": "rejected at 0.2",
        "at .5": "rejected at 0.5",
    },
    "localtests_subrankings": {
        "rankings": "model of rankings",
        "size": "items per report",
        "covered": "mean coverage",
        "worst pair (floor)": "minimum over pairs (floor)",
        "which": "worst pair of items",
        "most of pairs (ceiling)": "maximum over pairs (ceiling)",
        "error": "root mean square error",
        "error of size 2": "error with 2 items per report",
        "error of bits": "error with pair bits",
        "width over size 2": "width relative to 2 items per report",
        "width over bits": "width relative to pair bits",
        "covered by size 2": "coverage with 2 items per report",
        "covered by bits": "coverage with pair bits",
    },
    "localtests_worths": {
        "pairs": "mean coverage of pairs",
        "worst of pairs (floor)": "minimum over pairs (floor)",
        "most of pairs (ceiling)": "maximum over pairs (ceiling)",
        "worths": "mean coverage of worths",
        "worst of worths (floor)": "minimum over worths (floor)",
        "most of worths (ceiling)": "maximum over worths (ceiling)",
        "rates": "mean coverage of win rates",
        "worst of rates (floor)": "minimum over win rates (floor)",
        "most of rates (ceiling)": "maximum over win rates (ceiling)",
        "ranks": "coverage of rank sets",
        "level": "size, equal worths",
        "separated": "size, separation",
    },
    "noise_distributions": {
        "distance": "mean distance from the non-private worths",
        "with design effect": "distance with the design effect",
        "bar": "target for the distance",
        "met": "target met",
        "separation, type I at .05 (eps .5, 2)": "size of separation at epsilon 0.5, 2",
    },
    "planning_pvalues": {
        "5 %": "5% quantile",
        "95 %": "95% quantile",
        "share at most .05": "fraction at most 0.05",
    },
    "planning_sizes": {"epsilon inf": "no privacy"},
    "plans": {
        "auto": "release of the default",
        "worst pair": "error of the worst pair",
        "predicted": "predicted error",
        "its RMSE": "its root mean square error",
        "its worst pair": "its error of the worst pair",
        "ratio": "ratio of the errors",
        "SE": "std err of the ratio",
    },
    "pooling": {
        "numbers": "released numbers",
        "units": "rows or rankings",
        "shift": "shift of one survey",
        "pairs": "mean coverage",
        "one": "coverage of the best single release",
        "there": "its coverage for the worst pooled pair",
        "alike": "largest std err ratio to the best release",
        "errors": "mean std err ratio to own summaries",
        "larger": "fraction with a larger pooled std err",
        "widths": "mean width ratio to own summaries",
        "wider": "fraction with a wider pooled interval",
        "most": "largest width ratio",
        "Q rejects": "rejection rate of Q",
    },
    "pooling_random": {
        "sites": "rows of the sites",
        "common": "coverage, common effects",
        "random": "coverage, random effects",
    },
    "power_models": {
        "held out": "not used in development",
        "found": "simulated",
        "sd": "difference in std errs",
    },
    "power_tests": {
        "stated": "given",
        "found": "solved",
        "its std err": "std err of the planned power",
        "power of fits": "simulated power",
    },
    "proportional": {
        "RMSE": "error, proportional",
        "public": "error, public design",
        "released": "error, released pair counts",
        "beta": "mean estimate of beta",
        "asserted, mean": "without the check: mean coverage",
        "asserted, least": "without the check: minimum coverage",
        "width over asserted": "width relative to fits without the check",
        "check finds": "check detects a departure",
        "warns": "fits with a warning",
    },
    "rank_sets": {
        "hold": "simultaneous coverage",
        "its floor": "floor of the coverage",
        "mean size": "mean size of the sets",
        "Bonferroni's": "mean size of Bonferroni sets",
    },
    "ranking_worths": {
        "listed": "items listed",
        "worst pair": "minimum coverage",
        "best pair": "maximum coverage",
        "effects": "design effects",
        "width": "mean relative width",
        "narrowest": "relative width, narrowest pair",
        "widest": "relative width, widest pair",
    },
    "ranking_worths_mle": {
        "listed": "items listed",
        "mean apart": "largest mean difference, in std errs",
        "ceiling": "95% quantile of this maximum",
        "one sample": "largest difference in one sample",
        "sd of the fit": "sd of the pairwise fit",
        "sd of likelihood": "sd of maximum likelihood",
        "sd apart": "sd of the difference",
    },
    "rare_outcomes": {
        "pairs of each": "pairs per respondent",
        "coverage of the rare item, in advance": "coverage of the extreme item",
        "least": "minimum coverage of an item",
        "least, no warning": "minimum coverage without a warning",
        "median width of the rare item's": "median width for the extreme item",
    },
    "refusals": {
        "predicted": "predicted probability of failure",
        "found": "observed failures",
        "fit": "action before the fit",
        "power of 6": "planned power",
    },
    "selection": {
        "separation, type I at .05": "size of separation",
        "homogeneity, type I at .05": "size of homogeneity",
        "win rates, coverage": "coverage of win rates",
        "rank sets (win rates)": "coverage of rank sets (win rates)",
        "rank sets (worths)": "coverage of rank sets (worths)",
        "SE at .05": "std err at 0.05",
    },
    "selection_noise": {
        "separation, type I at .05": "size of separation",
        "SE at .05": "std err at 0.05",
    },
    "smith_sets": {
        "hold": "set covers",
        "wrong": "wrong winner",
        "right": "correct winner",
        "size": "mean size of the set",
        "Smith set": "size of the Smith set",
        "n": "rankings or reports",
    },
    "topk_split": {
        "people": "respondents",
        "rows": "pairs per respondent",
        "released": "form of release",
        "default": "form of the default",
        "error": "root mean square error (hundredths)",
        "stated": "root mean square std err (hundredths)",
        "rejected": "false separation",
    },
    "topk_targets": {
        "share": "rows / pairs",
        "net wins": "correct, by net wins",
        "win rate": "correct, by win rate",
        "default": "correct, default",
        "by win rate": "default uses win rates",
        "algorithm 2": "correct, Algorithm 2",
        "counts released": "correct, counts released",
        "behind": "deficit of the default",
        "lost": "deficit against Algorithm 2",
        "withheld": "items without an interval",
        "sure": "items stated in or out",
        "wrong": "wrong statements",
    },
    "unequal_answers": {
        "answers of each": "answers per respondent by group",
        "kept": "answers used",
        "level of g": "size of the test of the group",
        "mean coverage of g": "mean coverage of the group effect",
        "least coverage": "minimum coverage",
    },
    "uniformity_limit": {
        "used": "null table used",
        "Borda 0.05": "Borda norm at 0.05",
        "residual 0.05": "residual norm at 0.05",
        "SE 0.05": "std err at 0.05",
        "Borda 0.01": "Borda norm at 0.01",
        "residual 0.01": "residual norm at 0.01",
        "SE 0.01": "std err at 0.01",
    },
}


def headings(name: str, columns: list[str]) -> list[str]:
    """Return the headings of a table on its page."""
    own = TABLES.get(name, {})
    return [own.get(column, COMMON.get(column, column)) for column in columns]


def renew(page: Path) -> None:
    """Replace the headings of a page by the present ones."""
    with page.with_suffix(".csv").open(newline="") as handle:
        columns = next(csv.reader(handle))
    lines = page.read_text().split("\n")
    place = next(k for k, line in enumerate(lines) if line.startswith("| "))
    lines[place] = f"| {' | '.join(headings(page.stem, columns))} |"
    page.write_text("\n".join(lines))


if __name__ == "__main__":
    folder = Path(__file__).parents[1] / "docs" / "validation"
    for file in sorted(folder.glob("*.md")):
        # the page of mutants counts the rows of its file
        if file.with_suffix(".csv").exists() and file.stem != "mutants":
            renew(file)
