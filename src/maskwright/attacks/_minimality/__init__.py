"""The analyses behind the minimality attack."""
