"""Results on disk: an SQLite file, its keys, serialised arrays, size limit and repair."""
