"""The deployment: thin stacks that wire constructs together; the account is never asked."""
