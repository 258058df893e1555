"""byzmesh."""
