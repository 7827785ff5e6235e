"""Settings and URLs in, ``State`` out."""
