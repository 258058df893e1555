"""Networks: topologies by name, mixing weights, spectra, and `Network`, which says who is linked, who lies and how much
each message counts."""

from byzmesh.networks.graph import Network
from byzmesh.networks.layout import Layout
from byzmesh.networks.links import Links
from byzmesh.networks.spectrum import algebraic_connectivity, fiedler_vector, laplacian, second_eigenvalue, spectral_gap
from byzmesh.networks.weights import best_constant, equal, lazy, max_degree, metropolis_hastings, schemes

network = Network.from_spec
"""The network of a name, a file or a mapping: `Network.from_spec` below, with the same arguments."""

__all__ = [
    "Layout",
    "Links",
    "Network",
    "algebraic_connectivity",
    "best_constant",
    "equal",
    "fiedler_vector",
    "laplacian",
    "lazy",
    "max_degree",
    "metropolis_hastings",
    "network",
    "schemes",
    "second_eigenvalue",
    "spectral_gap",
]
