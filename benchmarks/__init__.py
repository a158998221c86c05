"""Benchmarks: what Veedor costs, against what else there is. Nothing here runs in the test suite."""
