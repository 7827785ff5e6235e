"""Object stores: S3 and what speaks it, disk, and the other stores that obstore knows."""
