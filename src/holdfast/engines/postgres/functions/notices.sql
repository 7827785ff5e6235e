-- version: 1
-- Notices that wake who waits for news of a topic.

-- Notify the listeners of a topic. The payload is a digest that only holders of the key can make.
CREATE OR REPLACE FUNCTION holdfast.notify(in_topic text) RETURNS void LANGUAGE sql VOLATILE AS $$
    SELECT pg_notify('holdfast', encode(substr(sha256(k.key || convert_to(in_topic, 'UTF8')), 1, 16), 'hex'))
    FROM holdfast.notice_key k
$$;
