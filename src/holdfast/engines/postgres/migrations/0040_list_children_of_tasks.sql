-- The children of a task are listed in the order of their ids.
CREATE INDEX tasks_of_parent ON holdfast.tasks ((tenant || E'\n' || parent_id), id)
    WHERE parent_id <> '';
