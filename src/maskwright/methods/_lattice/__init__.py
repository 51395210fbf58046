"""Full-domain recoding: the lattice of nodes, what a node scores, and the searches for the best one."""
