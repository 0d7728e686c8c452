"""The report: what is shown of fits and experiments, as pages, figures and tables.

>>> from harness.report import FitReport
>>> FitReport(fit).save("fit.html")
"""

from harness.report.fit_page import FitReport

__all__ = ["FitReport"]
