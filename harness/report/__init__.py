"""The report: a self-contained HTML page of tables, figures and diagnostics."""
