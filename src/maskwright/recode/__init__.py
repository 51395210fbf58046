"""From a grouping to a plan for the engine: one module per recoding."""
