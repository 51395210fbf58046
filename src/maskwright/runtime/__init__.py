"""What a run needs from the machine it runs on: events and time, memory, files that are whole or absent."""
