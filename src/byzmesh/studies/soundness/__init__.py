"""Soundness by fuzzing: certifies random networks (`cases`) and attacks all that the certificates claim (`attack`).

python -m byzmesh.studies.soundness 10000 reports/soundness
"""
