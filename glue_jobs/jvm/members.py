"""Java classes that the jobs use through py4j, with the members that they use.

Most are outside Iceberg's public interface, so another build of Iceberg may lack one. The probe job
looks for all of them (`cdclake doctor --target aws --probe`). A test compares this list with the
names in the code.
"""

from __future__ import annotations

from collections.abc import Mapping

MEMBERS: Mapping[str, tuple[str, ...]] = {
    "cdclake.iceberg.Elements": ("listOf", "next"),
    "java.lang.Class": ("forName",),
    "java.util.ArrayList": ("add",),
    "java.util.Arrays": ("asList",),
    "java.util.HashMap": ("put",),
    "org.apache.commons.io.IOUtils": ("toString",),
    "org.apache.hadoop.fs.Path": ("getFileSystem",),
    "org.apache.iceberg.ContentFileParser": ("fromJson", "toJson"),
    "org.apache.iceberg.FileContent": ("POSITION_DELETES",),
    "org.apache.iceberg.FileFormat": ("PARQUET",),
    "org.apache.iceberg.FileMetadata": ("deleteFileBuilder",),
    "org.apache.iceberg.ManifestFiles": ("readDeleteManifest",),
    "org.apache.iceberg.MetadataColumns": ("DELETE_FILE_PATH", "DELETE_FILE_POS"),
    "org.apache.iceberg.MetricsConfig": ("forPositionDelete",),
    "org.apache.iceberg.OverwriteFiles": (
        "addFile",
        "conflictDetectionFilter",
        "validateFromSnapshot",
        "validateNoConflictingData",
    ),
    "org.apache.iceberg.RowDelta": (
        "addDeletes",
        "addRows",
        "conflictDetectionFilter",
        "validateDataFilesExist",
        "validateDeletedFiles",
        "validateFromSnapshot",
        "validateNoConflictingDataFiles",
        "validateNoConflictingDeleteFiles",
    ),
    "org.apache.iceberg.Schema": (),
    "org.apache.iceberg.SchemaParser": ("toJson",),
    "org.apache.iceberg.expressions.Expressions": (
        "alwaysTrue",
        "and",
        "greaterThan",
        "lessThanOrEqual",
    ),
    "org.apache.iceberg.io.OutputFileFactory": ("builderFor",),
    "org.apache.iceberg.parquet.Parquet": ("write",),
    "org.apache.iceberg.spark.CommitMetadata": ("withCommitProperties",),
    "org.apache.iceberg.spark.ScanTaskSetManager": ("get", "removeTasks", "stageTasks"),
    "org.apache.iceberg.spark.Spark3Util": ("loadIcebergTable",),
    "org.apache.iceberg.spark.data.SparkParquetWriters": ("buildWriter",),
    "org.apache.iceberg.util.JsonUtil": ("mapper",),
    "org.apache.iceberg.util.SnapshotUtil": ("snapshotIdAsOfTime",),
    "org.apache.kafka.clients.admin.AdminClient": (
        "create",
        "describeTopics",
        "listOffsets",
        "listTopics",
    ),
    "org.apache.kafka.clients.admin.OffsetSpec": ("earliest", "latest"),
    "org.apache.kafka.clients.producer.KafkaProducer": ("close", "send"),
    "org.apache.kafka.clients.producer.ProducerRecord": (),
    "org.apache.kafka.common.TopicPartition": (),
    "org.apache.kafka.common.serialization.StringSerializer": (),
    "org.apache.spark.api.python.PythonUtils": ("toArray",),
    "org.apache.spark.sql.functions": (),
    "scala.collection.JavaConverters": ("asJavaIterator",),
}
