-- version: 2
-- Notices that wake who waits for news of a topic.

-- Notify the listeners of a topic. The payload is a digest that only holders of the key can make. On a
-- distributed database nobody would hear it, and a transaction over several nodes cannot send it: listeners poll.
CREATE OR REPLACE FUNCTION holdfast.notify(in_topic text) RETURNS void LANGUAGE sql VOLATILE AS $$
    /* alone: */
    SELECT pg_notify('holdfast', encode(substr(sha256(k.key || convert_to(in_topic, 'UTF8')), 1, 16), 'hex'))
    FROM holdfast.notice_key k
    /* end */
    /* distributed: SELECT 1 */
$$;

-- Notify the listeners of a topic, in a transaction that writes nothing.
CREATE OR REPLACE FUNCTION holdfast.ring(in_topic text) RETURNS void LANGUAGE sql VOLATILE AS $$
    SELECT pg_notify('holdfast', encode(substr(sha256(k.key || convert_to(in_topic, 'UTF8')), 1, 16), 'hex'))
    FROM holdfast.notice_key k
$$;
