"""Bodies of Fossilize entries as typed descriptions, and back."""

from __future__ import annotations

import base64
import json
import struct
import time
from pathlib import Path
from typing import Any

import pytest
from fossilize_coverage import Coverage
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structure_strategies import FLOATS, described

from shaderkiln.databases.fossilize import FossilizeArchive
from shaderkiln.errors import DamagedInputError, InvalidArgumentError, ShaderkilnError
from shaderkiln.formats.fossilize import Tag, spirv_to_varint
from shaderkiln.formats.fossilize_json import (
    FEATURE_MEMBERS,
    GROUPS,
    MAX_BODY_SIZE,
    MAX_NESTING,
    UNKNOWN_MEMBERS,
    ApplicationInfo,
    ApplicationLink,
    FeatureStructure,
    codec,
    float_text,
    parse_body,
    parse_module_head,
    string_text,
    write_body,
)
from shaderkiln.vulkan_registry import structures as s
from shaderkiln.vulkan_registry._members import MEMBERS
from shaderkiln.vulkan_registry.handles import UnknownStructure

CAPTURES = Path(__file__).resolve().parents[3] / "shared" / "data" / "captures"
MANY = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
FEW = settings(MANY, max_examples=12)
NAME = "00000000000000ab"

BODIES: dict[Tag, str] = {
    Tag.SAMPLER: (
        '{"flags":0,"minFilter":1,"magFilter":0,"maxAnisotropy":1.5,"compareOp":7,"anisotropyEnable":0,"mipmapMode":1,'
        '"addressModeU":2,"addressModeV":3,"addressModeW":4,"borderColor":5,"unnormalizedCoordinates":0,"compareEnable":1,'
        '"mipLodBias":-0.25,"minLod":0.0,"maxLod":1000.0,"pNext":[{"sType":1000130001,"reductionMode":1},'
        '{"sType":1000287000,"customBorderColor":[1,2,3,4294967295],"format":37},{"sType":1000156000,"format":1000156003,'
        '"ycbcrModel":2,"ycbcrRange":1,"components":[0,1,2,3],"xChromaOffset":1,"yChromaOffset":0,"chromaFilter":1,'
        '"forceExplicitReconstruction":0},{"sType":1000411001,"srgb":1,"components":{"r":1,"g":2,"b":3,"a":4}}]}'
    ),
    Tag.DESCRIPTOR_SET_LAYOUT: (
        '{"flags":2,"bindings":[{"descriptorType":1,"descriptorCount":2,"stageFlags":16,"binding":3,'
        '"immutableSamplers":["00000000000000aa","00000000000000bb"]}],"pNext":[{"sType":1000161000,"bindingFlags":[5]},'
        '{"sType":1000351002,"mutableDescriptorTypeLists":[[2,3],[]]}]}'
    ),
    Tag.PIPELINE_LAYOUT: (
        '{"flags":0,"pushConstantRanges":[{"stageFlags":17,"size":12,"offset":4}],'
        '"setLayouts":["00000000000000aa","0000000000000000"]}'
    ),
    Tag.RENDER_PASS: (
        '{"flags":0,"dependencies":[{"dependencyFlags":1,"dstAccessMask":2,"srcAccessMask":3,"dstStageMask":4,"srcStageMask":5,'
        '"dstSubpass":0,"srcSubpass":4294967295}],"attachments":[{"flags":0,"format":44,"finalLayout":2,"initialLayout":0,'
        '"loadOp":1,"storeOp":0,"samples":4,"stencilLoadOp":2,"stencilStoreOp":1}],"subpasses":[{"flags":0,'
        '"pipelineBindPoint":0,"preserveAttachments":[3],"inputAttachments":[{"attachment":1,"layout":5}],'
        '"colorAttachments":[{"attachment":0,"layout":2}],"resolveAttachments":[{"attachment":2,"layout":2}],'
        '"depthStencilAttachment":{"attachment":4294967295,"layout":3}}],"pNext":[{"sType":1000053000,"viewMasks":[3],'
        '"viewOffsets":[-1],"correlationMasks":[3]},{"sType":1000117001,"aspectReferences":[{"subpass":0,'
        '"inputAttachmentIndex":0,"aspectMask":2}]}]}'
    ),
    Tag.COMPUTE_PIPELINE: (
        '{"flags":0,"layout":"00000000000000aa","basePipelineHandle":"0000000000000000","basePipelineIndex":-1,'
        '"stage":{"flags":1,"stage":32,"module":"00000000000000bb","name":"main","specializationInfo":{"dataSize":5,'
        '"data":"AQIDBAU=","mapEntries":[{"offset":0,"size":4,"constantID":7}]},"pNext":[{"sType":1000225001,'
        '"requiredSubgroupSize":32}]},"pNext":[{"sType":1000470005,"flags":1099511627776}]}'
    ),
    Tag.RAYTRACING_PIPELINE: (
        '{"flags":0,"layout":"00000000000000aa","basePipelineHandle":"00000000000000cc","basePipelineIndex":-1,'
        '"maxPipelineRayRecursionDepth":2,"dynamicState":{"flags":0,"dynamicState":[1000347000]},'
        '"stages":[{"flags":0,"name":"ray","module":"00000000000000bb","stage":256}],'
        '"libraryInterface":{"maxPipelineRayPayloadSize":16,"maxPipelineRayHitAttributeSize":8},'
        '"libraryInfo":{"libraries":["00000000000000dd"]},"groups":[{"anyHitShader":4294967295,'
        '"intersectionShader":4294967295,"generalShader":0,"closestHitShader":4294967295,"type":0}]}'
    ),
    Tag.GRAPHICS_PIPELINE: (
        '{"flags":2048,"basePipelineHandle":"0000000000000000","basePipelineIndex":0,"layout":"00000000000000aa",'
        '"renderPass":"0000000000000000","subpass":0,"tessellationState":{"flags":0,"patchControlPoints":3,"pNext":'
        '[{"sType":1000117003,"domainOrigin":1}]},"dynamicState":{"flags":0,"dynamicState":[0,1]},"multisampleState":{"flags":0,'
        '"rasterizationSamples":64,"sampleShadingEnable":1,"minSampleShading":0.5,"alphaToOneEnable":0,'
        '"alphaToCoverageEnable":1,"sampleMask":[1,2],"pNext":[{"sType":1000143002,"sampleLocationsEnable":1,'
        '"sampleLocationsInfo":{"sType":1000143000,"sampleLocationsPerPixel":4,"sampleLocationGridSize":{"width":1,"height":2},'
        '"sampleLocations":[{"x":0.5,"y":0.25}]}}]},"vertexInputState":{"flags":0,"attributes":[{"location":0,"binding":1,'
        '"offset":8,"format":103}],"bindings":[{"binding":1,"stride":16,"inputRate":1}],"pNext":[{"sType":1000190001,'
        '"vertexBindingDivisorCount":1,"vertexBindingDivisors":[{"binding":1,"divisor":2}]}]},"rasterizationState":{"flags":0,'
        '"depthBiasConstantFactor":0.10000000149011612,"depthBiasSlopeFactor":1e30,"depthBiasClamp":1.0e-7,"depthBiasEnable":1,'
        '"depthClampEnable":0,"polygonMode":0,"rasterizerDiscardEnable":0,"frontFace":1,"lineWidth":1.0,"cullMode":2,"pNext":'
        '[{"sType":1000102001,"flags":0,"depthClipEnable":1}]},"inputAssemblyState":{"flags":0,"topology":10,'
        '"primitiveRestartEnable":0},"colorBlendState":{"flags":0,"logicOp":3,"logicOpEnable":0,'
        '"blendConstants":[0.0,0.5,1.0,-0.0],"attachments":[{"dstAlphaBlendFactor":1,"srcAlphaBlendFactor":2,'
        '"dstColorBlendFactor":3,"srcColorBlendFactor":4,"colorWriteMask":15,"alphaBlendOp":0,"colorBlendOp":1,'
        '"blendEnable":1}],"pNext":[{"sType":1000381001,"attachmentCount":1,"colorWriteEnables":[1]}]},'
        '"viewportState":{"flags":0,"viewportCount":1,"scissorCount":1,"viewports":[{"x":0.0,"y":1.0,"width":640.0,'
        '"height":480.0,"minDepth":0.0,"maxDepth":1.0}],"scissors":[{"x":-1,"y":0,"width":640,"height":480}]},'
        '"depthStencilState":{"flags":0,"stencilTestEnable":1,"maxDepthBounds":1.0,"minDepthBounds":0.0,'
        '"depthBoundsTestEnable":0,"depthWriteEnable":1,"depthTestEnable":1,"depthCompareOp":4,"front":{"compareOp":1,'
        '"writeMask":2,"reference":3,"compareMask":4,"passOp":5,"failOp":6,"depthFailOp":7},"back":{"compareOp":7,'
        '"writeMask":6,"reference":5,"compareMask":4,"passOp":3,"failOp":2,"depthFailOp":1}},"stages":[{"flags":0,'
        '"name":"ps \\"x\\"","module":"00000000000000bb","stage":16}],"pNext":[{"libraries":["00000000000000dd"],'
        '"sType":1000290000},{"sType":1000320002,"flags":4},{"sType":1000044002,"depthAttachmentFormat":126,'
        '"stencilAttachmentFormat":0,"viewMask":1,"colorAttachmentFormats":[44,37]},{"sType":1000226001,'
        '"fragmentSize":{"width":2,"height":1},"combinerOps":[1,2]}]}'
    ),
}
"""Written by hand from the format's rules, one for each kind."""

RENDER_PASS_2 = (
    '{"version":6,"renderPasses2":{"00000000000000ab":{"flags":0,"correlatedViewMasks":[1],"dependencies":[{"dependencyFlags":0,'
    '"dstAccessMask":1,"srcAccessMask":2,"dstStageMask":3,"srcStageMask":4,"dstSubpass":0,"srcSubpass":0,"viewOffset":-2,"pNext":'
    '[{"sType":1000314000,"srcStageMask":4294967296,"srcAccessMask":1,"dstStageMask":2,"dstAccessMask":3}]}],"attachments":'
    '[{"flags":0,"format":130,"finalLayout":2,"initialLayout":0,"loadOp":1,"storeOp":0,"samples":1,"stencilLoadOp":2,'
    '"stencilStoreOp":1,"pNext":[{"sType":1000241002,"stencilInitialLayout":0,"stencilFinalLayout":3}]}],"subpasses":[{"flags":0,'
    '"pipelineBindPoint":0,"viewMask":3,"colorAttachments":[{"attachment":0,"layout":2,"aspectMask":1,"pNext":'
    '[{"sType":1000241001,"stencilLayout":5}]}],"pNext":[{"sType":1000199001,"depthResolveMode":1,"stencilResolveMode":2,'
    '"depthStencilResolveAttachment":{"attachment":1,"layout":3,"aspectMask":2}},{"sType":1000226000,'
    '"shadingRateAttachmentTexelSize":{"width":8,"height":16},"fragmentShadingRateAttachment":{"attachment":2,"layout":4,'
    '"aspectMask":1}}]}]}}}'
)


def body(tag: Tag, text: str) -> bytes:
    return f'{{"version":6,"{GROUPS[tag][0][0]}":{{"{NAME}":{text}}}}}'.encode()


def written_by_hand() -> list[tuple[Tag, bytes]]:
    bodies = [(tag, body(tag, text)) for tag, text in BODIES.items()]
    return [*bodies, (Tag.RENDER_PASS, RENDER_PASS_2.encode())]


@pytest.mark.parametrize(("tag", "payload"), written_by_hand(), ids=lambda value: value.name if isinstance(value, Tag) else "")
def test_bodies_survive_a_round_trip_and_nothing_in_them_is_unknown(tag: Tag, payload: bytes) -> None:
    handle, structure = parse_body(tag, payload)
    assert handle == 0xAB
    assert write_body(tag, handle, structure) == payload.replace(b"1.0e-7", b"1.0000000116860974e-7").replace(
        b"1e30", b"1.0000000150474662e30"
    )
    coverage = Coverage()
    coverage.add(structure)
    assert coverage.complete


def test_values_reach_their_fields() -> None:
    _, pipeline = parse_body(Tag.GRAPHICS_PIPELINE, body(Tag.GRAPHICS_PIPELINE, BODIES[Tag.GRAPHICS_PIPELINE]))
    assert isinstance(pipeline, s.GraphicsPipelineCreateInfo)
    assert pipeline.layout == s.PipelineLayoutHandle(0xAA) and pipeline.render_pass is None
    assert pipeline.vertex_input_state and pipeline.vertex_input_state.vertex_attribute_descriptions == (
        s.VertexInputAttributeDescription(location=0, binding=1, format=103, offset=8),
    )
    assert pipeline.viewport_state == s.PipelineViewportStateCreateInfo(
        viewport_count=0,
        viewports=(s.Viewport(0.0, 1.0, 640.0, 480.0, 0.0, 1.0),),
        scissor_count=0,
        scissors=(s.Rect2D(s.Offset2D(-1, 0), s.Extent2D(640, 480)),),
    )
    assert pipeline.depth_stencil_state and pipeline.depth_stencil_state.front == s.StencilOpState(
        fail_op=6, pass_op=5, depth_fail_op=7, compare_op=1, compare_mask=4, write_mask=2, reference=3
    )
    assert pipeline.dynamic_state == s.PipelineDynamicStateCreateInfo(dynamic_states=(0, 1))
    assert pipeline.stages and pipeline.stages[0].name == 'ps "x"'
    assert pipeline.next == (
        s.PipelineLibraryCreateInfoKHR((s.PipelineHandle(0xDD),)),
        s.GraphicsPipelineLibraryCreateInfoEXT(4),
        s.PipelineRenderingCreateInfo(1, (44, 37), 126, 0),
        s.PipelineFragmentShadingRateStateCreateInfoKHR(s.Extent2D(2, 1), (1, 2)),
    )
    _, compute = parse_body(Tag.COMPUTE_PIPELINE, body(Tag.COMPUTE_PIPELINE, BODIES[Tag.COMPUTE_PIPELINE]))
    assert isinstance(compute, s.ComputePipelineCreateInfo)
    assert compute.stage.specialization_info == s.SpecializationInfo((s.SpecializationMapEntry(7, 0, 4),), b"\1\2\3\4\5")
    assert compute.next == (s.PipelineCreateFlags2CreateInfo(1 << 40),)
    assert compute.base_pipeline_index == -1


@pytest.mark.spec("AL-02")
@pytest.mark.parametrize("name", ["mpv", "pygfx", "taichi", "vkcube", "wgpu"])
def test_every_entry_of_the_captures_is_understood_and_written_back_the_same(name: str) -> None:
    path = CAPTURES / f"{name}.foz"
    if not path.exists():
        pytest.skip("the captures of real programs are not here")
    coverage = Coverage()
    with FossilizeArchive.open(path, index=False) as archive:
        for tag in Tag:
            for hash in archive.hashes(tag):
                payload = archive.read(tag, hash)
                handle, structure = parse_body(tag, payload)
                assert handle in (hash, 0)
                assert write_body(tag, handle, structure) == payload
                coverage.add(structure)
    assert coverage.complete
    assert coverage.known


# Properties


@pytest.mark.spec("AL-02")
@pytest.mark.parametrize("tag", sorted(GROUPS))
@MANY
@given(data=st.data())
def test_any_object_survives_a_round_trip(tag: Tag, data: st.DataObject) -> None:
    cls = data.draw(st.sampled_from([cls for _group, cls in GROUPS[tag]]))
    structure = data.draw(described(cls, 0 if cls is s.ShaderModuleCreateInfo else 2))
    if cls is s.PipelineLayoutCreateInfo and structure.next:
        return
    handle = data.draw(st.integers(0, 2**64 - 1))
    payload = write_body(tag, handle, structure)
    again = parse_body(tag, payload)
    assert again == (handle, structure)
    assert write_body(tag, *again) == payload


@pytest.mark.parametrize("name", sorted(MEMBERS))
@FEW
@given(data=st.data())
def test_every_described_structure_survives_a_round_trip_through_its_codec(name: str, data: st.DataObject) -> None:
    from shaderkiln.formats.fossilize_json import _Context

    structure = data.draw(described(getattr(s, name), 1))
    text = codec(type(structure)).write(structure, {})
    context = _Context()
    assert codec(type(structure)).read(json.loads(text), context) == structure
    assert context.unknown is None


@given(FLOATS)
def test_numbers_are_written_so_that_they_are_read_the_same(number: float) -> None:
    text = float_text(number)
    assert struct.pack("<f", float(text)) == struct.pack("<f", number)
    assert json.loads(text) == number


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.1, "0.1"),
        (1e-5, "0.00001"),
        (1.5e-6, "0.0000015"),
        (1e-7, "1e-7"),
        (-1.25e-9, "-1.25e-9"),
        (1e16, "10000000000000000.0"),
        (1e20, "100000000000000000000.0"),
        (1e21, "1e21"),
        (1.5e300, "1.5e300"),
        (123456789012345680000.0, "123456789012345680000.0"),
    ],
)
def test_numbers_have_the_form_of_the_recorder(number: float, text: str) -> None:
    assert float_text(number) == text


def test_numbers_that_json_cannot_hold_are_refused() -> None:
    for number in (float("nan"), float("inf")):
        with pytest.raises(InvalidArgumentError):
            write_body(Tag.SAMPLER, 1, s.SamplerCreateInfo(max_lod=number))


def test_text_has_the_form_of_the_recorder() -> None:
    assert string_text('a"\\/\n\x01\x1f\x7fé') == '"a\\"\\\\/\\n\\u0001\\u001F\x7fé"'


def test_numbers_are_rounded_to_single_precision() -> None:
    text = BODIES[Tag.SAMPLER].replace('"maxAnisotropy":1.5', '"maxAnisotropy":0.1')
    _, sampler = parse_body(Tag.SAMPLER, body(Tag.SAMPLER, text))
    assert isinstance(sampler, s.SamplerCreateInfo) and sampler.max_anisotropy == 0.10000000149011612


# What is not known


def test_unknown_structures_are_kept_as_they_are() -> None:
    link = '{"sType":1999000001,"x":[1,{"y":"é\\n","z":1e-9}],"w":null}'
    text = BODIES[Tag.COMPUTE_PIPELINE].replace('"pNext":[{"sType":1000470005', f'"pNext":[{link},{{"sType":1000470005')
    payload = body(Tag.COMPUTE_PIPELINE, text)
    handle, pipeline = parse_body(Tag.COMPUTE_PIPELINE, payload)
    assert isinstance(pipeline, s.ComputePipelineCreateInfo)
    assert pipeline.next[0] == UnknownStructure(1999000001, link)
    assert write_body(Tag.COMPUTE_PIPELINE, handle, pipeline) == payload
    coverage = Coverage()
    coverage.add(pipeline)
    assert not coverage.complete and coverage.unknown == {1999000001: 1} and not coverage.unknown_members


def test_a_structure_that_the_registry_does_not_allow_there_is_unknown() -> None:
    link = '{"sType":1000225001,"requiredSubgroupSize":32}'
    text = BODIES[Tag.SAMPLER].replace('"pNext":[', f'"pNext":[{link},')
    _, sampler = parse_body(Tag.SAMPLER, body(Tag.SAMPLER, text))
    assert isinstance(sampler, s.SamplerCreateInfo) and sampler.next[0] == UnknownStructure(1000225001, link)


@pytest.mark.parametrize(
    "link",
    [
        '{"sType":1000381001,"attachmentCount":3}',
        '{"sType":1000232001,"colorAttachmentCount":2}',
        '{"sType":1000099001,"flags":0,"discardRectangleMode":1,"discardRectangleCount":2}',
    ],
)
def test_a_count_without_its_array_is_kept(link: str) -> None:
    owner = Tag.GRAPHICS_PIPELINE
    if "1000381001" in link:
        text = f'{{"colorBlendState":{{"pNext":[{link}]}}}}'
    else:
        text = f'{{"pNext":[{link}]}}'
    handle, pipeline = parse_body(owner, body(owner, text))
    assert link.encode() in write_body(owner, handle, pipeline)
    assert isinstance(pipeline, s.GraphicsPipelineCreateInfo)
    chain = pipeline.color_blend_state.next if pipeline.color_blend_state else pipeline.next
    assert chain == (UnknownStructure(int(link[9:19]), link),)


def test_unknown_members_are_kept_and_counted() -> None:
    text = BODIES[Tag.GRAPHICS_PIPELINE]
    text = text.replace('"compareOp":1,"writeMask":2', '"novel":[1],"compareOp":1,"writeMask":2')
    text = text.replace('"colorWriteMask":15', '"colorWriteMask":15,"fresh":{"a":1}')
    text = text.replace('"topology":10', '"topology":10,"more":"x"')
    text = text.replace('"width":640,"height":480}]', '"width":640,"height":480,"depth":3}]')
    text = text.replace('{"flags":2048,', '{"flags":2048,"top":1,')
    handle, pipeline = parse_body(Tag.GRAPHICS_PIPELINE, body(Tag.GRAPHICS_PIPELINE, text))
    assert isinstance(pipeline, s.GraphicsPipelineCreateInfo)
    assert pipeline.next[-1] == UnknownStructure(UNKNOWN_MEMBERS, '{"top":1}')
    written = write_body(Tag.GRAPHICS_PIPELINE, handle, pipeline)
    assert parse_body(Tag.GRAPHICS_PIPELINE, written) == (handle, pipeline)
    assert same_json(json.loads(written), json.loads(body(Tag.GRAPHICS_PIPELINE, text)))
    coverage = Coverage()
    coverage.add(pipeline)
    assert coverage.unknown_members == {
        "VkPipelineDepthStencilStateCreateInfo.front.novel": 1,
        "VkPipelineColorBlendStateCreateInfo.attachments.fresh.a": 1,
        "VkPipelineInputAssemblyStateCreateInfo.more": 1,
        "VkPipelineViewportStateCreateInfo.scissors.depth": 1,
        "VkGraphicsPipelineCreateInfo.top": 1,
    }


def same_json(one: Any, other: Any) -> bool:
    """Equal but for the rounding of numbers."""
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same_json, one, other))
    return one == pytest.approx(other, rel=1e-6, abs=0) if isinstance(one, float) else one == other


@MANY
@given(data=st.data())
def test_unknown_members_anywhere_are_never_lost(data: st.DataObject) -> None:
    tag, payload = data.draw(st.sampled_from(written_by_hand()))
    document = json.loads(payload)
    objects: list[dict[str, Any]] = []

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            objects.append(value)
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            collect(item)

    collect(next(iter(next(v for k, v in document.items() if k != "version").values())))
    for target in data.draw(st.lists(st.sampled_from(objects), min_size=1, max_size=4)):
        target[data.draw(st.sampled_from(("n1", "n2")))] = data.draw(st.integers(0, 9) | st.just({"q": [1]}))
    handle, structure = parse_body(tag, json.dumps(document).encode())
    written = write_body(tag, handle, structure)
    assert same_json(json.loads(written), document)
    assert parse_body(tag, written) == (handle, structure)


def test_empty_and_missing_arrays_are_the_same_description() -> None:
    one = parse_body(Tag.RENDER_PASS, body(Tag.RENDER_PASS, '{"flags":0,"attachments":[],"subpasses":[],"pNext":[]}'))
    assert one == parse_body(Tag.RENDER_PASS, body(Tag.RENDER_PASS, '{"flags":0,"subpasses":[]}'))


def test_dynamic_attachments_are_written_as_blank_ones() -> None:
    blend = s.PipelineColorBlendStateCreateInfo(attachment_count=2)
    payload = write_body(Tag.GRAPHICS_PIPELINE, 1, s.GraphicsPipelineCreateInfo(color_blend_state=blend))
    attachments = json.loads(payload)["graphicsPipelines"][f"{1:016x}"]["colorBlendState"]["attachments"]
    assert len(attachments) == 2 and set(attachments[0].values()) == {0}
    assert parse_body(Tag.GRAPHICS_PIPELINE, payload)[1] == s.GraphicsPipelineCreateInfo(color_blend_state=blend)


# Modules, applications, links


def test_shader_modules() -> None:
    code = struct.pack("<3I", 0x07230203, 300, 5)
    head = b'{"version":6,"shaderModules":{"00000000000000ab":{"varintOffset":0,"varintSize":7,"codeSize":12,"flags":0}}}'
    # 0x07230203 = 0b1110010_0011000_0001000_0000011 in groups of seven bits; 300 = 0b10_0101100.
    payload = head + b"\0" + bytes((0x83, 0x84, 0x8C, 0x39, 0xAC, 0x02, 0x05))
    assert parse_body(Tag.SHADER_MODULE, payload) == (0xAB, s.ShaderModuleCreateInfo(0, code))
    assert write_body(Tag.SHADER_MODULE, 0xAB, s.ShaderModuleCreateInfo(0, code)) == payload
    assert parse_module_head(payload).coded == spirv_to_varint(code)
    plain = body(Tag.SHADER_MODULE, f'{{"flags":0,"codeSize":12,"code":"{base64.b64encode(code).decode()}"}}')
    assert parse_body(Tag.SHADER_MODULE, plain) == (0xAB, s.ShaderModuleCreateInfo(0, code))
    for damaged in (payload[:-1], head, payload.replace(b'"codeSize":12', b'"codeSize":16'), payload[:-1] + b"\x85"):
        with pytest.raises(DamagedInputError):
            parse_body(Tag.SHADER_MODULE, damaged)
    novel = payload.replace(b'"flags":0', b'"flags":0,"novel":1')
    handle, module = parse_body(Tag.SHADER_MODULE, novel)
    assert write_body(Tag.SHADER_MODULE, handle, module) == novel


def test_application_information() -> None:
    payload = (
        b'{"version":6,"applicationInfo":{"applicationName":"game","applicationVersion":1,"engineVersion":2,"apiVersion":4206592},'
        b'"physicalDeviceFeatures":{"robustBufferAccess":1,"pNext":[{"sType":1000286000,"robustBufferAccess2":1,'
        b'"robustImageAccess2":0,"nullDescriptor":1},{"sType":1999000000,"x":1}]}}'
    )
    _, info = parse_body(Tag.APPLICATION_INFO, payload)
    assert info == ApplicationInfo(
        "game",
        None,
        1,
        2,
        4206592,
        1,
        (FeatureStructure(1000286000, (1, 0, 1)), UnknownStructure(1999000000, '{"sType":1999000000,"x":1}')),
    )
    assert write_body(Tag.APPLICATION_INFO, 0, info) == payload
    empty = b'{"version":6,"applicationInfo":{},"physicalDeviceFeatures":{}}'
    assert parse_body(Tag.APPLICATION_INFO, empty) == (0, ApplicationInfo())
    assert write_body(Tag.APPLICATION_INFO, 0, ApplicationInfo()) == empty
    latin = payload.replace(b'"game"', b'"g\xe4me"')
    _, named = parse_body(Tag.APPLICATION_INFO, latin)
    assert write_body(Tag.APPLICATION_INFO, 0, named) == latin


@pytest.mark.parametrize("s_type", sorted(FEATURE_MEMBERS))
def test_features_survive_a_round_trip(s_type: int) -> None:
    values = tuple(range(len(FEATURE_MEMBERS[s_type][1])))
    info = ApplicationInfo(None, "é", 0, 0, 0, 0, (FeatureStructure(s_type, values),))
    assert parse_body(Tag.APPLICATION_INFO, write_body(Tag.APPLICATION_INFO, 0, info)) == (0, info)


def test_links_and_bucket_information() -> None:
    payload = b'{"version":6,"link":{"application":"00000000000000aa","tag":6,"hash":"00000000000000bb"}}'
    _, link = parse_body(Tag.APPLICATION_BLOB_LINK, payload)
    assert link == ApplicationLink(0xAA, 6, 0xBB)
    assert write_body(Tag.APPLICATION_BLOB_LINK, 0, link) == payload
    assert write_body(Tag.BUCKET_INFO, 0, parse_body(Tag.BUCKET_INFO, b"\0anything")[1]) == b"\0anything"


def test_objects_of_another_tag_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="SamplerCreateInfo"):
        write_body(Tag.PIPELINE_LAYOUT, 1, s.SamplerCreateInfo())


# Damage


@pytest.mark.spec("AL-03")
@pytest.mark.parametrize(
    ("tag", "text", "where"),
    [
        (Tag.SAMPLER, '{"flags":-1}', "samplers 00000000000000ab.flags"),
        (Tag.SAMPLER, '{"flags":4294967296}', "flags: is no 32-bit number"),
        (Tag.SAMPLER, '{"flags":true}', "flags"),
        (Tag.SAMPLER, '{"maxLod":1e39}', "maxLod"),
        (Tag.SAMPLER, '{"maxLod":"1"}', "maxLod: is no number"),
        (Tag.SAMPLER, '{"pNext":{}}', "pNext: is no array"),
        (Tag.SAMPLER, '{"pNext":[{"x":1}]}', "pNext"),
        (Tag.SAMPLER, '{"pNext":[{"sType":-1}]}', "pNext"),
        (Tag.SAMPLER, "[]", "samplers 00000000000000ab: is no object"),
        (Tag.PIPELINE_LAYOUT, '{"setLayouts":["12"]}', "setLayouts: is no hash"),
        (Tag.PIPELINE_LAYOUT, '{"setLayouts":["000000000000_0aa"]}', "setLayouts: is no hash"),
        (Tag.DESCRIPTOR_SET_LAYOUT, '{"bindings":[{"descriptorCount":2,"immutableSamplers":[]}]}', "immutableSamplers"),
        (Tag.RENDER_PASS, '{"subpasses":[{"resolveAttachments":[{}]}]}', "resolveAttachments"),
        (Tag.COMPUTE_PIPELINE, '{"stage":{"name":"a\\u0000b"}}', "stage.name: is no text"),
        (Tag.COMPUTE_PIPELINE, '{"stage":{"specializationInfo":{"data":"AQI","dataSize":2}}}', "specializationInfo.data"),
        (Tag.COMPUTE_PIPELINE, '{"stage":{"specializationInfo":{"data":"AQI=","dataSize":3}}}', "dataSize"),
        (Tag.GRAPHICS_PIPELINE, '{"viewportState":{"viewportCount":2,"viewports":[{}]}}', "viewportState.viewportCount"),
        (Tag.GRAPHICS_PIPELINE, '{"multisampleState":{"rasterizationSamples":64,"sampleMask":[1]}}', "sampleMask"),
        (Tag.GRAPHICS_PIPELINE, '{"colorBlendState":{"blendConstants":[0.0]}}', "blendConstants"),
    ],
)
def test_damage_is_named(tag: Tag, text: str, where: str) -> None:
    with pytest.raises(DamagedInputError) as caught:
        parse_body(tag, body(tag, text))
    assert where in str(caught.value)


@pytest.mark.spec("AL-03")
@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b'{"version":6}',
        b'{"version":4,"samplers":{"00000000000000ab":{}}}',
        b'{"version":6,"samplers":{}}',
        b'{"version":6,"samplers":{"00000000000000ab":{},"00000000000000ac":{}}}',
        b'{"version":6,"setLayouts":{"00000000000000ab":{}}}',
        b'{"version":6,"samplers":{"00000000000000ab":{"pNext":[' + b"[" * 100_000,
        b'{"version":6,"samplers":{"00000000000000ab":{"x":' + b"[" * 900 + b"]" * 900 + b"}}}",
        b'{"version":6,"samplers":{"00000000000000ab":{"x":"' + b"x" * MAX_BODY_SIZE + b'"}}}',
        b'{"version":6,"samplers":{"00000000000000ab":{"flags":' + b"9" * 100_000 + b"}}}",
        b'\xff{"version":6}',
    ],
    ids=range(14),
)
def test_bodies_that_are_none_are_refused_quickly(payload: bytes) -> None:
    started = time.perf_counter()
    with pytest.raises(DamagedInputError):
        parse_body(Tag.SAMPLER, payload)
    assert time.perf_counter() - started < 60  # it ends; how fast is a matter of benchmarks


@pytest.mark.parametrize(("levels", "is_read"), [(MAX_NESTING, True), (MAX_NESTING + 1, False)])
def test_nesting_has_the_same_limit_in_every_interpreter(levels: int, is_read: bool) -> None:
    # Three objects stand around the value.
    value = "[" * (levels - 3) + "]" * (levels - 3)
    payload = f'{{"version":6,"samplers":{{"00000000000000ab":{{"x":{value},"y":"[{{"}}}}}}'.encode()
    if is_read:
        handle, structure = parse_body(Tag.SAMPLER, payload)
        assert parse_body(Tag.SAMPLER, write_body(Tag.SAMPLER, handle, structure)) == (handle, structure)
    else:
        with pytest.raises(DamagedInputError, match="too deeply"):
            parse_body(Tag.SAMPLER, payload)


def check_hostile(tag: Tag, payload: bytes) -> None:
    """Either the documented error or a description that can be written and read again."""
    try:
        handle, structure = parse_body(tag, payload)
    except DamagedInputError:
        return
    try:
        written = write_body(tag, handle, structure)
    except ShaderkilnError as error:
        raise AssertionError(f"read, but not written: {payload!r}") from error
    assert parse_body(tag, written) == (handle, structure)


@pytest.mark.spec("AL-03")
@pytest.mark.parametrize(("tag", "payload"), written_by_hand(), ids=lambda value: value.name if isinstance(value, Tag) else "")
def test_a_body_cut_off_anywhere_is_damaged(tag: Tag, payload: bytes) -> None:
    for length in range(0, len(payload), 7):
        with pytest.raises(DamagedInputError):
            parse_body(tag, payload[:length])


@pytest.mark.spec("AL-03")
@MANY
@given(data=st.data())
def test_altered_bodies_do_no_harm(data: st.DataObject) -> None:
    tag, payload = data.draw(st.sampled_from(written_by_hand()))
    altered = bytearray(payload)
    for position in data.draw(st.lists(st.integers(0, len(payload) - 1), min_size=1, max_size=3)):
        altered[position] = data.draw(st.sampled_from(b'0123456789"[]{},:-.e\\ tfn\0\xff') | st.integers(0, 255))
    check_hostile(tag, bytes(altered))


@pytest.mark.spec("AL-03")
@MANY
@given(data=st.data())
def test_bodies_with_wrong_values_do_no_harm(data: st.DataObject) -> None:
    tag, payload = data.draw(st.sampled_from(written_by_hand()))
    document = json.loads(payload)
    places: list[tuple[Any, Any]] = []

    def collect(value: Any) -> None:
        for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
            places.append((value, key))
            collect(value[key])

    collect(document)
    plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4)
    values = st.recursive(plain, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner))
    owner, key = data.draw(st.sampled_from(places))
    if data.draw(st.booleans()):
        owner[key] = data.draw(values)
    else:
        del owner[key]
    check_hostile(tag, json.dumps(document).encode())
