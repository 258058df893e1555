"""Doors to the tools that people use: our rules inside other frameworks, our runs inside other loggers.

    server    a rule on a server that has no data: what the two below share
    flower    a Flower strategy                                  extra `flower`
    nvflare   an NVFlare aggregator                              extra `nvflare`
    byzfl     aggregators with ByzFL's names and arguments       NumPy; torch tensors with the extra `torch`

docs/integrations.md shows each with an example.
"""
