"""Parts of the report and of the plots: the views of a metric, the page and its style and script."""
