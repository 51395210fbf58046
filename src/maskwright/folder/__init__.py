"""The release folder: a private stage that is renamed into place, its manifest, and the saved state."""
