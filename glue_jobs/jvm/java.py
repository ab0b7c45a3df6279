"""Java's classes and collections, at the least price that py4j has for them.

At each mention of a class py4j asks Java, which looks in every jar for one of the short name before
it minds what was imported (`TypeUtil.getClass` of py4j 0.10.9): an eighth of what a driver did for
small batches. And a `for` over a Java collection ends with an exception, of which PySpark then asks
a dozen times what kind it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from py4j.java_gateway import JavaClass, JavaMember
from pyspark.sql import SparkSession


def java_with(spark: SparkSession, *classes: str) -> Any:
    """The session's view of Java, in which these classes, named whole, go by their short names.

    ValueError for two classes of one short name; Py4JError when a class is first used that Java
    does not have.
    """
    jvm: Any = spark.sparkContext._jvm
    for name in classes:
        short = name.rpartition(".")[2]
        known = vars(jvm).setdefault(short, _KnownClass(name, jvm._gateway_client))
        if known._fqn != name:
            raise ValueError(f"{short} is {known._fqn} already, and cannot be {name}, too")
    return jvm


def each(collection: Any) -> Iterator[Any]:
    """The elements of a Java collection, in its order."""
    elements = collection.iterator()
    while elements.hasNext():
        yield elements.next()


class _KnownClass(JavaClass):  # type: ignore[misc]
    """A class that asks Java once for each of its methods."""

    def __getattr__(self, name: str) -> Any:
        member = super().__getattr__(name)
        if isinstance(member, JavaMember):
            setattr(self, name, member)
        return member
