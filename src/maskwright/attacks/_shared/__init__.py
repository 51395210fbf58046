"""What attacks on sensitive values have in common."""
