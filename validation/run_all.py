"""Run every study and rewrite its table under docs/validation/ (`make validate`)."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

STUDIES = (
    "interval_coverage",
    "links",
    "covariates",
    "davidson",
    "dependence",
    "ranking_worths",
    "sets",
    "first_choices",
    "set_orders",
    "design_weights",
    "contests",
    "pooling",
    "pooling_random",
    "activity",
    "identified",
    "unequal_answers",
    "proportional",
    "rare_outcomes",
    "item_scatter",
    "ccw_experiments",
    "ccw_surveys",
    "topk_targets",
    "topk_split",
    "selection",
    "rank_sets",
    "noise_distributions",
    "plans",
    "hypotheses",
    "core_tables",
    "assumptions",
    "uniformity_level",
    "uniformity_limit",
    "uniformity_power",
    "uniformity_figures",
    "identity_power",
    "identity_null",
    "departures",
    "effects",
    "power_models",
    "power_tests",
    "planning",
    "closeness_power",
    "closeness_pvalues",
    "closeness_tables",
    "closeness_tables_intervals",
    "closeness_borders",
    "closeness_private",
    "closeness_invariance",
    "closeness_sets",
    "closeness_activity",
    "closeness_details",
    "closeness_features",
    "closeness_peers",
    "closeness_intervals",
    "aggregation",
    "aggregation_orders",
    "smith_sets",
    "local",
    "local_few",
    "local_intervals",
    "local_yll",
    "localtests",
    "localtests_subrankings",
    "local_adaptive",
    "local_figures",
    "ledger_kills",
    "audit",
    "rivals",
)


def main() -> None:
    here = Path(__file__).resolve().parent
    for number, name in enumerate(STUDIES, 1):
        print(f"[{number}/{len(STUDIES)}] {name} ...", flush=True)
        start = time.time()
        subprocess.run([sys.executable, str(here / f"{name}.py")], check=True)
        print(f"[{number}/{len(STUDIES)}] {name}: {(time.time() - start) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
