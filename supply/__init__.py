"""Where Maskwright comes from and what it is made of: locked and least versions, distributions, licences."""
