"""Object stores: S3 and compatible stores, disk, and the other stores that obstore supports."""
