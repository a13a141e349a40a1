"""What a source of pipelines is to everything that works on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, Self

from shaderkiln.descriptions.pipeline import Application, PipelineDescription, PipelineKind
from shaderkiln.errors import InvalidArgumentError, NotFoundError
from shaderkiln.keys import ObjectKey


class Source(Protocol):
    """An open file of pipelines; a context manager. ``sources.capture.Capture``, ``sources.state_objects.StateObjectSource``.

    A pipeline is known by its kind and its name as a number. What is asked about one does not depend on what was asked before,
    but it is cheapest to ask for its object key and then to load it. Not for use by several threads at once. What has a body here
    is right for most files.
    """

    @property
    def path(self) -> Path:
        """The file."""

    @property
    def depends_on(self) -> tuple[str, ...]:
        """Other files whose change may change the pipelines."""
        return ()

    @property
    def damage(self) -> tuple[str, ...]:
        """The places of the file that hold nothing good: pipelines that were there are not among ``pipelines``."""
        return ()

    @property
    def application(self) -> Application:
        """Whose pipelines these are; an empty one if the file does not say."""

    def application_of(self, kind: PipelineKind, hash: int) -> Application:
        """Whose pipeline this is, and for which features it has to be compiled if nothing else is."""
        return self.application

    def require_one_set_of_features(self) -> None:
        """Raises InvalidArgumentError if the pipelines cannot all be compiled for one device."""

    def pipelines(self) -> Iterator[tuple[PipelineKind, int]]:
        """Kind and name of every pipeline, always in the same order."""

    def label(self, name: str) -> str:
        """What to call a pipeline before people, by its name in 16 hexadecimal digits: that name."""
        return name

    def cost(self, kind: PipelineKind, hash: int) -> int:
        """An estimate of the time to compile it, in no particular unit; 0 for a pipeline that cannot be read."""

    def object_key(self, kind: PipelineKind, hash: int) -> ObjectKey:
        """The key under which a database has the pipeline's object. No shader is translated for it.

        Raises NotFoundError if there is no such pipeline, DamagedInputError and InvalidArgumentError that name what is damaged or
        wrong in it.
        """

    def version(self, kind: PipelineKind, hash: int) -> int:
        """The version that the pipeline's group has in a database. Raises NotFoundError if there is no such pipeline."""

    def load(self, kind: PipelineKind, hash: int) -> PipelineDescription:
        """The pipeline with every object that it reaches.

        Raises as ``object_key``, and UnsupportedPipelineError with its object key for what has no form in Vulkan here.
        """

    def close(self) -> None:
        """Closes the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def resolve_pipeline(source: Source, name: str) -> tuple[PipelineKind, int]:
    """Kind and hash of the pipeline with that name, or of the only one whose name begins so.

    Raises NotFoundError if there is none, InvalidArgumentError if several fit.
    """
    wanted = name.lower()
    found = [(kind, hash) for kind, hash in source.pipelines() if f"{hash:016x}".startswith(wanted)]
    if not found or not wanted:
        raise NotFoundError(f"no pipeline's name begins with {name!r}; `kiln show --pipelines CAPTURE` lists them")
    if len(found) > 1:
        some = ", ".join(f"{hash:016x}" for _, hash in found[:5])
        raise InvalidArgumentError(f"{len(found)} pipelines have names that begin with {name!r}: {some} …")
    return found[0]
