"""How sure roles are: when texts are added, drawn anew, or fewer, and at another tau."""
