"""Analytical model of sparse and dense tensor accelerators, after Sparseloop (MICRO 2022).

A specification (``spec``) gives an architecture, a workload, sparse acceleration features and a mapping. Three steps follow, each
usable alone (paper, section 4): ``dataflow`` counts dense traffic, ``sparse`` says what of it is actual, gated or skipped,
``hardware`` turns counts into cycles, energy and validity. ``analysis.analyze`` runs them; ``result`` writes the record.
"""
