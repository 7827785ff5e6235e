"""The same work done by Holdfast and by others, side by side on the same servers."""
