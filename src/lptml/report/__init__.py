"""The report: one self-contained HTML page about a metric, its points and the labels to distrust."""

from lptml.report.build import Origin, Page, labels_report, pairs_report

__all__ = ["Origin", "Page", "labels_report", "pairs_report"]
