"""Small models with weights written by hand, in which the function of each attention head is known."""
