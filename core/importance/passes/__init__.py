"""Forward and backward passes that the measures of importance need."""
