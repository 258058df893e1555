"""From configs to stored runs: one run, many runs, on processes of this machine or on a Dask cluster."""
