"""The screens of Studio, a file each: what a page shows, and what its forms do."""
