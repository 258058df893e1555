"""Gram space: rules as a choice of weights, computed from inner products.

pool           every vector of a round, once
basis          the centred basis of a pool, and the matrix that lifts basis coordinates to pool rows
products       from inboxes to inner products, and from coefficients back to models
strategy       how a product is computed: the only place that chooses
small_kernels  fused passes for pools of few rows
block_kernels  passes for pools of any size
slots          bookkeeping between slots, pool rows and basis rows
rule           `gram_rule`: a `Rule` from its coefficients
"""
