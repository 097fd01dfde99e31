"""What `make bench` is made of: servers beside each other, one load generator, and pages from what was measured."""
