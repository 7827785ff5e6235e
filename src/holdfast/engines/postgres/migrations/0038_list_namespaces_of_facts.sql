-- The namespaces in which an agent has facts are listed in order.
CREATE INDEX fact_scopes_of_agent ON holdfast.fact_scopes (tenant, agent, namespace);
