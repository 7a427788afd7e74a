"""Jobs to copy.  They send to the local receiver only, and exist on the local stage only."""
