"""An archive as a folder of files: a manifest, segments of JSON lines, and blobs by digest."""
