"""Neural networks: any PyTorch module as a problem, all workers at once. Needs the extra `torch`."""
