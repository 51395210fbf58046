"""What a user writes down that an adversary knows, looked up in a release."""
