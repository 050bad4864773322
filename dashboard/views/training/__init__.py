"""What trains on this machine, for the pages that begin it or show it: its data, its folders and its panel."""
