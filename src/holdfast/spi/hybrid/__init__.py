"""What the hybrid engine needs of its two stores: the hot one (Redis) and the durable one."""
