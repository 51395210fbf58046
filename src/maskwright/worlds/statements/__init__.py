"""What an adversary knows, as statements about people, and the worlds in which they are true."""
