"""The report of an audit: evidence as audit.json, and the same evidence in sentences as HTML, PDF and Markdown.

`build_dossier` gathers the records, `write_report` writes the files. Neither judges: verdicts come ready.
"""

from veedor.report.build import build_dossier
from veedor.report.dossier import Dossier
from veedor.report.render import project_root, write_manifest, write_report

__all__ = ["Dossier", "build_dossier", "project_root", "write_manifest", "write_report"]
