"""Studies: questions asked with many runs, from the cells to the finished report."""
