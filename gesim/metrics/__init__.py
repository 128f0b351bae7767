"""What a run is measured by: records, summaries, intervals, histograms."""
