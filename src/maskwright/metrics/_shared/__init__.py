"""What several metrics share: the values that a published label stands for."""
