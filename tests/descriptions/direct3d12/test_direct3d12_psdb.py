"""The PSDB subobject in streams and state objects, and what goes when subobjects are removed."""

from __future__ import annotations

import pytest

from shaderkiln.descriptions.direct3d12.builders import PipelineStateStreamBuilder, StateObjectBuilder
from shaderkiln.descriptions.direct3d12.enums import (
    PipelineStateSubobjectType,
    PrimitiveTopologyType,
    StateObjectType,
    StateSubobjectType,
)
from shaderkiln.descriptions.direct3d12.enums import ShaderCacheSessionSubobjectFlags as Flags
from shaderkiln.descriptions.direct3d12.pipeline_state import PipelineStateStream
from shaderkiln.descriptions.direct3d12.psdb_subobject import ShaderCacheSessionSubobjectDesc
from shaderkiln.descriptions.direct3d12.state_object import (
    GenericProgram,
    GlobalRootSignature,
    LocalRootSignature,
    StateObjectDesc,
    SubobjectToExportsAssociation,
)
from shaderkiln.descriptions.direct3d12.states import PrimitiveTopologyDesc, RasterizerDesc, RasterizerDesc2, SampleMask
from shaderkiln.descriptions.direct3d12.validation import validate
from shaderkiln.errors import InvalidArgumentError


class Session:
    def get_desc(self) -> object:
        return None


STREAM = PipelineStateStream(cs=b"compute")
EMPTY = StateObjectDesc(StateObjectType.EXECUTABLE)


@pytest.mark.spec("EP-09")
def test_a_subobject_carries_session_and_flags() -> None:
    session = Session()
    stream = STREAM.with_psdb(session, Flags.CREATE_ONLY)
    assert stream.subobjects()[-1] == (30, ShaderCacheSessionSubobjectDesc(session, Flags.CREATE_ONLY))
    validate(stream)
    desc = EMPTY.with_psdb(session, Flags.CREATE_ONLY)
    assert desc.psdb is not None
    assert (desc.psdb.subobject_type, desc.psdb.session, desc.psdb.flags) == (43, session, 1)
    validate(desc)


@pytest.mark.spec("EP-12")
def test_without_session_only_no_flags_are_valid() -> None:
    for made in (STREAM.with_psdb(None), EMPTY.with_psdb(None)):
        validate(made)
        assert made.psdb is not None and made.psdb.session is None


@pytest.mark.spec("EP-12")
@pytest.mark.parametrize(("session", "flags"), [(None, Flags.CREATE_ONLY), (Session(), Flags(2)), (None, Flags(4))])
def test_flags_without_session_and_unknown_flags_are_refused_everywhere(session: Session | None, flags: Flags) -> None:
    wrong = ShaderCacheSessionSubobjectDesc(session, flags)
    for refused in (
        lambda: STREAM.with_psdb_desc(wrong),
        lambda: EMPTY.with_psdb_desc(wrong),
        lambda: STREAM.with_psdb(session, flags),
        lambda: EMPTY.with_psdb(session, flags),
        lambda: PipelineStateStreamBuilder().psdb(wrong),
        lambda: StateObjectBuilder(StateObjectType.EXECUTABLE).psdb(session, flags),
        lambda: validate(PipelineStateStream(cs=b"compute", psdb=wrong)),
        lambda: validate(StateObjectDesc(StateObjectType.EXECUTABLE, (wrong,))),
    ):
        with pytest.raises(InvalidArgumentError) as error:
            refused()
        assert error.value.code == "E_INVALIDARG"


@pytest.mark.spec("EP-12")
def test_the_message_names_the_unknown_flag() -> None:
    with pytest.raises(InvalidArgumentError, match=r"psdb\.flags: 0x5 is no D3D12_SHADER_CACHE_SESSION_SUBOBJECT_FLAGS"):
        STREAM.with_psdb(Session(), Flags(5))


@pytest.mark.spec("EP-13")
def test_builders_take_a_desc_or_a_session_with_flags() -> None:
    session = Session()
    expected = ShaderCacheSessionSubobjectDesc(session, Flags.CREATE_ONLY)
    for arguments in ((expected,), (session, Flags.CREATE_ONLY)):
        stream = PipelineStateStreamBuilder(STREAM).psdb(*arguments).build()
        assert stream == PipelineStateStream(cs=b"compute", psdb=expected)
        builder = StateObjectBuilder(StateObjectType.EXECUTABLE)
        builder.psdb(*arguments)
        assert builder.build().subobjects == (expected,)
    assert PipelineStateStreamBuilder().psdb(session).build().psdb == ShaderCacheSessionSubobjectDesc(session, Flags.NONE)
    with pytest.raises(InvalidArgumentError, match="once"):
        builder.psdb(session)
    with pytest.raises(InvalidArgumentError, match="once"):
        PipelineStateStreamBuilder().psdb(session).psdb(session)
    with pytest.raises(InvalidArgumentError, match="beside a session"):
        StateObjectBuilder(StateObjectType.EXECUTABLE).psdb(expected, Flags.CREATE_ONLY)


@pytest.mark.spec("EP-13")
def test_removal_from_a_stream_takes_only_that_type() -> None:
    stream = PipelineStateStream(vs=b"v", ps=b"p", rasterizer=RasterizerDesc()).with_psdb(Session())
    gone = stream.remove_subobjects_by_type(PipelineStateSubobjectType.PSDB)
    assert gone == PipelineStateStream(vs=b"v", ps=b"p", rasterizer=RasterizerDesc())
    # The rasterizer is of the first form, so nothing of the second is there to be removed.
    assert gone.remove_subobjects_by_type(PipelineStateSubobjectType.RASTERIZER2) == gone
    assert gone.remove_subobjects_by_type(PipelineStateSubobjectType.RASTERIZER).rasterizer is None
    builder = PipelineStateStreamBuilder(stream).remove_subobjects_by_type(PipelineStateSubobjectType.PSDB)
    assert builder.build() == gone
    with pytest.raises(InvalidArgumentError, match="31 is no D3D12_PIPELINE_STATE_SUBOBJECT_TYPE"):
        stream.remove_subobjects_by_type(31)  # type: ignore[arg-type]


def built() -> StateObjectBuilder:
    builder = StateObjectBuilder(StateObjectType.EXECUTABLE)
    mask = builder.add(SampleMask(1))
    local = builder.add(LocalRootSignature(b"local"))
    builder.associate(local, ["VSMain"])
    topology = builder.add(PrimitiveTopologyDesc(PrimitiveTopologyType.TRIANGLE))
    shared = builder.add(GlobalRootSignature(b"global"))
    builder.associate(shared, ["PSMain"])
    builder.generic_program("Program", ["VSMain", "PSMain"], [mask, topology])
    builder.psdb(Session())
    return builder


@pytest.mark.spec("EP-13")
def test_removal_from_a_state_object_takes_every_reference() -> None:
    desc = built().build()
    assert [type(subobject).__name__ for subobject in desc.subobjects] == [
        "SampleMask",
        "LocalRootSignature",
        "SubobjectToExportsAssociation",
        "PrimitiveTopologyDesc",
        "GlobalRootSignature",
        "SubobjectToExportsAssociation",
        "GenericProgram",
        "ShaderCacheSessionSubobjectDesc",
    ]
    assert desc.subobjects[5] == SubobjectToExportsAssociation(4, ("PSMain",))
    assert desc.subobjects[6] == GenericProgram("Program", ("VSMain", "PSMain"), (0, 3))

    without_local = desc.remove_subobjects_by_type(StateSubobjectType.LOCAL_ROOT_SIGNATURE)
    assert without_local.subobjects[:5] == (
        SampleMask(1),
        PrimitiveTopologyDesc(PrimitiveTopologyType.TRIANGLE),
        GlobalRootSignature(b"global"),
        SubobjectToExportsAssociation(2, ("PSMain",)),
        GenericProgram("Program", ("VSMain", "PSMain"), (0, 1)),
    )
    without_mask = without_local.remove_subobjects_by_type(StateSubobjectType.SAMPLE_MASK)
    assert without_mask.of(GenericProgram) == (GenericProgram("Program", ("VSMain", "PSMain"), (0,)),)
    assert without_mask.of(SubobjectToExportsAssociation) == (SubobjectToExportsAssociation(1, ("PSMain",)),)
    assert without_mask.remove_subobjects_by_type(StateSubobjectType.PSDB).psdb is None


@pytest.mark.spec("EP-13")
@pytest.mark.parametrize("type_", list(StateSubobjectType))
def test_builder_and_desc_remove_the_same(type_: StateSubobjectType) -> None:
    session = Session()
    builder = built().remove_subobjects_by_type(StateSubobjectType.PSDB)
    builder.psdb(session)
    desc = builder.build()
    removed = builder.remove_subobjects_by_type(type_).build()
    assert removed == desc.remove_subobjects_by_type(type_)
    assert all(subobject.subobject_type != type_ for subobject in removed.subobjects)
    validate(removed)


@pytest.mark.spec("EP-13")
def test_what_was_removed_can_no_longer_be_referred_to() -> None:
    builder = StateObjectBuilder(StateObjectType.EXECUTABLE)
    reference = builder.add(RasterizerDesc2())
    builder.remove_subobjects_by_type(StateSubobjectType.RASTERIZER)
    with pytest.raises(InvalidArgumentError, match="was removed"):
        builder.generic_program("Program", ["VSMain"], [reference])
    with pytest.raises(InvalidArgumentError, match="44 is no D3D12_STATE_SUBOBJECT_TYPE"):
        builder.remove_subobjects_by_type(44)  # type: ignore[arg-type]
