"""What attacks share where a person has several rows."""
