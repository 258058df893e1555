"""A live view in the browser: a sweep as it is computed, or peers as they train. Read-only."""
