"""Evaluation sets: term lexicons, generated sentences, readers of public formats, and what makes a set valid.

Import what you need from the file that holds it; Great Expectations and pandas stay out of `veedor --help`.
"""
