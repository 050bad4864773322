"""Forward and backward passes for the measures of importance."""
