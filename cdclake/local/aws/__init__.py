"""S3 and Glue on this machine: moto's server, made durable and made to lock as Glue does."""
