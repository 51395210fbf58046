"""What is right, from the definitions: plain Python that imports nothing of the product."""
