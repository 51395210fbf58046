"""Bucketize: a table of quasi-identifiers and one of sensitive values, which share a group number [Xiao, Tao 2006].

The plan is that of `recode/blocks.py`; what sets the recodings apart is the tables that the engine writes from it.
"""

from maskwright.recode.blocks import shuffled as plan

__all__ = ["plan"]
