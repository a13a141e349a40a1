"""The product from Python: open, compile, verify, inspect. The command line is a thin shell over these functions."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from shaderkiln.errors import AccessDeniedError, InvalidArgumentError, UnreadableError
from shaderkiln.system.files import read_start

if TYPE_CHECKING:
    from shaderkiln.databases.psdb import Psdb
    from shaderkiln.identity import ApplicationIdentity
    from shaderkiln.jobs.compile import CompileJob, JobOptions, JobReport
    from shaderkiln.jobs.inspection import Inspection
    from shaderkiln.jobs.progress import Progress
    from shaderkiln.jobs.verdicts import Verdict
    from shaderkiln.jobs.verify import VerifyJob, VerifyReport
    from shaderkiln.sources.capture import Capture
    from shaderkiln.sources.source import Source
    from shaderkiln.workers.pool import Limits

PathLike = str | os.PathLike[str]


def open_capture(path: PathLike, *, application: int | str | None = None) -> Capture:
    """Opens a Fossilize archive as a source of pipelines.

    ``application`` chooses one of its applications, by number or name: see ``Capture.select``. Raises NotFoundError if there is
    no such file or application, UnreadableError if it may not be read, DamagedInputError if it is no archive.
    """
    from shaderkiln.sources.capture import Capture

    try:
        capture = Capture.open(Path(path))
    except AccessDeniedError as error:
        raise UnreadableError(str(error)) from error
    if application is None:
        return capture
    try:
        return capture.select(application)
    except BaseException:
        capture.close()
        raise


def is_state_object_database(path: PathLike) -> bool:
    """Whether a file says that it is a state object database; False for one that cannot be read."""
    try:
        header = read_start(path, 72)
    except (OSError, ValueError):
        return False
    # SQLite's application id, as the published schema sets it.
    return header.startswith(b"SQLite format 3\0") and header[68:72] == b"\x0d\x3d\x50\xdb"


def open_source(
    path: PathLike,
    *,
    keys: Container[bytes] | None = None,
    pipeline_states: bool = True,
    state_objects: bool = True,
    application: int | str | None = None,
) -> Source:
    """Opens a capture or a state object database as a source of pipelines.

    ``keys``, ``pipeline_states`` and ``state_objects`` choose among the objects of a state object database; a capture has none.
    ``application`` chooses among the applications of a capture. Raises as ``open_capture``; CacheCorruptError for a damaged state
    object database, InvalidArgumentError for a choice that the file does not have.
    """
    if is_state_object_database(path) or Path(path).suffix == ".sodb":
        if application is not None:
            raise InvalidArgumentError(f"{path} is a state object database: it has one application")
        from shaderkiln.sources.state_objects import StateObjectSource

        return StateObjectSource.open(Path(path), pipeline_states=pipeline_states, state_objects=state_objects, keys=keys)
    if keys is not None or not pipeline_states or not state_objects:
        raise InvalidArgumentError(f"{path} is no state object database: it has no keys, pipeline states or state objects")
    return open_capture(path, application=application)


def open_psdb(path: PathLike) -> Psdb:
    """Opens a finished PSDB for reading.

    Raises NotFoundError if there is no such file, UnreadableError if it may not be read, CacheCorruptError if it is no PSDB or
    damaged.
    """
    from shaderkiln.databases.psdb import Psdb

    try:
        return Psdb.open(Path(path))
    except AccessDeniedError as error:
        raise UnreadableError(str(error)) from error


def psdb_path(capture: PathLike, family: str, output: PathLike | None, *, single: bool) -> Path:
    """Where the PSDB of a source and family goes: ``output`` itself if it names a file, else a file of that folder."""
    name = f"{Path(capture).stem}.{family}.psdb"
    target = Path(output) if output is not None else Path()
    if target.suffix == ".psdb" and not target.is_dir():
        if not single:
            raise InvalidArgumentError(f"{target} names one file, but several families were asked for; give a folder")
        return target
    return target / name


def compile_capture(
    capture: Source | PathLike,
    family: str,
    output: PathLike | None = None,
    *,
    plugin: str | None = None,
    package: str | None = None,
    abi_version: int | None = None,
    application: ApplicationIdentity | None = None,
    options: JobOptions | None = None,
    on_verdict: Callable[[Verdict], None] | None = None,
    on_tick: Callable[[Progress], None] | None = None,
    on_start: Callable[[CompileJob], None] | None = None,
) -> JobReport:
    """Compiles every pipeline of a capture or state object database for one adapter family into one PSDB.

    ``output`` is the PSDB (``*.psdb``) or its folder; default: the working directory. ``application`` says whose PSDB it is;
    default: what the capture says. ``on_start`` gets the job, whose ``stop`` ends it early with a valid PSDB.

    Raises InvalidArgumentError for a capture whose applications had different features that change object code, unless one is
    chosen (``Capture.select``); NotFoundError if nothing here compiles for the family, CacheCorruptError if the output belongs to
    somebody else, AccessDeniedError if the folder cannot be made or written to, DriverError if the driver cannot be
    started.
    """
    from shaderkiln.compilers.plugin import open_family
    from shaderkiln.jobs.compile import CompileJob

    with _opened(capture) as source:
        source.require_one_set_of_features()
        compiler = open_family(family, source.application, plugin=plugin, package=package, abi_version=abi_version)
        path = psdb_path(source.path, compiler.identity.family, output, single=True)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AccessDeniedError(f"{path.parent}: cannot be made a folder: {error.strerror}") from error
        job = CompileJob(source, compiler, path, options, application=application, on_verdict=on_verdict, on_tick=on_tick)
        if on_start:
            on_start(job)
        return job.run()


@contextmanager
def _opened(source: Source | PathLike) -> Iterator[Source]:
    """A source as it is; one that is opened here is closed again."""
    if isinstance(source, str | os.PathLike):
        with open_source(source) as opened:
            yield opened
    else:
        yield source


def verify_psdb(
    database: Psdb | PathLike,
    capture: Source | PathLike,
    *,
    family: str | None = None,
    plugin: str | None = None,
    package: str | None = None,
    workers: int | None = None,
    limits: Limits | None = None,
    strict: bool = False,
    on_verdict: Callable[[Verdict], None] | None = None,
    on_tick: Callable[[Progress], None] | None = None,
    on_start: Callable[[VerifyJob], None] | None = None,
) -> VerifyReport:
    """Creates every pipeline of a capture or state object database from a PSDB, with compiling forbidden.

    ``family`` is the family to verify for; default: the PSDB's own. ``strict`` goes with a PSDB that was compiled so: what was
    kept from the driver only because the device does not advertise it is unsupported, and no miss. Raises CacheCorruptError if the
    PSDB belongs to another family, driver build or device, before any driver sees it.
    """
    from shaderkiln.compilers.plugin import open_family
    from shaderkiln.databases.psdb import Psdb
    from shaderkiln.jobs.verify import VerifyJob

    with nullcontext(database) if isinstance(database, Psdb) else open_psdb(database) as psdb, _opened(capture) as source:
        source.require_one_set_of_features()
        compiler = open_family(
            family or psdb.identity.family,
            source.application,
            plugin=plugin,
            package=package,
            abi_version=None if family or package else psdb.identity.abi_version,
        )
        job = VerifyJob(
            source, compiler, psdb, workers=workers, limits=limits, strict=strict, on_verdict=on_verdict, on_tick=on_tick
        )
        if on_start:
            on_start(job)
        return job.run()


def inspect_pipeline(
    capture: Source | PathLike,
    pipeline: str,
    family: str,
    *,
    plugin: str | None = None,
    package: str | None = None,
    abi_version: int | None = None,
    limits: Limits | None = None,
) -> Inspection:
    """The driver's statistics and disassembly of one pipeline of a capture, compiled again with capture on.

    ``pipeline`` is its name or the beginning of it; it is compiled with the features of its own application. Raises NotFoundError
    if there is none, InvalidArgumentError if several fit.
    """
    from shaderkiln.compilers.plugin import open_family
    from shaderkiln.jobs.inspection import inspect
    from shaderkiln.sources.source import resolve_pipeline

    with _opened(capture) as source:
        kind, hash = resolve_pipeline(source, pipeline)
        description = source.load(kind, hash)
        application = source.application_of(kind, hash)
        compiler = open_family(family, application, plugin=plugin, package=package, abi_version=abi_version)
        return inspect(compiler, description, limits)
