// Filled by the mirror.
