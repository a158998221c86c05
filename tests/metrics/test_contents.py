"""The contents page of metrics lists what exists, by the name it is called."""

import subprocess
import sys

import veedor
from veedor.metrics import METRICS


def test_every_metric_is_listed_by_its_own_name_and_can_be_called() -> None:
    assert all(name == metric.name and callable(metric.function) for name, metric in METRICS.items())
    assert {"term_swap_effect", "attribution_contrast", "subgroup_auc", "bpsn_auc", "bnsp_auc"} <= set(METRICS)


def test_every_metric_says_what_it_is_where_it_comes_from_and_how_to_read_it() -> None:
    for metric in METRICS.values():
        assert metric.summary.endswith(".") and metric.source and metric.range and metric.direction


def test_the_library_offers_the_contents_page() -> None:
    assert veedor.METRICS is METRICS


def test_metrics_load_nothing_heavy() -> None:
    code = "import sys, veedor.verdicts, veedor.metrics; print(sorted(set(sys.modules) & set(%r)))"
    heavy = ["torch", "transformers", "sklearn", "statsmodels", "mlflow", "great_expectations", "matplotlib"]
    found = subprocess.run([sys.executable, "-c", code % heavy], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
