"""Versions of the servers that a deployment creates."""

# KRaft: a ZooKeeper cluster in two zones could not be migrated later.
KAFKA = "3.9.x.kraft"
# The major version of the local lake (pom.xml). RDS chooses the minor version: once RDS withdraws
# a minor version, instances with it can be neither created nor restored.
POSTGRES = "17"
# The newest that MSK Connect documents, and the local worker's line (pom.xml).
KAFKA_CONNECT = "3.7.x"
