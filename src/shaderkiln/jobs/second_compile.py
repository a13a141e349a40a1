"""Passes that compile stored pipelines once more, for values that the first compile does not give."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress

from shaderkiln.databases.psdb import PsdbBuilder
from shaderkiln.descriptions.pipeline import PipelineCreateInfo, PipelineKind
from shaderkiln.drivers.protocol import Compile, Compiled, Inspect, Inspected
from shaderkiln.errors import DamagedInputError, ShaderkilnError
from shaderkiln.jobs.cache_values import cache_value_key, cache_values
from shaderkiln.jobs.statistics import statistics_value
from shaderkiln.keys import Group, ObjectKey, ValueKey, ValueType
from shaderkiln.sources.source import Source
from shaderkiln.workers.pool import Result, Task


class SecondCompile(ABC):
    """Adds values to the groups that have none of them yet; a pipeline that the driver cannot do it for goes without."""

    def __init__(self, source: Source, builder: PsdbBuilder) -> None:
        self._source = source
        self._builder = builder
        self._groups: dict[ObjectKey, Group] = {}
        """Of what is in hand."""

    @abstractmethod
    def _stored_as(self, object_key: ObjectKey) -> tuple[ValueKey, ValueType]:
        """The value that is there if all of them are."""

    @abstractmethod
    def _request(self, pipeline: PipelineCreateInfo) -> Compile | Inspect: ...

    @abstractmethod
    def _add(self, group: Group, result: Result) -> None: ...

    def plan(self, kind: PipelineKind, hash: int, _cost: int) -> Task | None:
        """Asks a worker for what is not there."""
        try:
            key, version = self._source.object_key(kind, hash), self._source.version(kind, hash)
        except ShaderkilnError:
            return None
        known = key in self._groups or self._builder.has_value(*self._stored_as(key))
        if known or not self._builder.has_group(key, version):
            return None
        try:
            description = self._source.load(kind, hash)
        except ShaderkilnError:
            return None
        self._groups[key] = Group(key, version, self._builder.value_keys(key, version), kind, description.name)
        return Task(description, key, self._request(description.create_info))

    def take(self, task: Task, result: Result) -> tuple[()]:
        """Stores what the driver gave. The verdict on the pipeline is that of the first compile."""
        self._add(self._groups.pop(task.object_key), result)
        return ()


class Statistics(SecondCompile):
    """The driver's statistics, as PERFORMANCE_DATA."""

    def _stored_as(self, object_key: ObjectKey) -> tuple[ValueKey, ValueType]:
        return ValueKey(bytes(object_key)), ValueType.PERFORMANCE_DATA

    def _request(self, pipeline: PipelineCreateInfo) -> Inspect:
        return Inspect(0, pipeline, representations=False)

    def _add(self, group: Group, result: Result) -> None:
        if isinstance(result, Inspected) and result.executables:
            self._builder.add(group, (statistics_value(group.object_key, result.executables),))


class PipelineCaches(SecondCompile):
    """What a VkPipelineCache holds of each pipeline, which is created through one."""

    def _stored_as(self, object_key: ObjectKey) -> tuple[ValueKey, ValueType]:
        return cache_value_key(object_key), ValueType.METADATA

    def _request(self, pipeline: PipelineCreateInfo) -> Compile:
        return Compile(0, pipeline, as_cache=True)

    def _add(self, group: Group, result: Result) -> None:
        for _, data in result.values if isinstance(result, Compiled) else ():
            with suppress(DamagedInputError):
                self._builder.add(group, cache_values(group.object_key, data))
