"""The report on fits and experiments: pages, figures and tables.

>>> from harness.report import FitReport
>>> FitReport(fit).save("fit.html")
"""

from harness.report.fit_page import FitReport

__all__ = ["FitReport"]
