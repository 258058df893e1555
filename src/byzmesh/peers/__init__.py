"""Peers: the algorithm between real machines, without a server and without a clock."""
