"""Monthly cost of a deployment, from its synthesized templates and its declaration."""
