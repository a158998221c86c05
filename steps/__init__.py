"""One file an arrow: records in, one record out. Steps are thin and never import each other."""
