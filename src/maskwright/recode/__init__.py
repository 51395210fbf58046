"""From a grouping to a plan for the engine: what each row is published with."""
