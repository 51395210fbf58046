"""The compiled inner loops (optional at installation), each with a numpy twin that gives the same results."""
