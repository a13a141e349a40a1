"""libvkd3d-shader by cffi in ABI mode. Only the translator's process imports this module.

The definitions are those of the public header ``vkd3d_shader.h`` that are the same in every version from 1.2 to 2.1.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

from cffi import FFI

from shaderkiln.shaders.messages import Done, TranslationRequest

SOURCE_DXBC, SOURCE_DXIL = 1, 4
"""vkd3d_shader_source_type"""

_TARGET_SPIRV = 1
_STRUCTURE_COMPILE, _STRUCTURE_INTERFACE, _STRUCTURE_DOMAIN, _STRUCTURE_SPIRV, _STRUCTURE_FEEDBACK = 0, 1, 3, 4, 5
_OPTION_STRIP_DEBUG, _OPTION_API_VERSION, _OPTION_TYPED_UAV, _OPTION_FEATURE = 1, 4, 5, 10
_LOG_WARNING = 2
_ENVIRONMENT_VULKAN_1_0, _ENVIRONMENT_VULKAN_1_1 = 2, 3
_FLAG_BUFFER, _FLAG_IMAGE = 1, 2
_FEATURE_INT64, _FEATURE_FLOAT64, _FEATURE_WAVE = 1, 2, 4
_EXTENSIONS = (
    # Option, vkd3d_shader_spirv_extension, first version that knows it.
    ("demote_to_helper_invocation", 1, (1, 2)),
    ("descriptor_indexing", 2, (1, 3)),
    ("stencil_export", 3, (1, 3)),
    ("viewport_index_layer", 4, (1, 11)),
    ("fragment_shader_interlock", 5, (1, 12)),
)
_API_VERSION = 19
"""VKD3D_SHADER_API_VERSION_1_19. From 2.0 on a caller must say how each width of float treats denormals; before, the driver may
choose, which is what the value ANY of those options says."""
_API_VERSIONS_FROM = (1, 3)
_PARAMETER_SAMPLE_COUNT, _PARAMETER_IMMEDIATE, _PARAMETER_UINT32 = 1, 1, 1

DEFINITIONS = """
struct vkd3d_shader_code { const void *code; size_t size; };
struct vkd3d_shader_compile_option { unsigned int name; unsigned int value; };
struct vkd3d_shader_descriptor_binding { unsigned int set, binding, count; };
struct vkd3d_shader_resource_binding {
    unsigned int type, register_space, register_index, shader_visibility, flags;
    struct vkd3d_shader_descriptor_binding binding;
};
struct vkd3d_shader_combined_resource_sampler {
    unsigned int resource_space, resource_index, sampler_space, sampler_index, shader_visibility, flags;
    struct vkd3d_shader_descriptor_binding binding;
};
struct vkd3d_shader_uav_counter_binding {
    unsigned int register_space, register_index, shader_visibility;
    struct vkd3d_shader_descriptor_binding binding;
    unsigned int offset;
};
struct vkd3d_shader_push_constant_buffer {
    unsigned int register_space, register_index, shader_visibility, offset, size;
};
struct vkd3d_shader_interface_info {
    unsigned int type; const void *next;
    const struct vkd3d_shader_resource_binding *bindings; unsigned int binding_count;
    const struct vkd3d_shader_push_constant_buffer *push_constant_buffers; unsigned int push_constant_buffer_count;
    const struct vkd3d_shader_combined_resource_sampler *combined_samplers; unsigned int combined_sampler_count;
    const struct vkd3d_shader_uav_counter_binding *uav_counters; unsigned int uav_counter_count;
};
struct vkd3d_shader_transform_feedback_element {
    unsigned int stream_index; const char *semantic_name; unsigned int semantic_index;
    uint8_t component_index, component_count, output_slot;
};
struct vkd3d_shader_transform_feedback_info {
    unsigned int type; const void *next;
    const struct vkd3d_shader_transform_feedback_element *elements; unsigned int element_count;
    const unsigned int *buffer_strides; unsigned int buffer_stride_count;
};
struct vkd3d_shader_compile_info {
    unsigned int type; const void *next;
    struct vkd3d_shader_code source; unsigned int source_type, target_type;
    const struct vkd3d_shader_compile_option *options; unsigned int option_count;
    unsigned int log_level; const char *source_name;
};
struct vkd3d_shader_parameter { unsigned int name, type, data_type, value; };
struct vkd3d_shader_spirv_target_info {
    unsigned int type; const void *next;
    const char *entry_point; unsigned int environment;
    const unsigned int *extensions; unsigned int extension_count;
    const struct vkd3d_shader_parameter *parameters; unsigned int parameter_count;
    bool dual_source_blending; const unsigned int *output_swizzles; unsigned int output_swizzle_count;
};
struct vkd3d_shader_spirv_domain_shader_target_info {
    unsigned int type; const void *next; unsigned int output_primitive, partitioning;
};
const char *vkd3d_shader_get_version(unsigned int *major, unsigned int *minor);
const unsigned int *vkd3d_shader_get_supported_source_types(unsigned int *count);
int vkd3d_shader_compile(const struct vkd3d_shader_compile_info *info, struct vkd3d_shader_code *out, char **messages);
void vkd3d_shader_free_messages(char *messages);
void vkd3d_shader_free_shader_code(struct vkd3d_shader_code *code);
"""

ffi: Any = FFI()
ffi.cdef(DEFINITIONS)


class Vkd3dShader:
    """The library, loaded into this process."""

    def __init__(self, path: str) -> None:
        """Raises OSError where it cannot be loaded."""
        self._library: Any = ffi.dlopen(path)
        major, minor = ffi.new("unsigned int *"), ffi.new("unsigned int *")
        text = self._library.vkd3d_shader_get_version(major, minor)
        self.version: tuple[int, int] = (major[0], minor[0])
        self.name: str = ffi.string(text).decode("utf-8", "replace")
        count = ffi.new("unsigned int *")
        types = self._library.vkd3d_shader_get_supported_source_types(count)
        self.sources: tuple[int, ...] = tuple(types[i] for i in range(count[0]))

    def translate(self, request: TranslationRequest) -> Done:
        """The SPIR-V as the library gives it, or its messages."""
        keep: list[Any] = []  # C memory lives as long as its Python object.
        source = ffi.from_buffer(request.code)
        info = ffi.new("struct vkd3d_shader_compile_info *")
        info.type = _STRUCTURE_COMPILE
        info.source.code, info.source.size = source, len(request.code)
        info.source_type = SOURCE_DXIL if request.is_dxil else SOURCE_DXBC
        info.target_type = _TARGET_SPIRV
        options = self._options(request)
        info.options, info.option_count = options, len(options)
        info.log_level = _LOG_WARNING
        target = self._target(request, keep)
        interface = self._interface(request, keep)
        info.next, interface.next = interface, target
        if request.interface.stream_output:
            feedback = self._feedback(request, keep)
            feedback.next, interface.next = target, feedback
        code, messages = ffi.new("struct vkd3d_shader_code *"), ffi.new("char **")
        started = perf_counter()
        result = self._library.vkd3d_shader_compile(info, code, messages)
        seconds = perf_counter() - started
        text = ffi.string(messages[0]).decode("utf-8", "replace") if messages[0] else ""
        self._library.vkd3d_shader_free_messages(messages[0])
        spirv = b""
        if result == 0:
            spirv = bytes(ffi.buffer(code.code, code.size))
            self._library.vkd3d_shader_free_shader_code(code)
        return Done(result, spirv, text.strip(), seconds)

    def _options(self, request: TranslationRequest) -> Any:
        wanted = request.options
        values = [(_OPTION_STRIP_DEBUG, 1)]
        if self.version >= _API_VERSIONS_FROM:
            # A library that is older than the number takes it for its own newest.
            values.append((_OPTION_API_VERSION, min(_API_VERSION, self.version[1] if self.version[0] == 1 else _API_VERSION)))
        if self.version >= (1, 5):
            values.append((_OPTION_TYPED_UAV, int(wanted.read_without_format)))
        if self.version >= (1, 11):
            features = (_FEATURE_INT64 if wanted.int64 else 0) | (_FEATURE_FLOAT64 if wanted.float64 else 0)
            if self.version >= (1, 12) and wanted.wave_operations:
                features |= _FEATURE_WAVE
            values.append((_OPTION_FEATURE, features))
        return ffi.new("struct vkd3d_shader_compile_option[]", values)

    def _target(self, request: TranslationRequest, keep: list[Any]) -> Any:
        wanted = request.options
        target = ffi.new("struct vkd3d_shader_spirv_target_info *")
        target.type = _STRUCTURE_SPIRV
        target.entry_point = _kept(keep, ffi.new("char[]", wanted.entry_point.encode()))
        target.environment = _ENVIRONMENT_VULKAN_1_1 if self.version >= (1, 12) else _ENVIRONMENT_VULKAN_1_0
        known = [number for option, number, first in _EXTENSIONS if getattr(wanted, option) and self.version >= first]
        target.extensions = _kept(keep, ffi.new("unsigned int[]", known))
        target.extension_count = len(known)
        parameter = (_PARAMETER_SAMPLE_COUNT, _PARAMETER_IMMEDIATE, _PARAMETER_UINT32, wanted.rasterizer_sample_count)
        target.parameters = _kept(keep, ffi.new("struct vkd3d_shader_parameter[]", [parameter]))
        target.parameter_count = 1
        target.dual_source_blending = wanted.dual_source_blending
        if wanted.tessellator_output:
            domain = _kept(keep, ffi.new("struct vkd3d_shader_spirv_domain_shader_target_info *"))
            domain.type = _STRUCTURE_DOMAIN
            domain.output_primitive, domain.partitioning = wanted.tessellator_output, wanted.tessellator_partitioning
            target.next = domain
        return _kept(keep, target)

    def _interface(self, request: TranslationRequest, keep: list[Any]) -> Any:
        given = request.interface
        interface = _kept(keep, ffi.new("struct vkd3d_shader_interface_info *"))
        interface.type = _STRUCTURE_INTERFACE
        # What another stage sees was left out by the caller, so everything is visible (0) here.
        bindings: list[Any] = [
            (b.type, b.space, b.register, 0, _FLAG_BUFFER if b.is_buffer else _FLAG_IMAGE, (b.set, b.binding, b.count))
            for b in given.bindings
        ]
        constants = [(p.space, p.register, 0, p.offset, p.size) for p in given.push_constants]
        samplers = [
            (c.resource_space, c.resource_register, c.sampler_space, c.sampler_register, 0,
             _FLAG_BUFFER if c.is_buffer else _FLAG_IMAGE, (c.set, c.binding, 1))
            for c in given.combined_samplers
        ]  # fmt: skip
        counters = [(c.space, c.register, 0, (c.set, c.binding, c.count), 0) for c in given.counters]
        interface.bindings, interface.binding_count = _array(keep, "resource_binding", bindings)
        interface.push_constant_buffers, interface.push_constant_buffer_count = _array(keep, "push_constant_buffer", constants)
        interface.combined_samplers, interface.combined_sampler_count = _array(keep, "combined_resource_sampler", samplers)
        interface.uav_counters, interface.uav_counter_count = _array(keep, "uav_counter_binding", counters)
        return interface

    def _feedback(self, request: TranslationRequest, keep: list[Any]) -> Any:
        given = request.interface
        feedback = _kept(keep, ffi.new("struct vkd3d_shader_transform_feedback_info *"))
        feedback.type = _STRUCTURE_FEEDBACK
        rows = []
        for e in given.stream_output:
            name = _kept(keep, ffi.new("char[]", e.semantic_name.encode())) if e.semantic_name else ffi.NULL
            rows.append((e.stream, name, e.semantic_index, e.first_component, e.component_count, e.slot))
        feedback.elements, feedback.element_count = _array(keep, "transform_feedback_element", rows)
        feedback.buffer_strides = _kept(keep, ffi.new("unsigned int[]", list(given.stream_output_strides)))
        feedback.buffer_stride_count = len(given.stream_output_strides)
        return feedback


def _kept(keep: list[Any], value: Any) -> Any:
    keep.append(value)
    return value


def _array(keep: list[Any], name: str, rows: list[Any]) -> tuple[Any, int]:
    return _kept(keep, ffi.new(f"struct vkd3d_shader_{name}[]", rows)), len(rows)
