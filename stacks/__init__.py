"""The deployment: thin stacks that wire constructs together, without any lookup in AWS."""
