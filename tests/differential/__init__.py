"""Every model, method, objective, metric and attack against plain Python, on random small tables.

`oracles/` says what is right, from the definitions alone; `subjects/` asks the product and compares. One subject is
one function of a random generator: it draws a table, compares, and says what kind of case it was.
"""
