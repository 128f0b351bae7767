"""Running scenarios, and what comes out: results, folders, comparisons."""
