-- Whether a session or a state is from before the server was promoted, and a function that marks it as from
-- after it. A server without replicas is never promoted.
local function is_stale()
  return false
end
local function mark_current()
end
