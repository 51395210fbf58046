"""Methods that group row by row: orders of rows, requirements on groups, and the labels of groups."""
