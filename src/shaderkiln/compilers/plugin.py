"""The interface of a compiler plugin (EP-53), and how plugins are found.

A plugin is a class named by an entry point of the group ``shaderkiln.compilers``. It lists adapter families and opens one of them
for one application; what it opens says who the object code belongs to, checks what the family can take, and gives the command of
a worker process that answers the messages of ``shaderkiln.drivers.protocol``. A plugin never compiles in the calling process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Protocol

from msgspec import Struct, field

from shaderkiln.descriptions.pipeline import Application, PipelineDescription
from shaderkiln.errors import InvalidArgumentError, NotFoundError, ShaderkilnError, Trouble
from shaderkiln.identity import CompilerIdentity
from shaderkiln.keys import OBJECT_VERSION, Group, ObjectKey

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from shaderkiln.descriptions.unmet import Unmet

ENTRY_POINT_GROUP = "shaderkiln.compilers"
SHIPPED = {
    "mesa": ("shaderkiln.compilers.mesa", "MesaCompiler"),
    "native": ("shaderkiln.compilers.native", "NativeCompiler"),
}
"""The plugins of this package. They are entry points like every other; reading the entry points of a whole environment takes longer
than a run that finds everything done, so these are known here too and asked first."""


class FamilyNotFoundError(NotFoundError):
    """Nothing here compiles for the family that was asked for (``DXGI_ERROR_NOT_FOUND``)."""

    trouble = Trouble.DRIVER


class PluginError(ShaderkilnError):
    """A compiler plugin cannot be loaded."""

    trouble = Trouble.DRIVER


class AdapterFamily(Struct, frozen=True):
    """One adapter family that one build of a compiler can make object code for."""

    name: str
    compiler: str
    """Name of the plugin."""
    package: str
    """Name of the driver package, or of the compiler's build."""
    abi_versions: tuple[int, ...]
    """Largest first; 64-bit values of four 16-bit parts, never 0 or 2**64 - 1."""
    compiler_version: str
    application_profile_version: int
    device_name: str = ""
    object_code_form: str = "pipeline-binary"

    def __post_init__(self) -> None:
        versions = self.abi_versions
        usable = all(0 < version < 2**64 - 1 for version in versions)
        if not versions or not usable or list(versions) != sorted(set(versions), reverse=True):
            raise InvalidArgumentError(
                f"plugin {self.compiler!r}, family {self.name!r}: ABI versions must be given largest first, without repeats, and "
                f"between 0 and 2**64 - 1, which are reserved; got {versions}"
            )


class WorkerCommand(Struct, frozen=True):
    """How to start a worker: ``arguments`` is the command line, in which ``{fd}`` is replaced by the socket's number."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


class GroupStore(Protocol):
    """The part of a database that ``find`` needs."""

    def group_or_none(self, object_key: ObjectKey, version: int) -> Group | None: ...


class FamilyCompiler(ABC):
    """One family of one compiler build, opened for one application."""

    identity: CompilerIdentity
    """Who the object code made here belongs to."""
    files: tuple[str, ...] = ()
    """Every file whose change may change what this compiler makes, a plugin's own code included; empty if it cannot tell, and then
    nothing is taken as unchanged without looking."""

    @abstractmethod
    def worker_command(self) -> WorkerCommand:
        """The command of a worker process for this family."""

    def check(self, description: PipelineDescription) -> tuple[Unmet, ...]:
        """What the pipeline needs and the family lacks; empty if a worker may be asked to compile it."""
        return ()

    def find(self, database: GroupStore, object_key: ObjectKey, version: int = OBJECT_VERSION) -> Group | None:
        """The values that an earlier compile made for this object, or None (EP-53)."""
        return database.group_or_none(object_key, version)


class Compiler(ABC):
    """A compiler plugin."""

    name: ClassVar[str]
    """The name of the plugin, as ``kiln compile --plugin`` takes it."""

    @abstractmethod
    def adapter_families(
        self, *, family: str | None = None, refresh: bool = False, progress: Callable[[str], None] | None = None
    ) -> tuple[AdapterFamily, ...]:
        """The families that can really be compiled for here; ``refresh`` tries them again instead of trusting earlier answers.

        ``family``: the caller wants only that one, or, where none is called so, those whose names begin so; a plugin that is slow
        to find out may leave out the others. ``progress`` gets the name of what is tried now.
        """

    def known_families(self) -> Iterable[str]:
        """Names of families that may work here, found without trying any: what is suggested to somebody who mistyped one."""
        return ()

    @abstractmethod
    def open(
        self, family: str, application: Application, *, package: str | None = None, abi_version: int | None = None
    ) -> FamilyCompiler:
        """Opens a family for an application.

        ``package`` and ``abi_version`` choose among several builds; without them the one with the largest ABI version is taken.
        Raises FamilyNotFoundError if there is no such family, package or ABI version.
        """


def installed_compilers() -> dict[str, EntryPoint]:
    """The entry points of every installed plugin by name; nothing is imported yet."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def load_compiler(name: str) -> Compiler:
    """The plugin of that name.

    Raises NotFoundError if none is installed, PluginError if it cannot be loaded, or what its entry point names is not a plugin.
    """
    if name in SHIPPED:
        from importlib import import_module

        module, attribute = SHIPPED[name]
        found, value = getattr(import_module(module), attribute), f"{module}:{attribute}"
    else:
        points = installed_compilers()
        if name not in points:
            raise NotFoundError(f"no compiler plugin {name!r} is installed; there are: {', '.join(compiler_names())}")
        value = points[name].value
        with guarded(f"{name!r} ({value}) cannot be loaded"):
            found = points[name].load()
    if not (isinstance(found, type) and issubclass(found, Compiler)):
        raise PluginError(f"compiler plugin {name!r} ({value}) is not a shaderkiln.compilers.plugin.Compiler")
    with guarded(f"{name!r} ({value}) cannot be started"):
        return found()


@contextmanager
def guarded(trouble: str) -> Iterator[None]:
    """Raises PluginError for whatever is no error of this package: a plugin is anybody's code, and can raise anything."""
    try:
        yield
    except ShaderkilnError:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(f"compiler plugin {trouble}: {type(error).__name__}: {error}") from error


def open_family(
    family: str,
    application: Application,
    *,
    plugin: str | None = None,
    package: str | None = None,
    abi_version: int | None = None,
) -> FamilyCompiler:
    """Opens a family with the named plugin, or with the first one that has it: the shipped ones, then others by name.

    Raises FamilyNotFoundError with what to do if nothing here can compile for the family, NotFoundError and PluginError for a named
    plugin that is not there or cannot be loaded, InvalidArgumentError if ``family`` is not one name.
    """
    if not isinstance(family, str):
        raise InvalidArgumentError(
            f"a family is one name, such as 'amd-navi31', and not {family!r}; run one job for each family"
        )
    compilers: list[Compiler] = []
    reasons = []
    for name in [plugin] if plugin else compiler_names():
        try:
            compilers.append(load_compiler(name))
            with guarded(f"{name!r} cannot open {family!r}"):
                opened = compilers[-1].open(family, application, package=package, abi_version=abi_version)
                if not isinstance(opened, FamilyCompiler):
                    raise TypeError(f"{type(opened).__name__} is no FamilyCompiler")
            return opened
        except (FamilyNotFoundError, NotFoundError, PluginError) as error:
            if plugin and not isinstance(error, FamilyNotFoundError):
                raise
            reasons.append(str(error))
    if meant := _meant(family, compilers):
        raise FamilyNotFoundError(f"nothing here compiles for {family!r}; did you mean {meant}?")
    raise FamilyNotFoundError("; ".join(dict.fromkeys(reasons)))


def _meant(family: str, compilers: Iterable[Compiler]) -> str:
    """What family a mistyped name may stand for; empty if it is a known one, or like none."""
    from shaderkiln.drivers.targets import KNOWN_FAMILIES, canonical_family
    from shaderkiln.suggestions import close_to

    name = canonical_family(family)
    known = {known for compiler in compilers for known in compiler.known_families()}
    return "" if name in KNOWN_FAMILIES or name in known else close_to(name, sorted(known))


def compiler_names() -> Iterator[str]:
    """The names of the installed plugins: the shipped ones, then others by name."""
    yield from SHIPPED
    yield from sorted(installed_compilers().keys() - SHIPPED.keys())
