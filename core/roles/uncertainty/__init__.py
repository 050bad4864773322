"""How certain roles are: when texts are added, resampled or left out, and at another tau."""
