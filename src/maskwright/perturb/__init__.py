"""Perturbation: numbers that are published with changes, and what somebody believes who knows how.

Plain functions of arrays; each method stands beside the attack of somebody who knows it and its settings.
"""
