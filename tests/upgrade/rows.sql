INSERT INTO holdfast.api_keys VALUES
	('acme', '2f294a1269e415729384a72010a4c8b9b14f671ee8fc4750652f633c9df5be20', '01a1e5fc-3f41-73e0-aad7-58dbc08f4005', 'ana', '"laptop"', '2026-11-16 20:11:16.161801+00', NULL),
	('acme', '6f0f4ab001ed24155eaeb30dd7f8069a99b9f225f37a0c19b06fa38d44275f5c', '01a1e5fc-3f42-73d2-9bca-5ffe4d38f846', 'bob', '""', '2026-11-16 20:11:16.16269+00', '2026-11-16 20:11:16.168616+00'),
	('zenith', '81d138ddb694cb68e237817815a6adc950d26615b59804b41804cfc696469781', '01a1e5fc-40d0-77ed-a605-1e660cf8c567', 'ana', '"laptop"', '2026-11-16 20:11:16.560866+00', NULL),
	('zenith', 'b3687e3fd9db224428e4f345d188c187d81a9d7cb7d03d5aa9c9cbd81d597448', '01a1e5fc-40d1-7029-9cf2-08397b91b9f7', 'bob', '""', '2026-11-16 20:11:16.561498+00', '2026-11-16 20:11:16.563897+00');
INSERT INTO holdfast.blob_chunks VALUES
	('acme', '3IgZU4UgYozM8lrEikFnWmEyKFs', 0, '\x006368617274ff'),
	('acme', 'ILg6bDGUNpkRvwy8wTN4ZwZM44c', 0, '\x6c6f67206f662061636d65'),
	('zenith', '2zi_z5cuSmMFKwQTKaZX7WO8KTM', 0, '\x006368617274ff'),
	('zenith', 'KacDTHE9EtydEHTLWCEUpAgjkvU', 0, '\x6c6f67206f66207a656e697468');
INSERT INTO holdfast.blob_index VALUES
	('acme', 'postgres', '3IgZU4UgYozM8lrEikFnWmEyKFs', '3IgZU4UgYozM8lrEikFnWmEyKFs', 7, 'text/plain', '89b9891cb3a988ac4812193a07989b39386ad0b80937ea3dcb58a9afbeda96c8', '2026-11-16 20:11:15.876625+00', NULL, NULL),
	('acme', 'postgres', 'ILg6bDGUNpkRvwy8wTN4ZwZM44c', 'ILg6bDGUNpkRvwy8wTN4ZwZM44c', 11, 'text/plain', '10d6b92d3e313d5d354f49e2a525ac3773ef13218b1140d9f52aaced540f190f', '2026-11-16 20:11:15.92158+00', NULL, NULL),
	('zenith', 'postgres', '2zi_z5cuSmMFKwQTKaZX7WO8KTM', '2zi_z5cuSmMFKwQTKaZX7WO8KTM', 7, 'text/plain', '89b9891cb3a988ac4812193a07989b39386ad0b80937ea3dcb58a9afbeda96c8', '2026-11-16 20:11:16.420859+00', NULL, NULL),
	('zenith', 'postgres', 'KacDTHE9EtydEHTLWCEUpAgjkvU', 'KacDTHE9EtydEHTLWCEUpAgjkvU', 13, 'text/plain', '818def8c6f7bad420f61156abbbaccebb5910c2b819b4f34deb97e9d03e7312a', '2026-11-16 20:11:16.443654+00', NULL, NULL);
INSERT INTO holdfast.boards OVERRIDING SYSTEM VALUE VALUES
	('acme', '01a1e5fc-3dc3-729e-9b5d-272c700c45c8', 'conv-1', '', '""', NULL, 3, 1),
	('zenith', '01a1e5fc-3f97-71fc-9fb5-b842415607f6', 'conv-1', '', '""', NULL, 3, 2);
INSERT INTO holdfast.cards VALUES
	('acme', '01a1e5fc-3dc3-729e-9b5d-272c700c45c8', '01a1e5fc-3dc3-729e-9b5d-272d4915f70b', 0, '"order tugs"', 'succeeded', 0, '"both"'),
	('acme', '01a1e5fc-3dc3-729e-9b5d-272c700c45c8', '01a1e5fc-3dc3-729e-9b5d-272e8dc9517f', 1, '"call the berth"', 'in_progress', 1, '"no answer"'),
	('zenith', '01a1e5fc-3f97-71fc-9fb5-b842415607f6', '01a1e5fc-3f97-71fc-9fb5-b843a9c01d14', 0, '"order tugs"', 'succeeded', 0, '"both"'),
	('zenith', '01a1e5fc-3f97-71fc-9fb5-b842415607f6', '01a1e5fc-3f97-71fc-9fb5-b8443063d6a9', 1, '"call the berth"', 'in_progress', 1, '"no answer"');
INSERT INTO holdfast.channel_events VALUES
	('acme', 'alerts', 1, 'c0', '{"n":0,"of":"acme"}', '2026-11-16 20:11:15.8487+00', '2121-12-11 01:31:15.8487+00'),
	('acme', 'alerts', 2, 'c1', '{"n":1,"of":"acme"}', '2026-11-16 20:11:15.852802+00', '2121-12-11 01:31:15.852802+00'),
	('acme', 'alerts', 3, 'c2', '{"n":2,"of":"acme"}', '2026-11-16 20:11:15.856124+00', '2121-12-11 01:31:15.856124+00'),
	('zenith', 'alerts', 1, 'c0', '{"n":0,"of":"zenith"}', '2026-11-16 20:11:16.356566+00', '2121-12-11 01:31:16.356566+00'),
	('zenith', 'alerts', 2, 'c1', '{"n":1,"of":"zenith"}', '2026-11-16 20:11:16.363881+00', '2121-12-11 01:31:16.363881+00'),
	('zenith', 'alerts', 3, 'c2', '{"n":2,"of":"zenith"}', '2026-11-16 20:11:16.384254+00', '2121-12-11 01:31:16.384254+00');
INSERT INTO holdfast.channels VALUES
	('acme', 'alerts', 3),
	('zenith', 'alerts', 3);
INSERT INTO holdfast.collections VALUES
	('acme', 'manuals', 2, false),
	('zenith', 'manuals', 2, false);
INSERT INTO holdfast.documents VALUES
	('acme', 'manuals', 'crane', 2, '[0,1]', '[{"type":"text","text":"crane manual"}]', '{"y":2024}', '{"\u0001": {"acme": "manuals"}, "y": 2024}'),
	('acme', 'manuals', 'tides', 2, '[1,0]', '[{"type":"text","text":"tide tables"}]', '{"y":2030}', '{"\u0001": {"acme": "manuals"}, "y": 2030}'),
	('zenith', 'manuals', 'crane', 2, '[0,1]', '[{"type":"text","text":"crane manual"}]', '{"y":2024}', '{"\u0001": {"zenith": "manuals"}, "y": 2024}'),
	('zenith', 'manuals', 'tides', 2, '[1,0]', '[{"type":"text","text":"tide tables"}]', '{"y":2030}', '{"\u0001": {"zenith": "manuals"}, "y": 2030}');
INSERT INTO holdfast.entities OVERRIDING SYSTEM VALUE VALUES
	('acme', 'meridian', 1, '{"label":"Ship","properties":{"name":"Meridian","of":"acme"},"id":"meridian"}'),
	('acme', 'north-quay', 2, '{"label":"Berth","properties":{"name":"North Quay"},"id":"north-quay"}'),
	('zenith', 'meridian', 3, '{"label":"Ship","properties":{"name":"Meridian","of":"zenith"},"id":"meridian"}'),
	('zenith', 'north-quay', 4, '{"label":"Berth","properties":{"name":"North Quay"},"id":"north-quay"}');
INSERT INTO holdfast.entity_names VALUES
	('acme', 'meridian', 'meridian'),
	('acme', 'north quay', 'north-quay'),
	('zenith', 'meridian', 'meridian'),
	('zenith', 'north quay', 'north-quay');
INSERT INTO holdfast.event_dimensions VALUES
	('acme', 4),
	('zenith', 4);
INSERT INTO holdfast.event_lexemes VALUES
	('acme', 'harbour/pilot', 'ine', 1, 1),
	('acme', 'harbour/pilot', 'true', 1, 1),
	('acme', 'harbour/pilot', 'metr', 1, 1),
	('acme', 'harbour/pilot', 'assist', 1, 1),
	('acme', 'harbour/pilot', '5', 1, 2),
	('acme', 'harbour/pilot', '30', 1, 1),
	('acme', 'harbour/pilot', 'freighter', 1, 1),
	('acme', 'harbour/pilot', 'enter', 2, 1),
	('acme', 'harbour/pilot', 'clear', 1, 1),
	('acme', 'harbour/pilot', 'wind', 1, 1),
	('acme', 'harbour/pilot', '14', 1, 1),
	('acme', 'harbour/pilot', 'north', 1, 1),
	('acme', 'harbour/pilot', 'acm', 1, 1),
	('acme', 'harbour/pilot', '1', 1, 1),
	('acme', 'harbour/pilot', 'draw', 1, 1),
	('acme', 'harbour/pilot', 'tide', 1, 1),
	('acme', 'harbour/pilot', 'n', 1, 1),
	('acme', 'harbour/pilot', 'nine', 1, 1),
	('zenith', 'harbour/pilot', 'ine', 1, 1),
	('zenith', 'harbour/pilot', 'true', 1, 1),
	('zenith', 'harbour/pilot', 'metr', 1, 1),
	('zenith', 'harbour/pilot', 'assist', 1, 1),
	('zenith', 'harbour/pilot', '5', 1, 2),
	('zenith', 'harbour/pilot', '30', 1, 1),
	('zenith', 'harbour/pilot', 'freighter', 1, 1),
	('zenith', 'harbour/pilot', 'enter', 2, 1),
	('zenith', 'harbour/pilot', 'clear', 1, 1),
	('zenith', 'harbour/pilot', 'wind', 1, 1),
	('zenith', 'harbour/pilot', '14', 1, 1),
	('zenith', 'harbour/pilot', 'north', 1, 1),
	('zenith', 'harbour/pilot', 'zenith', 1, 1),
	('zenith', 'harbour/pilot', '1', 1, 1),
	('zenith', 'harbour/pilot', 'draw', 1, 1),
	('zenith', 'harbour/pilot', 'tide', 1, 1),
	('zenith', 'harbour/pilot', 'n', 1, 1),
	('zenith', 'harbour/pilot', 'nine', 1, 1);
INSERT INTO holdfast.event_postings VALUES
	('acme', 'harbour/pilot', 'ine', 1, 1, 1, 1, 4),
	('acme', 'harbour/pilot', 'freighter', 1, 1, 1, 1, 4),
	('acme', 'harbour/pilot', 'acm', 1, 1, 1, 1, 4),
	('acme', 'harbour/pilot', 'enter', 1, 1, 1, 1, 4),
	('acme', 'harbour/pilot', 'assist', 1, 1, 2, 1, 5),
	('acme', 'harbour/pilot', 'tide', 1, 1, 2, 1, 5),
	('acme', 'harbour/pilot', 'draw', 1, 1, 2, 1, 5),
	('acme', 'harbour/pilot', 'nine', 1, 1, 2, 1, 5),
	('acme', 'harbour/pilot', 'metr', 1, 1, 2, 1, 5),
	('acme', 'harbour/pilot', 'enter', 2, 1, 1, 1, 3),
	('acme', 'harbour/pilot', '14', 2, 1, 1, 1, 3),
	('acme', 'harbour/pilot', '30', 2, 1, 1, 1, 3),
	('acme', 'harbour/pilot', 'wind', 2, 1, 2, 1, 6),
	('acme', 'harbour/pilot', 'north', 2, 1, 2, 1, 6),
	('acme', 'harbour/pilot', '5', 2, 1, 2, 2, 6),
	('acme', 'harbour/pilot', 'n', 2, 1, 2, 1, 6),
	('acme', 'harbour/pilot', '1', 2, 1, 2, 1, 6),
	('acme', 'harbour/pilot', 'clear', 2, 1, 3, 1, 2),
	('acme', 'harbour/pilot', 'true', 2, 1, 3, 1, 2),
	('zenith', 'harbour/pilot', 'ine', 5, 1, 1, 1, 4),
	('zenith', 'harbour/pilot', 'freighter', 5, 1, 1, 1, 4),
	('zenith', 'harbour/pilot', 'zenith', 5, 1, 1, 1, 4),
	('zenith', 'harbour/pilot', 'enter', 5, 1, 1, 1, 4),
	('zenith', 'harbour/pilot', 'assist', 5, 1, 2, 1, 5),
	('zenith', 'harbour/pilot', 'tide', 5, 1, 2, 1, 5),
	('zenith', 'harbour/pilot', 'draw', 5, 1, 2, 1, 5),
	('zenith', 'harbour/pilot', 'nine', 5, 1, 2, 1, 5),
	('zenith', 'harbour/pilot', 'metr', 5, 1, 2, 1, 5),
	('zenith', 'harbour/pilot', 'enter', 6, 1, 1, 1, 3),
	('zenith', 'harbour/pilot', '14', 6, 1, 1, 1, 3),
	('zenith', 'harbour/pilot', '30', 6, 1, 1, 1, 3),
	('zenith', 'harbour/pilot', 'wind', 6, 1, 2, 1, 6),
	('zenith', 'harbour/pilot', 'north', 6, 1, 2, 1, 6),
	('zenith', 'harbour/pilot', '5', 6, 1, 2, 2, 6),
	('zenith', 'harbour/pilot', 'n', 6, 1, 2, 1, 6),
	('zenith', 'harbour/pilot', '1', 6, 1, 2, 1, 6),
	('zenith', 'harbour/pilot', 'clear', 6, 1, 3, 1, 2),
	('zenith', 'harbour/pilot', 'true', 6, 1, 3, 1, 2);
INSERT INTO holdfast.event_totals VALUES
	('acme', 'harbour/pilot', 5, 20),
	('zenith', 'harbour/pilot', 5, 20);
INSERT INTO holdfast.event_vectors VALUES
	('acme', 2, 1, 1, 'harbour/pilot', '[1,0,0,0.5]', ''),
	('acme', 2, 1, 2, 'harbour/pilot', '[0,1,0,0.5]', ''),
	('zenith', 6, 1, 1, 'harbour/pilot', '[1,0,0,0.5]', ''),
	('zenith', 6, 1, 2, 'harbour/pilot', '[0,1,0,0.5]', '');
INSERT INTO holdfast.events VALUES
	('acme', 1, 1, 1, '01a1e5fc-3d84-72e7-927b-0f667e644b0a', 'harbour/pilot', 'message', 'r1', '2026-11-16 20:11:15.716308+00', '{"v":1,"role":"user","content":[{"type":"text","text":"Can the freighter of acme enter?"}],"name":"Ines"}'),
	('acme', 1, 1, 2, '01a1e5fc-3d84-72e7-927b-0f676c938dbb', 'harbour/pilot', 'message', 'r1', '2026-11-16 20:11:15.716337+00', '{"v":1,"role":"assistant","content":[{"type":"text","text":"With the tide: she draws nine metres."}]}'),
	('acme', 2, 1, 1, 'e1', 'harbour/pilot', 'decision', '', '2026-01-02 12:00:00+00', '{"enter":"14:30"}'),
	('acme', 2, 1, 2, 'e2', 'harbour/pilot', 'note', '', '2026-01-02 12:00:00+00', '{"wind":"north \"5\"","n":1.5}'),
	('acme', 2, 1, 3, 'e3', 'harbour/pilot', 'note', '', '2026-11-16 20:11:15.763848+00', '{"cleared":true}'),
	('acme', 3, 1, 1, '01a1e5fc-3ebc-75d3-870e-d19478c5b266', 'clerk', 'decision', '', '2026-11-16 20:11:16.028474+00', '{"pier":"north"}'),
	('acme', 4, 1, 1, '01a1e5fc-3ebc-75d3-870e-d1958fca4fcf', 'clerk', 'decision', '', '2026-11-16 20:11:16.028675+00', '{"pier":"north"}'),
	('zenith', 5, 1, 1, '01a1e5fc-3f49-7185-82f4-5cb8b111763d', 'harbour/pilot', 'message', 'r1', '2026-11-16 20:11:16.16934+00', '{"v":1,"role":"user","content":[{"type":"text","text":"Can the freighter of zenith enter?"}],"name":"Ines"}'),
	('zenith', 5, 1, 2, '01a1e5fc-3f49-7185-82f4-5cb95215787f', 'harbour/pilot', 'message', 'r1', '2026-11-16 20:11:16.169357+00', '{"v":1,"role":"assistant","content":[{"type":"text","text":"With the tide: she draws nine metres."}]}'),
	('zenith', 6, 1, 1, 'e1', 'harbour/pilot', 'decision', '', '2026-01-02 12:00:00+00', '{"enter":"14:30"}'),
	('zenith', 6, 1, 2, 'e2', 'harbour/pilot', 'note', '', '2026-01-02 12:00:00+00', '{"wind":"north \"5\"","n":1.5}'),
	('zenith', 6, 1, 3, 'e3', 'harbour/pilot', 'note', '', '2026-11-16 20:11:16.19549+00', '{"cleared":true}'),
	('zenith', 7, 1, 1, '01a1e5fc-4089-7484-9a04-7664b72ba888', 'clerk', 'decision', '', '2026-11-16 20:11:16.48991+00', '{"pier":"north"}'),
	('zenith', 8, 1, 1, '01a1e5fc-408a-73ef-9dc2-4c64c55e302c', 'clerk', 'decision', '', '2026-11-16 20:11:16.490624+00', '{"pier":"north"}'),
	('hot', 9, 1, 1, 'flushed', 'harbour/pilot', 'note', '', '2026-11-16 20:11:17.220936+00', '{"n":0}');
INSERT INTO holdfast.fact_links VALUES
	('acme', 1, 'meridian', 1, NULL),
	('zenith', 3, 'meridian', 3, NULL);
INSERT INTO holdfast.fact_postings VALUES
	('acme', 1, 'english', 'meridian', 1, 1, 5, NULL),
	('acme', 1, 'english', 'acm', 1, 1, 5, NULL),
	('acme', 1, 'english', 'need', 1, 1, 5, NULL),
	('acme', 1, 'english', 'two', 1, 1, 5, NULL),
	('acme', 1, 'english', 'tug', 1, 1, 5, NULL),
	('acme', 2, 'english', 'pilot', 2, 1, 4, NULL),
	('acme', 2, 'english', 'board', 2, 1, 4, NULL),
	('acme', 2, 'english', 'outer', 2, 1, 4, NULL),
	('acme', 2, 'english', 'buoy', 2, 1, 4, NULL),
	('zenith', 3, 'english', 'meridian', 3, 1, 5, NULL),
	('zenith', 3, 'english', 'zenith', 3, 1, 5, NULL),
	('zenith', 3, 'english', 'need', 3, 1, 5, NULL),
	('zenith', 3, 'english', 'two', 3, 1, 5, NULL),
	('zenith', 3, 'english', 'tug', 3, 1, 5, NULL),
	('zenith', 4, 'english', 'pilot', 4, 1, 4, NULL),
	('zenith', 4, 'english', 'board', 4, 1, 4, NULL),
	('zenith', 4, 'english', 'outer', 4, 1, 4, NULL),
	('zenith', 4, 'english', 'buoy', 4, 1, 4, NULL);
INSERT INTO holdfast.fact_scopes OVERRIDING SYSTEM VALUE VALUES
	('acme', 'default', 'harbour/pilot', 1, '{english}'),
	('acme', 'rules', 'harbour/pilot', 2, '{english}'),
	('zenith', 'default', 'harbour/pilot', 3, '{english}'),
	('zenith', 'rules', 'harbour/pilot', 4, '{english}');
INSERT INTO holdfast.fact_texts VALUES
	('acme', 1, 1, 'english', 5, NULL, '{meridian,acm,need,two,tug}'),
	('acme', 2, 2, 'english', 4, NULL, '{pilot,board,outer,buoy}'),
	('zenith', 3, 3, 'english', 5, NULL, '{meridian,zenith,need,two,tug}'),
	('zenith', 4, 4, 'english', 4, NULL, '{pilot,board,outer,buoy}');
INSERT INTO holdfast.facts OVERRIDING SYSTEM VALUE VALUES
	('acme', 1, '01a1e5fc-3dd0-7789-ba13-3aa64916c0d0', 1, '"The Meridian of acme needs two tugs"', '{}', '"ships"', 1, '""', '{meridian}', NULL, NULL, '2026-11-16 20:11:15.810622+00', NULL, NULL),
	('acme', 2, '01a1e5fc-3dfb-70f6-b280-4085ee0bedce', 2, '"Pilots board at the outer buoy"', '{}', '""', 1, '""', '{}', NULL, NULL, '2026-11-16 20:11:15.835637+00', NULL, NULL),
	('zenith', 3, '01a1e5fc-3fcd-74d1-9e53-2b0860e91cfa', 3, '"The Meridian of zenith needs two tugs"', '{}', '"ships"', 1, '""', '{meridian}', NULL, NULL, '2026-11-16 20:11:16.312535+00', NULL, NULL),
	('zenith', 4, '01a1e5fc-3fe0-710d-beee-a48bcb0bb6f9', 4, '"Pilots board at the outer buoy"', '{}', '""', 1, '""', '{}', NULL, NULL, '2026-11-16 20:11:16.322616+00', NULL, NULL);
INSERT INTO holdfast.indexed_events VALUES
	('acme', 1, 1, 1, 4, '{ine,freighter,acm,enter}'),
	('acme', 2, 1, 1, 3, '{enter,14,30}'),
	('acme', 2, 1, 3, 2, '{clear,true}'),
	('acme', 2, 1, 2, 6, '{wind,north,5,n,1}'),
	('acme', 1, 1, 2, 5, '{assist,tide,draw,nine,metr}'),
	('zenith', 5, 1, 1, 4, '{ine,freighter,zenith,enter}'),
	('zenith', 6, 1, 1, 3, '{enter,14,30}'),
	('zenith', 6, 1, 3, 2, '{clear,true}'),
	('zenith', 6, 1, 2, 6, '{wind,north,5,n,1}'),
	('zenith', 5, 1, 2, 5, '{assist,tide,draw,nine,metr}');
INSERT INTO holdfast.outbox OVERRIDING SYSTEM VALUE VALUES
	('acme', '01a1e5fc-411e-762d-9d72-6c475b5f2e40', 'p1', 3, 1, '2026-11-16 20:11:16.645062+00', 0, '""', false),
	('acme', '01a1e5fc-411e-762d-9d72-6c475b5f2e40', 'p1', 4, 2, '2026-11-16 20:11:16.652592+00', 0, '""', false),
	('acme', '01a1e5fc-411e-762d-9d72-6c475b5f2e40', 'p1', 5, 3, '2026-11-16 20:11:16.655851+00', 0, '""', false);
INSERT INTO holdfast.push_configs OVERRIDING SYSTEM VALUE VALUES
	('acme', '01a1e5fc-411e-762d-9d72-6c475b5f2e40', 'p1', '"https://example.org/hook"', '"t0ken"', '{"scheme":"Bearer"}', 1, 3, '2026-11-16 20:11:16.645062+00', 1);
INSERT INTO holdfast.relationships VALUES
	('acme', 'm1', 1, 2, 'moors_at', '{"source_id":"meridian","target_id":"north-quay","type":"moors_at","properties":{"since":2025},"id":"m1"}'),
	('zenith', 'm1', 3, 4, 'moors_at', '{"source_id":"meridian","target_id":"north-quay","type":"moors_at","properties":{"since":2025},"id":"m1"}');
INSERT INTO holdfast.sessions OVERRIDING SYSTEM VALUE VALUES
	('acme', 's1', 1, 'harbour/pilot', '2026-11-16 20:11:15.72859+00', NULL, '{}', 1, 3, false, false, 0, 0),
	('acme', 's2', 2, 'harbour/pilot', '2026-11-16 20:11:15.749384+00', '2026-11-16 20:11:15.769744+00', '{"watch":"night"}', 1, 3, false, false, 0, 0),
	('acme', 'ctx-none', 3, 'clerk', '2026-11-16 20:11:16.046534+00', NULL, '{}', 1, 1, false, false, 0, 0),
	('acme', 'ctx-ana', 4, 'clerk', '2026-11-16 20:11:16.053759+00', NULL, '{}', 1, 1, false, false, 0, 0),
	('zenith', 's1', 5, 'harbour/pilot', '2026-11-16 20:11:16.17011+00', NULL, '{}', 1, 3, false, false, 0, 0),
	('zenith', 's2', 6, 'harbour/pilot', '2026-11-16 20:11:16.176386+00', '2026-11-16 20:11:16.224339+00', '{"watch":"night"}', 1, 3, false, false, 0, 0),
	('zenith', 'ctx-none', 7, 'clerk', '2026-11-16 20:11:16.491078+00', NULL, '{}', 1, 1, false, false, 0, 0),
	('zenith', 'ctx-ana', 8, 'clerk', '2026-11-16 20:11:16.492956+00', NULL, '{}', 1, 1, false, false, 0, 0),
	('hot', 'old', 9, 'harbour/pilot', '2026-11-16 20:11:17.233868+00', NULL, '{}', 1, 1, true, false, 1, 1000),
	('hot', 'new', 10, 'harbour/pilot', '2026-11-16 20:11:17.275937+00', NULL, '{}', 1, 0, true, false, 1, 1000);
INSERT INTO holdfast.state_snapshots VALUES
	('hot', 'old', 1794859877251744, '{"saved":"true"}', NULL, NULL, false);
INSERT INTO holdfast.states VALUES
	('acme', 's1', '{"of": "\"acme\"", "deep": "{\"list\":[1,null,\"ß\"]}", "step": "2"}', 3, NULL, '2026-11-16 20:11:15.775868+00', NULL),
	('acme', 's3', '{"kept": "\"for long\""}', 4, 3000000000, '2026-11-16 20:11:15.779211+00', '2121-12-11 01:31:15.779211+00'),
	('acme', 'ctx-none', '{"draft": "\"half of it\""}', 5, NULL, '2026-11-16 20:11:16.056899+00', NULL),
	('acme', 'ctx-ana', '{"draft": "\"half of it\""}', 6, NULL, '2026-11-16 20:11:16.072949+00', NULL),
	('zenith', 's1', '{"of": "\"zenith\"", "deep": "{\"list\":[1,null,\"ß\"]}", "step": "2"}', 9, NULL, '2026-11-16 20:11:16.236516+00', NULL),
	('zenith', 's3', '{"kept": "\"for long\""}', 10, 3000000000, '2026-11-16 20:11:16.239102+00', '2121-12-11 01:31:16.239102+00'),
	('zenith', 'ctx-none', '{"draft": "\"half of it\""}', 11, NULL, '2026-11-16 20:11:16.492545+00', NULL),
	('zenith', 'ctx-ana', '{"draft": "\"half of it\""}', 12, NULL, '2026-11-16 20:11:16.502264+00', NULL);
INSERT INTO holdfast.task_artifacts VALUES
	('acme', '01a1e5fc-3e7d-772f-8290-16a3e1cb6dfa', 'plan.md', 7, 7, 1, false),
	('acme', '01a1e5fc-3e60-757b-9aa7-9eea8192a665', 'plan.md', 7, 7, 1, false),
	('zenith', '01a1e5fc-4065-7553-8901-784efef5393b', 'plan.md', 7, 7, 1, false),
	('zenith', '01a1e5fc-4077-7767-b0b7-856a87e7366b', 'plan.md', 7, 7, 1, false),
	('acme', '01a1e5fc-40d5-75e0-b6c3-47690f722ceb', 'log.txt', 6, 6, 1, true);
INSERT INTO holdfast.task_contexts OVERRIDING SYSTEM VALUE VALUES
	('acme', '', 'ctx-none', 1, '2026-11-16 20:11:15.939238+00'),
	('acme', 'ana', 'ctx-ana', 2, '2026-11-16 20:11:15.966084+00'),
	('zenith', '', 'ctx-none', 3, '2026-11-16 20:11:16.455765+00'),
	('zenith', 'ana', 'ctx-ana', 4, '2026-11-16 20:11:16.472376+00'),
	('acme', '', '01a1e5fc-40d5-75e0-b6c3-476a5bfbeed0', 5, '2026-11-16 20:11:16.568049+00'),
	('acme', 'ana', '01a1e5fc-40f4-778c-b4d0-aea8ec02fb78', 6, '2026-11-16 20:11:16.597269+00'),
	('acme', '', '01a1e5fc-4109-7531-abc0-4bbd056c9dd8', 7, '2026-11-16 20:11:16.62369+00'),
	('acme', '', '01a1e5fc-4115-7032-a81c-8b55252eedce', 8, '2026-11-16 20:11:16.629671+00'),
	('acme', '', '01a1e5fc-411e-762d-9d72-6c487a280530', 9, '2026-11-16 20:11:16.638881+00'),
	('acme', '', '01a1e5fc-4133-760b-8c0d-1feb4156400f', 10, '2026-11-16 20:11:16.659659+00');
INSERT INTO holdfast.task_edges VALUES
	(NULL, 'submitted', 'client'),
	('submitted', 'working', 'worker'),
	('submitted', 'paused', 'client'),
	('submitted', 'canceled', 'client'),
	('working', 'submitted', 'worker'),
	('working', 'submitted', 'recovery'),
	('working', 'input-required', 'worker'),
	('working', 'auth-required', 'worker'),
	('working', 'paused', 'worker'),
	('working', 'paused', 'recovery'),
	('working', 'completed', 'worker'),
	('working', 'failed', 'worker'),
	('working', 'failed', 'recovery'),
	('working', 'canceled', 'worker'),
	('working', 'canceled', 'recovery'),
	('working', 'rejected', 'worker'),
	('input-required', 'submitted', 'client'),
	('input-required', 'paused', 'client'),
	('input-required', 'canceled', 'client'),
	('auth-required', 'submitted', 'client'),
	('auth-required', 'paused', 'client'),
	('auth-required', 'canceled', 'client'),
	('paused', 'submitted', 'client'),
	('paused', 'canceled', 'client');
INSERT INTO holdfast.task_events VALUES
	('acme', '01a1e5fc-3e60-757b-9aa7-9eea8192a665', 1, 'transition', '2026-11-16 20:11:15.939238+00', 'client', 0, 1, NULL, 'submitted', '', 0, NULL, '""', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-3e60-757b-9aa7-9eea8192a665', 2, 'message', '2026-11-16 20:11:15.939238+00', 'client', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-3e60-757b-9aa7-9ee903233e9c', '2026-11-16 20:11:15.936761+00', 1, 1, NULL, NULL, NULL, NULL, NULL, 'aa12b17b181668b1ea34108fd2e865a52b6eac37869e8a728a6de74dd84e04af', NULL, NULL, NULL, NULL, NULL, '{"v":1,"role":"user","content":[{"type":"text","text":"berth her"}]}'),
	('acme', '01a1e5fc-3e7d-772f-8290-16a3e1cb6dfa', 1, 'transition', '2026-11-16 20:11:15.966084+00', 'client', 0, 1, NULL, 'submitted', '', 0, NULL, '""', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-3e7d-772f-8290-16a3e1cb6dfa', 2, 'message', '2026-11-16 20:11:15.966084+00', 'client', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-3e7d-772f-8290-16a23e7aff08', '2026-11-16 20:11:15.965444+00', 2, 2, NULL, NULL, NULL, NULL, NULL, 'aa12b17b181668b1ea34108fd2e865a52b6eac37869e8a728a6de74dd84e04af', NULL, NULL, NULL, NULL, NULL, '{"v":1,"role":"user","content":[{"type":"text","text":"berth her"}]}'),
	('acme', '01a1e5fc-3e60-757b-9aa7-9eea8192a665', 3, 'transition', '2026-11-16 20:11:16.006058+00', 'worker', 1, 2, 'submitted', 'working', 'vm-708-HJFuyb', 1, NULL, '""', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-3e7d-772f-8290-16a3e1cb6dfa', 3, 'transition', '2026-11-16 20:11:16.006058+00', 'worker', 1, 2, 'submitted', 'working', 'vm-708-HJFuyb', 1, NULL, '""', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-3e60-757b-9aa7-9eea8192a665', 4, 'step', '2026-11-16 20:11:16.077151+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, NULL, '01a1e5fc-3e60-757b-9aa7-9eea8192a665
1
step
order', 'step', 'order', 1, 0, '"5eed25f9aa1c68139fe47d7ea93769c16d4ddd46c01693921e0b40d9aaa39beb"', NULL, NULL, NULL, NULL, NULL, '{"tugs":2}'),
	('acme', '01a1e5fc-3e7d-772f-8290-16a3e1cb6dfa', 4, 'step', '2026-11-16 20:11:16.079352+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, NULL, '01a1e5fc-3e7d-772f-8290-16a3e1cb6dfa
1
step
order', 'step', 'order', 1, 0, '"5eed25f9aa1c68139fe47d7ea93769c16d4ddd46c01693921e0b40d9aaa39beb"', NULL, NULL, NULL, NULL, NULL, '{"tugs":2}'),
	('acme', '01a1e5fc-3e60-757b-9aa7-9eea8192a665', 6, 'step', '2026-11-16 20:11:16.092101+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-3ef4-7666-b933-c7fd1edd5039', NULL, NULL, NULL, '01a1e5fc-3e60-757b-9aa7-9eea8192a665
1
say
say', 'say', 'say', 1, 0, '""', NULL, NULL, NULL, NULL, NULL, '{"message_id":"01a1e5fc-3ef4-7666-b933-c7fd1edd5039"}'),
	('acme', '01a1e5fc-3e60-757b-9aa7-9eea8192a665', 5, 'message', '2026-11-16 20:11:16.092101+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-3ef4-7666-b933-c7fd1edd5039', '2026-11-16 20:11:16.08446+00', 1, 3, NULL, NULL, NULL, NULL, NULL, 'abdb3c436d68c26ee802b56ad213966a702ed02212a5b1b9a9d67f82193926e7', NULL, NULL, NULL, NULL, NULL, '{"v":1,"role":"assistant","content":[{"type":"text","text":"Two tugs are ordered."}]}'),
	('acme', '01a1e5fc-3e7d-772f-8290-16a3e1cb6dfa', 6, 'step', '2026-11-16 20:11:16.0937+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-3efb-7563-b135-0873bab90d89', NULL, NULL, NULL, '01a1e5fc-3e7d-772f-8290-16a3e1cb6dfa
1
say
say', 'say', 'say', 1, 0, '""', NULL, NULL, NULL, NULL, NULL, '{"message_id":"01a1e5fc-3efb-7563-b135-0873bab90d89"}'),
	('acme', '01a1e5fc-3e7d-772f-8290-16a3e1cb6dfa', 5, 'message', '2026-11-16 20:11:16.0937+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-3efb-7563-b135-0873bab90d89', '2026-11-16 20:11:16.09168+00', 2, 4, NULL, NULL, NULL, NULL, NULL, 'abdb3c436d68c26ee802b56ad213966a702ed02212a5b1b9a9d67f82193926e7', NULL, NULL, NULL, NULL, NULL, '{"v":1,"role":"assistant","content":[{"type":"text","text":"Two tugs are ordered."}]}'),
	('acme', '01a1e5fc-3e7d-772f-8290-16a3e1cb6dfa', 7, 'artifact', '2026-11-16 20:11:16.108899+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'plan.md', false, false, '"plan.md"', '{}', '[{"type":"text","text":"Enter with the tide."}]'),
	('acme', '01a1e5fc-3e60-757b-9aa7-9eea8192a665', 7, 'artifact', '2026-11-16 20:11:16.110266+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'plan.md', false, false, '"plan.md"', '{}', '[{"type":"text","text":"Enter with the tide."}]'),
	('acme', '01a1e5fc-3e7d-772f-8290-16a3e1cb6dfa', 8, 'message', '2026-11-16 20:11:16.118631+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-3f15-71ce-992f-4c4df96332b3', '2026-11-16 20:11:16.117054+00', 2, 5, NULL, NULL, NULL, NULL, NULL, 'cdb5e1b984ab5518bf6591b0bb43df051b8680a4d26a10bb9ea6ea62513e3ce1', NULL, NULL, NULL, NULL, NULL, '{"v":1,"role":"assistant","content":[{"type":"text","text":"Which pier?"}]}'),
	('acme', '01a1e5fc-3e60-757b-9aa7-9eea8192a665', 8, 'message', '2026-11-16 20:11:16.122588+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-3f16-7712-9700-b5c947ce273e', '2026-11-16 20:11:16.11811+00', 1, 6, NULL, NULL, NULL, NULL, NULL, 'cdb5e1b984ab5518bf6591b0bb43df051b8680a4d26a10bb9ea6ea62513e3ce1', NULL, NULL, NULL, NULL, NULL, '{"v":1,"role":"assistant","content":[{"type":"text","text":"Which pier?"}]}'),
	('acme', '01a1e5fc-3e60-757b-9aa7-9eea8192a665', 9, 'transition', '2026-11-16 20:11:16.122588+00', 'worker', 1, 3, 'working', 'input-required', 'vm-708-HJFuyb', 0, NULL, '""', NULL, '01a1e5fc-3f16-7712-9700-b5c947ce273e', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-3e7d-772f-8290-16a3e1cb6dfa', 9, 'transition', '2026-11-16 20:11:16.118631+00', 'worker', 1, 3, 'working', 'input-required', 'vm-708-HJFuyb', 0, NULL, '""', NULL, '01a1e5fc-3f15-71ce-992f-4c4df96332b3', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('zenith', '01a1e5fc-4065-7553-8901-784efef5393b', 1, 'transition', '2026-11-16 20:11:16.455765+00', 'client', 0, 1, NULL, 'submitted', '', 0, NULL, '""', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('zenith', '01a1e5fc-4065-7553-8901-784efef5393b', 2, 'message', '2026-11-16 20:11:16.455765+00', 'client', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-4065-7553-8901-784dc1e9413b', '2026-11-16 20:11:16.453358+00', 3, 7, NULL, NULL, NULL, NULL, NULL, 'aa12b17b181668b1ea34108fd2e865a52b6eac37869e8a728a6de74dd84e04af', NULL, NULL, NULL, NULL, NULL, '{"v":1,"role":"user","content":[{"type":"text","text":"berth her"}]}'),
	('zenith', '01a1e5fc-4077-7767-b0b7-856a87e7366b', 1, 'transition', '2026-11-16 20:11:16.472376+00', 'client', 0, 1, NULL, 'submitted', '', 0, NULL, '""', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('zenith', '01a1e5fc-4077-7767-b0b7-856a87e7366b', 2, 'message', '2026-11-16 20:11:16.472376+00', 'client', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-4077-7767-b0b7-8569c988e9be', '2026-11-16 20:11:16.471717+00', 4, 8, NULL, NULL, NULL, NULL, NULL, 'aa12b17b181668b1ea34108fd2e865a52b6eac37869e8a728a6de74dd84e04af', NULL, NULL, NULL, NULL, NULL, '{"v":1,"role":"user","content":[{"type":"text","text":"berth her"}]}'),
	('zenith', '01a1e5fc-4065-7553-8901-784efef5393b', 3, 'transition', '2026-11-16 20:11:16.47702+00', 'worker', 1, 2, 'submitted', 'working', 'vm-708-pYDDY7', 1, NULL, '""', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('zenith', '01a1e5fc-4077-7767-b0b7-856a87e7366b', 3, 'transition', '2026-11-16 20:11:16.47702+00', 'worker', 1, 2, 'submitted', 'working', 'vm-708-pYDDY7', 1, NULL, '""', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('zenith', '01a1e5fc-4065-7553-8901-784efef5393b', 4, 'step', '2026-11-16 20:11:16.498407+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, NULL, '01a1e5fc-4065-7553-8901-784efef5393b
1
step
order', 'step', 'order', 1, 0, '"5eed25f9aa1c68139fe47d7ea93769c16d4ddd46c01693921e0b40d9aaa39beb"', NULL, NULL, NULL, NULL, NULL, '{"tugs":2}'),
	('zenith', '01a1e5fc-4065-7553-8901-784efef5393b', 6, 'step', '2026-11-16 20:11:16.501455+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-4095-77b9-aa53-6993217f368a', NULL, NULL, NULL, '01a1e5fc-4065-7553-8901-784efef5393b
1
say
say', 'say', 'say', 1, 0, '""', NULL, NULL, NULL, NULL, NULL, '{"message_id":"01a1e5fc-4095-77b9-aa53-6993217f368a"}'),
	('zenith', '01a1e5fc-4065-7553-8901-784efef5393b', 5, 'message', '2026-11-16 20:11:16.501455+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-4095-77b9-aa53-6993217f368a', '2026-11-16 20:11:16.501094+00', 3, 9, NULL, NULL, NULL, NULL, NULL, 'abdb3c436d68c26ee802b56ad213966a702ed02212a5b1b9a9d67f82193926e7', NULL, NULL, NULL, NULL, NULL, '{"v":1,"role":"assistant","content":[{"type":"text","text":"Two tugs are ordered."}]}'),
	('zenith', '01a1e5fc-4065-7553-8901-784efef5393b', 7, 'artifact', '2026-11-16 20:11:16.509237+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'plan.md', false, false, '"plan.md"', '{}', '[{"type":"text","text":"Enter with the tide."}]'),
	('zenith', '01a1e5fc-4077-7767-b0b7-856a87e7366b', 4, 'step', '2026-11-16 20:11:16.511162+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, NULL, '01a1e5fc-4077-7767-b0b7-856a87e7366b
1
step
order', 'step', 'order', 1, 0, '"5eed25f9aa1c68139fe47d7ea93769c16d4ddd46c01693921e0b40d9aaa39beb"', NULL, NULL, NULL, NULL, NULL, '{"tugs":2}'),
	('zenith', '01a1e5fc-4065-7553-8901-784efef5393b', 8, 'message', '2026-11-16 20:11:16.511797+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-409e-74ae-ad8e-7ff8f249798c', '2026-11-16 20:11:16.510637+00', 3, 10, NULL, NULL, NULL, NULL, NULL, 'cdb5e1b984ab5518bf6591b0bb43df051b8680a4d26a10bb9ea6ea62513e3ce1', NULL, NULL, NULL, NULL, NULL, '{"v":1,"role":"assistant","content":[{"type":"text","text":"Which pier?"}]}'),
	('zenith', '01a1e5fc-4065-7553-8901-784efef5393b', 9, 'transition', '2026-11-16 20:11:16.511797+00', 'worker', 1, 3, 'working', 'input-required', 'vm-708-pYDDY7', 0, NULL, '""', NULL, '01a1e5fc-409e-74ae-ad8e-7ff8f249798c', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('zenith', '01a1e5fc-4077-7767-b0b7-856a87e7366b', 6, 'step', '2026-11-16 20:11:16.516584+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-40a4-7266-ab44-6c49a5357c25', NULL, NULL, NULL, '01a1e5fc-4077-7767-b0b7-856a87e7366b
1
say
say', 'say', 'say', 1, 0, '""', NULL, NULL, NULL, NULL, NULL, '{"message_id":"01a1e5fc-40a4-7266-ab44-6c49a5357c25"}'),
	('zenith', '01a1e5fc-4077-7767-b0b7-856a87e7366b', 5, 'message', '2026-11-16 20:11:16.516584+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-40a4-7266-ab44-6c49a5357c25', '2026-11-16 20:11:16.516204+00', 4, 11, NULL, NULL, NULL, NULL, NULL, 'abdb3c436d68c26ee802b56ad213966a702ed02212a5b1b9a9d67f82193926e7', NULL, NULL, NULL, NULL, NULL, '{"v":1,"role":"assistant","content":[{"type":"text","text":"Two tugs are ordered."}]}'),
	('zenith', '01a1e5fc-4077-7767-b0b7-856a87e7366b', 7, 'artifact', '2026-11-16 20:11:16.524131+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'plan.md', false, false, '"plan.md"', '{}', '[{"type":"text","text":"Enter with the tide."}]'),
	('zenith', '01a1e5fc-4077-7767-b0b7-856a87e7366b', 8, 'message', '2026-11-16 20:11:16.528424+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-40b0-7720-a181-cefb2c3cb14e', '2026-11-16 20:11:16.528031+00', 4, 12, NULL, NULL, NULL, NULL, NULL, 'cdb5e1b984ab5518bf6591b0bb43df051b8680a4d26a10bb9ea6ea62513e3ce1', NULL, NULL, NULL, NULL, NULL, '{"v":1,"role":"assistant","content":[{"type":"text","text":"Which pier?"}]}'),
	('zenith', '01a1e5fc-4077-7767-b0b7-856a87e7366b', 9, 'transition', '2026-11-16 20:11:16.528424+00', 'worker', 1, 3, 'working', 'input-required', 'vm-708-pYDDY7', 0, NULL, '""', NULL, '01a1e5fc-40b0-7720-a181-cefb2c3cb14e', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-40d5-75e0-b6c3-47690f722ceb', 1, 'transition', '2026-11-16 20:11:16.568049+00', 'client', 0, 1, NULL, 'submitted', '', 0, NULL, '""', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-40d5-75e0-b6c3-47690f722ceb', 2, 'message', '2026-11-16 20:11:16.568049+00', 'client', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-40d5-75e0-b6c3-4768b4dbbec7', '2026-11-16 20:11:16.565129+00', 5, 13, NULL, NULL, NULL, NULL, NULL, 'cd40cbdaa673f02b0fa3caaff979eb49d4e1913a7b9ece3c09f1cf182b632e88', NULL, NULL, NULL, NULL, NULL, '{"v":1,"role":"user","content":[{"type":"text","text":"moor her"}]}'),
	('acme', '01a1e5fc-40d5-75e0-b6c3-47690f722ceb', 3, 'transition', '2026-11-16 20:11:16.572413+00', 'worker', 1, 2, 'submitted', 'working', 'w1', 1, NULL, '""', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-40d5-75e0-b6c3-47690f722ceb', 4, 'step', '2026-11-16 20:11:16.579686+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, NULL, '01a1e5fc-40d5-75e0-b6c3-47690f722ceb
1
step
lines', 'step', 'lines', 1, 0, '""', NULL, NULL, NULL, NULL, NULL, '{"lines":4}'),
	('acme', '01a1e5fc-40d5-75e0-b6c3-47690f722ceb', 5, 'message', '2026-11-16 20:11:16.580932+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-40e4-75f7-9693-2e95ed568edd', '2026-11-16 20:11:16.580293+00', 5, 14, NULL, NULL, NULL, NULL, NULL, '209a7908607265130bfd5b28ef0318a54fd4f59d74190e53861deb7ff2c72db2', NULL, NULL, NULL, NULL, NULL, '{"v":1,"role":"assistant","content":[{"type":"text","text":"Four lines are out"}]}'),
	('acme', '01a1e5fc-40d5-75e0-b6c3-47690f722ceb', 6, 'artifact', '2026-11-16 20:11:16.582086+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'log.txt', false, false, '"log"', '{}', '[{"type":"text","text":"moored "}]'),
	('acme', '01a1e5fc-40d5-75e0-b6c3-47690f722ceb', 7, 'artifact', '2026-11-16 20:11:16.588242+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'log.txt', true, true, '"log"', '{}', '[{"type":"text","text":"at 15:10"}]'),
	('acme', '01a1e5fc-40d5-75e0-b6c3-47690f722ceb', 8, 'message', '2026-11-16 20:11:16.589562+00', 'worker', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-40ed-72c5-91d4-5f1e39d45213', '2026-11-16 20:11:16.589188+00', 5, 15, NULL, NULL, NULL, NULL, NULL, '91c28ea2066fa6f98fa3201120ae231544a1534394d6af18ac2324cb12087a99', NULL, NULL, NULL, NULL, NULL, '{"v":1,"role":"assistant","content":[{"type":"text","text":"Moored"}]}'),
	('acme', '01a1e5fc-40d5-75e0-b6c3-47690f722ceb', 9, 'transition', '2026-11-16 20:11:16.589562+00', 'worker', 1, 3, 'working', 'completed', 'w1', 0, NULL, '""', NULL, '01a1e5fc-40ed-72c5-91d4-5f1e39d45213', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-40f4-778c-b4d0-aea7e3dc325b', 1, 'transition', '2026-11-16 20:11:16.597269+00', 'client', 0, 1, NULL, 'submitted', '', 0, NULL, '""', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-40f4-778c-b4d0-aea7e3dc325b', 2, 'message', '2026-11-16 20:11:16.597269+00', 'client', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-40f4-778c-b4d0-aea6388d5511', '2026-11-16 20:11:16.596819+00', 6, 16, NULL, NULL, NULL, NULL, NULL, '22e2c5670a2d06467bfb7d4d25cbaa7d590f2500d4a9838c2bb895f4b06eac41', NULL, NULL, NULL, NULL, NULL, '{"v":1,"role":"user","content":[{"type":"text","text":"sound the horn"}]}'),
	('acme', '01a1e5fc-40f4-778c-b4d0-aea7e3dc325b', 3, 'transition', '2026-11-16 20:11:16.605368+00', 'worker', 1, 2, 'submitted', 'working', 'w1', 1, NULL, '""', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-40f4-778c-b4d0-aea7e3dc325b', 4, 'transition', '2026-11-16 20:11:16.60946+00', 'worker', 1, 3, 'working', 'failed', 'w1', 1, NULL, '"no steam"', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-4103-70f0-b8cb-d3b9f9a7ab21', 1, 'transition', '2026-11-16 20:11:16.615892+00', 'client', 0, 1, NULL, 'submitted', '', 0, NULL, '""', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-4103-70f0-b8cb-d3b9f9a7ab21', 2, 'message', '2026-11-16 20:11:16.615892+00', 'client', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-4103-70f0-b8cb-d3b89fa458a7', '2026-11-16 20:11:16.611339+00', 6, 17, NULL, NULL, NULL, NULL, NULL, '22e2c5670a2d06467bfb7d4d25cbaa7d590f2500d4a9838c2bb895f4b06eac41', NULL, NULL, NULL, NULL, NULL, '{"v":1,"role":"user","content":[{"type":"text","text":"sound the horn"}]}'),
	('acme', '01a1e5fc-4109-7531-abc0-4bbcf3746b53', 1, 'transition', '2026-11-16 20:11:16.62369+00', 'client', 0, 1, NULL, 'submitted', '', 0, NULL, '""', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-4109-7531-abc0-4bbcf3746b53', 2, 'message', '2026-11-16 20:11:16.62369+00', 'client', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-4109-7531-abc0-4bbb693556ba', '2026-11-16 20:11:16.61758+00', 7, 18, NULL, NULL, NULL, NULL, NULL, '3e3eaf5f3ec12b705f883e9b606a9cd50cbbf8ee79a4cebff46cc030992590cc', NULL, NULL, NULL, NULL, NULL, '{"v":1,"role":"user","content":[{"type":"text","text":"paint the hull"}]}'),
	('acme', '01a1e5fc-4109-7531-abc0-4bbcf3746b53', 3, 'transition', '2026-11-16 20:11:16.628035+00', 'client', 0, 2, 'submitted', 'canceled', '', 0, NULL, '"too cold"', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-4115-7032-a81c-8b5436659d33', 1, 'transition', '2026-11-16 20:11:16.629671+00', 'client', 0, 1, NULL, 'submitted', '', 0, NULL, '""', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-4115-7032-a81c-8b5436659d33', 2, 'message', '2026-11-16 20:11:16.629671+00', 'client', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-4115-7032-a81c-8b53ad37f40b', '2026-11-16 20:11:16.62928+00', 8, 19, NULL, NULL, NULL, NULL, NULL, '7406b9f5d41bff31ff0e0f2b4f12b2433337a26282a013fd09a5eb77619f051d', NULL, NULL, NULL, NULL, NULL, '{"v":1,"role":"user","content":[{"type":"text","text":"grease the winch"}]}'),
	('acme', '01a1e5fc-4115-7032-a81c-8b5436659d33', 3, 'transition', '2026-11-16 20:11:16.636942+00', 'client', 0, 2, 'submitted', 'paused', '', 0, NULL, '"later"', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-411e-762d-9d72-6c475b5f2e40', 1, 'transition', '2026-11-16 20:11:16.638881+00', 'client', 0, 1, NULL, 'submitted', '', 0, NULL, '""', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-411e-762d-9d72-6c475b5f2e40', 2, 'message', '2026-11-16 20:11:16.638881+00', 'client', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-411e-762d-9d72-6c4626010b87', '2026-11-16 20:11:16.638436+00', 9, 20, NULL, NULL, NULL, NULL, NULL, '7babe668dce526427f1afbc6e607ddbf9a491cb237bddd3a77b49ad65ef5b279', NULL, NULL, NULL, NULL, NULL, '{"v":1,"role":"user","content":[{"type":"text","text":"watch the buoy"}]}'),
	('acme', '01a1e5fc-4103-70f0-b8cb-d3b9f9a7ab21', 3, 'transition', '2026-11-16 20:11:16.645062+00', 'worker', 1, 2, 'submitted', 'working', 'w2', 1, NULL, '""', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-411e-762d-9d72-6c475b5f2e40', 3, 'transition', '2026-11-16 20:11:16.645062+00', 'worker', 1, 2, 'submitted', 'working', 'w2', 1, NULL, '""', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-411e-762d-9d72-6c475b5f2e40', 4, 'transition', '2026-11-16 20:11:16.652592+00', 'worker', 1, 3, 'working', 'submitted', 'w2', 0, NULL, '"the shift ended"', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-411e-762d-9d72-6c475b5f2e40', 5, 'transition', '2026-11-16 20:11:16.655851+00', 'client', 1, 4, 'submitted', 'canceled', '', 0, NULL, '"nobody watches"', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-4133-760b-8c0d-1fea5fff35d2', 1, 'transition', '2026-11-16 20:11:16.659659+00', 'client', 0, 1, NULL, 'submitted', '', 0, NULL, '""', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('acme', '01a1e5fc-4133-760b-8c0d-1fea5fff35d2', 2, 'message', '2026-11-16 20:11:16.659659+00', 'client', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '01a1e5fc-4132-7387-9448-1f88dc15e2a1', '2026-11-16 20:11:16.659022+00', 10, 21, NULL, NULL, NULL, NULL, NULL, '461e73aaadadc3d25568bbd69d85a1620b222bb817b3351c08e66afae81beed6', NULL, NULL, NULL, NULL, NULL, '{"v":1,"role":"user","content":[{"type":"text","text":"wait for your turn"}]}');
INSERT INTO holdfast.task_feedback OVERRIDING SYSTEM VALUE VALUES
	('acme', '01a1e5fc-40d5-75e0-b6c3-47690f722ceb', 'f1', 1, '"well done"', 5, '{}', '20b9f4af04ac15b862ac0a11a4899913d1dd39cc4cb151a2c4c366b069f37c8d', '2026-11-16 20:11:16.593014+00');
INSERT INTO holdfast.tasks VALUES
	('zenith', '01a1e5fc-4077-7767-b0b7-856a87e7366b', 'ana', 'ctx-ana', 4, 'clerk', '{}', 5, '', '', '', '2026-11-16 20:11:16.472376+00', 'input-required', '2026-11-16 20:11:16.528424+00', '""', 8, 9, 3, 1, 0, '', '', NULL, NULL, '2026-11-16 20:11:16.472376+00', false, false, 'ask', 'ask', 1, false, false, NULL),
	('acme', '01a1e5fc-3e60-757b-9aa7-9eea8192a665', '', 'ctx-none', 1, 'clerk', '{}', 5, '', '', '', '2026-11-16 20:11:15.939238+00', 'input-required', '2026-11-16 20:11:16.122588+00', '""', 8, 9, 3, 1, 0, '', '', NULL, NULL, '2026-11-16 20:11:15.939238+00', false, false, 'ask', 'ask', 1, false, false, NULL),
	('acme', '01a1e5fc-3e7d-772f-8290-16a3e1cb6dfa', 'ana', 'ctx-ana', 2, 'clerk', '{}', 5, '', '', '', '2026-11-16 20:11:15.966084+00', 'input-required', '2026-11-16 20:11:16.118631+00', '""', 8, 9, 3, 1, 0, '', '', NULL, NULL, '2026-11-16 20:11:15.966084+00', false, false, 'ask', 'ask', 1, false, false, NULL),
	('zenith', '01a1e5fc-4065-7553-8901-784efef5393b', '', 'ctx-none', 3, 'clerk', '{}', 5, '', '', '', '2026-11-16 20:11:16.455765+00', 'input-required', '2026-11-16 20:11:16.511797+00', '""', 8, 9, 3, 1, 0, '', '', NULL, NULL, '2026-11-16 20:11:16.455765+00', false, false, 'ask', 'ask', 1, false, false, NULL),
	('acme', '01a1e5fc-40d5-75e0-b6c3-47690f722ceb', '', '01a1e5fc-40d5-75e0-b6c3-476a5bfbeed0', 5, 'hand', '{"urgent":true}', 5, '', '', '', '2026-11-16 20:11:16.568049+00', 'completed', '2026-11-16 20:11:16.589562+00', '""', 8, 9, 3, 1, 0, '', '', NULL, NULL, '2026-11-16 20:11:16.568049+00', false, false, NULL, NULL, NULL, false, false, NULL),
	('acme', '01a1e5fc-40f4-778c-b4d0-aea7e3dc325b', 'ana', '01a1e5fc-40f4-778c-b4d0-aea8ec02fb78', 6, 'hand', '{}', 5, '', '', '', '2026-11-16 20:11:16.597269+00', 'failed', '2026-11-16 20:11:16.60946+00', '"no steam"', NULL, 4, 3, 1, 1, '', '', NULL, NULL, '2026-11-16 20:11:16.597269+00', false, false, NULL, NULL, NULL, false, false, NULL),
	('acme', '01a1e5fc-4109-7531-abc0-4bbcf3746b53', '', '01a1e5fc-4109-7531-abc0-4bbd056c9dd8', 7, 'hand', '{}', 5, '', '', '', '2026-11-16 20:11:16.62369+00', 'canceled', '2026-11-16 20:11:16.628035+00', '"too cold"', NULL, 3, 2, 0, 0, '', '', NULL, NULL, '2026-11-16 20:11:16.62369+00', false, false, NULL, NULL, NULL, false, false, NULL),
	('acme', '01a1e5fc-4115-7032-a81c-8b5436659d33', '', '01a1e5fc-4115-7032-a81c-8b55252eedce', 8, 'hand', '{}', 5, '', '', '', '2026-11-16 20:11:16.629671+00', 'paused', '2026-11-16 20:11:16.636942+00', '"later"', NULL, 3, 2, 0, 0, '', '', NULL, NULL, '2026-11-16 20:11:16.629671+00', false, false, NULL, NULL, NULL, false, false, NULL),
	('acme', '01a1e5fc-4103-70f0-b8cb-d3b9f9a7ab21', 'ana', '01a1e5fc-40f4-778c-b4d0-aea8ec02fb78', 6, 'hand', '{}', 5, 'again', '511bebf240283d03a73ad6c4335ff6a61b3d5d66dcd450adccdcdd29305dd944', '01a1e5fc-40f4-778c-b4d0-aea7e3dc325b', '2026-11-16 20:11:16.615892+00', 'working', '2026-11-16 20:11:16.645062+00', '""', NULL, 3, 2, 1, 1, 'w2', '', '2026-11-16 20:11:46.645062+00', NULL, '2026-11-16 20:11:16.615892+00', false, false, NULL, NULL, NULL, false, false, NULL),
	('acme', '01a1e5fc-411e-762d-9d72-6c475b5f2e40', '', '01a1e5fc-411e-762d-9d72-6c487a280530', 9, 'hand', '{}', 5, 'buoy', 'f7cd2eaf949b77652f055131ac873de4d01e044ebc90ecdda675d00013e3795b', '', '2026-11-16 20:11:16.638881+00', 'canceled', '2026-11-16 20:11:16.655851+00', '"nobody watches"', NULL, 5, 4, 1, 0, '', '', NULL, NULL, '2026-11-16 20:11:16.638881+00', false, false, NULL, NULL, NULL, true, false, NULL),
	('acme', '01a1e5fc-4133-760b-8c0d-1fea5fff35d2', '', '01a1e5fc-4133-760b-8c0d-1feb4156400f', 10, 'hand', '{}', 5, '', '', '', '2026-11-16 20:11:16.659659+00', 'submitted', '2026-11-16 20:11:16.659659+00', '""', NULL, 2, 1, 0, 0, '', '', NULL, NULL, '2026-11-16 20:11:16.659659+00', false, false, NULL, NULL, NULL, false, false, NULL);
INSERT INTO holdfast.unindexed_events VALUES
	('acme', 'clerk', 3, 1, 1, 1),
	('acme', 'clerk', 4, 1, 1, 1),
	('zenith', 'clerk', 7, 1, 1, 1),
	('zenith', 'clerk', 8, 1, 1, 1),
	('hot', 'harbour/pilot', 9, 1, 1, 1);
SELECT pg_catalog.setval('holdfast.boards_created_seq', 2, true);
SELECT pg_catalog.setval('holdfast.entities_number_seq', 4, true);
SELECT pg_catalog.setval('holdfast.fact_scopes_key_seq', 4, true);
SELECT pg_catalog.setval('holdfast.facts_number_seq', 4, true);
SELECT pg_catalog.setval('holdfast.outbox_number_seq', 3, true);
SELECT pg_catalog.setval('holdfast.push_configs_number_seq', 1, true);
SELECT pg_catalog.setval('holdfast.session_tombstones_number_seq', 1, false);
SELECT pg_catalog.setval('holdfast.sessions_key_seq', 10, true);
SELECT pg_catalog.setval('holdfast.state_aside_stamps', 1, false);
SELECT pg_catalog.setval('holdfast.state_versions', 12, true);
SELECT pg_catalog.setval('holdfast.task_contexts_key_seq', 10, true);
SELECT pg_catalog.setval('holdfast.task_feedback_given_seq', 1, true);
SELECT pg_catalog.setval('holdfast.task_messages_stored', 21, true);
