"""The one way to a worker of a family: its process is started, its device opened, and what it says compared with the identity."""

from __future__ import annotations

from shaderkiln.compilers.plugin import FamilyCompiler
from shaderkiln.drivers.client import WorkerProcess
from shaderkiln.drivers.frames import frame
from shaderkiln.drivers.protocol import Answer, Failed, Open, Opened
from shaderkiln.errors import DriverError, ShaderkilnError
from shaderkiln.identity import shown_value

START_SECONDS = 60.0
"""Time that a worker has for opening its device."""
COMPARED = ("vendor_id", "device_id", "driver_id", "driver_name", "driver_version", "cache_uuid")
"""The fields of an identity that are compared with those of the worker's capabilities, besides ``global_key``. Not the form of
object code: who wants none of it says so there, whatever the driver can give."""


class WrongDriverError(DriverError):
    """A worker holds another driver or device than the one that the identity was made from."""


def driver_error(error: BaseException) -> DriverError:
    """The error for whoever waits for a worker's answer in another thread: this one, if it is the driver's."""
    if isinstance(error, DriverError):
        return error
    return DriverError(str(error) or type(error).__name__, code=error.code if isinstance(error, ShaderkilnError) else None)


class FamilyWorker(WorkerProcess[Answer]):
    """A worker of a family. What is sent to it leaves this process only once it has opened the right device.

    ``receive``, and so ``ask``, raises DriverError with the worker's own code if it cannot open a device, WrongDriverError if what
    it opened is not that of ``compiler.identity``.
    """

    def __init__(self, compiler: FamilyCompiler, threads: int = 0) -> None:
        """``threads`` as in ``Open``. Raises DriverError if no process can be started."""
        command = compiler.worker_command()
        self.opened: Opened | None = None
        """What the worker said about its device; None until that was received."""
        self._identity = compiler.identity
        self._held = bytearray()
        super().__init__(command.arguments, command.environment)
        super().send_frames(frame(Open(compiler.identity.features, threads=threads)))

    def send_frames(self, frames: bytes | bytearray) -> None:
        if self.opened is None:
            self._held += frames
        else:
            super().send_frames(frames)

    def receive(self) -> list[Answer]:
        answers = super().receive()
        if self.opened is None and answers:
            opened = self._checked(answers.pop(0))
            if answers:
                raise DriverError("the worker answered before anything was asked of it")
            self.opened = opened
            super().send_frames(self._held)
            self._held.clear()
        if any(isinstance(answer, Opened) for answer in answers):
            raise DriverError("the worker opened a device twice")
        return answers

    def wait_until_open(self) -> Opened:
        """What the worker said about its device, before anything is asked of it. Raises as ``receive`` and ``ask``."""
        self.wait_until(lambda: bool(self.receive()) or self.opened is not None, START_SECONDS)
        assert self.opened is not None
        return self.opened

    def _checked(self, answer: Answer) -> Opened:
        if isinstance(answer, Failed):
            raise DriverError(f"the driver cannot open a device: {answer.message}", code=answer.code)
        if not isinstance(answer, Opened):
            raise DriverError(f"the worker answered {type(answer).__name__} before its device was open")
        found = {name: getattr(answer.capabilities, name) for name in COMPARED} | {"global_key": answer.global_key}
        wrong = [
            f"{name}: expected {shown_value(expected)}, found {shown_value(value)}"
            for name, value in found.items()
            if (expected := getattr(self._identity, name)) != value
        ]
        if wrong:
            raise WrongDriverError(
                f"the driver of {self._identity.family} is not the one that was asked before ({'; '.join(wrong)}); "
                "run `kiln families --refresh` and try again"
            )
        return answer
