"""Search of the JVM for the classes and members that the jobs use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession


def missing_members(spark: SparkSession, wanted: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Yield each class that cannot be loaded, and each member that its class lacks.

    Classes are loaded as py4j loads them, by the context class loader, so that jars which were
    added to the job are found.
    """
    jvm: Any = spark.sparkContext._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for name, members in wanted.items():
        try:
            found = _members_of(loader.loadClass(name))
        except Py4JJavaError as error:
            yield f"{name} ({error.java_exception.getClass().getSimpleName()})"
            continue
        yield from (f"{name}.{member}" for member in members if member not in found)


def _members_of(java_class: Any) -> set[str]:
    return {str(member.getName()) for member in (*java_class.getMethods(), *java_class.getFields())}
