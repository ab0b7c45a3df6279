"""Java's classes and collections, as the jobs reach them from Python."""

from typing import Any

import pytest
from py4j.java_gateway import JVMView
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from cdclake.jobs.jvm.java import each, java_with

pytestmark = pytest.mark.spark


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that Java is asked for."""
    names: list[str] = []
    ask = JVMView.__getattr__

    def asking(view: JVMView, name: str) -> Any:
        names.append(name)
        return ask(view, name)

    monkeypatch.setattr(JVMView, "__getattr__", asking)
    return names


def test_a_class_that_was_named_whole_is_never_looked_up(
    spark: SparkSession, asked: list[str]
) -> None:
    java = java_with(spark, "java.util.TreeMap")
    assert java.TreeMap().size() == 0
    assert java_with(spark, "java.util.TreeMap").TreeMap is java.TreeMap
    assert "TreeMap" not in asked
    assert java.java.util.TreeMap().size() == 0
    assert asked == ["java"]  # as it would be each time


def test_its_methods_are_asked_for_once_and_its_values_each_time(spark: SparkSession) -> None:
    numbers = java_with(spark, "java.lang.Integer").Integer
    assert (numbers.parseInt("7"), numbers.parseInt("8")) == (7, 8)
    assert "parseInt" in vars(numbers)
    assert numbers.MAX_VALUE == 2**31 - 1
    assert "MAX_VALUE" not in vars(numbers)


def test_a_class_that_java_lacks_is_an_error_when_it_is_used(spark: SparkSession) -> None:
    java = java_with(spark, "no.such.Thing")
    with pytest.raises(Py4JError, match="Thing"):
        java.Thing.make()


def test_two_classes_cannot_go_by_one_name(spark: SparkSession) -> None:
    java_with(spark, "java.util.LinkedList")
    with pytest.raises(ValueError, match=r"LinkedList already refers to java\.util\.LinkedList"):
        java_with(spark, "another.LinkedList")


def test_each_gives_a_collection_in_its_order(spark: SparkSession) -> None:
    java = java_with(spark, "java.util.ArrayList")
    listed = java.ArrayList()
    assert list(each(listed)) == []
    for number in (3, 1, 2):
        listed.add(number)
    assert list(each(listed)) == [3, 1, 2]
