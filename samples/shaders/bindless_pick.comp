#version 460
#extension GL_EXT_nonuniform_qualifier : require
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) uniform sampler2D textures[];
layout(set = 1, binding = 0, std430) readonly buffer Requests { uvec4 requests[]; };
layout(set = 1, binding = 1, std430) writeonly buffer Results { vec4 results[]; };

void main() {
    uvec4 r = requests[gl_GlobalInvocationID.x];
    results[gl_GlobalInvocationID.x] = textureLod(textures[nonuniformEXT(r.x)], unpackHalf2x16(r.y), uintBitsToFloat(r.z));
}
