-- Every event waits for the index of words, in ranges that can be indexed one at a time.
INSERT INTO holdfast.unindexed_events AS u (tenant, agent, session_key, epoch, first_seq, last_seq)
SELECT e.tenant, e.agent, e.session_key, e.epoch, min(e.seq), max(e.seq)
FROM holdfast.events e
GROUP BY e.tenant, e.agent, e.session_key, e.epoch, e.seq / 500
ON CONFLICT (tenant, agent, session_key, epoch, first_seq)
    DO UPDATE SET last_seq = GREATEST(u.last_seq, excluded.last_seq);
