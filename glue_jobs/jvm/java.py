"""Java classes and collections, accessed with as few py4j calls as possible.

Each time a class is named, py4j asks the JVM, which searches every jar for the short name before it
considers the imports (`TypeUtil.getClass` in py4j 0.10.9). A `for` loop over a Java collection ends
with an exception, whose type PySpark then checks a dozen times.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from py4j.java_gateway import JavaClass, JavaMember
from pyspark.sql import SparkSession


def java_with(spark: SparkSession, *classes: str) -> Any:
    """Return the session's JVM view, with these classes available by their short names.

    `classes` are fully qualified names. Raises ValueError if two classes have the same short name;
    a class that does not exist raises Py4JError when it is first used.
    """
    jvm: Any = spark.sparkContext._jvm
    for name in classes:
        short = name.rpartition(".")[2]
        known = vars(jvm).setdefault(short, _KnownClass(name, jvm._gateway_client))
        if known._fqn != name:
            raise ValueError(f"{short} already refers to {known._fqn}, not to {name}")
    return jvm


def each(collection: Any) -> Iterator[Any]:
    """Yield the elements of a Java collection in order."""
    elements = collection.iterator()
    while elements.hasNext():
        yield elements.next()


class _KnownClass(JavaClass):  # type: ignore[misc]
    """Java class that looks up each of its methods only once."""

    def __getattr__(self, name: str) -> Any:
        member = super().__getattr__(name)
        if isinstance(member, JavaMember):
            setattr(self, name, member)
        return member
