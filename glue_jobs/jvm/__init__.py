"""Java classes and collections behind the Spark session."""
