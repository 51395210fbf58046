"""Permute: one table with exact quasi-identifiers, sensitive values shuffled inside the groups.

The plan is that of `recode/blocks.py`; what sets the recodings apart is the tables that the engine writes from it.
"""

from maskwright.recode.blocks import shuffled as plan

__all__ = ["plan"]
