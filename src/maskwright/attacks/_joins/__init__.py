"""What follows from several tables about the same people: whose rows these are, and which classes belong together."""
