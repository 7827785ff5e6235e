"""Tasks as values: records, the entries of their timeline, push configs."""
