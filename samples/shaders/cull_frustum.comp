#version 460
layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(local_size_x = 64) in;
layout(constant_id = 1) const bool OCCLUSION = false;
struct Draw { uint indexCount; uint instanceCount; uint firstIndex; int vertexOffset; uint firstInstance; };
struct Instance { vec4 sphere; uint mesh; uint material; uint lod; uint flags; };
layout(set = 0, binding = 0, std140) uniform View { mat4 viewProjection; vec4 planes[6]; vec2 pyramidSize; uint count; float nearPlane; };
layout(set = 0, binding = 1, std430) readonly buffer Instances { Instance instances[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Draws { Draw draws[]; };
layout(set = 0, binding = 3, std430) buffer Counter { uint drawCount; };
layout(set = 0, binding = 4) uniform sampler2D depthPyramid;

void main() {
    uint id = gl_GlobalInvocationID.x;
    if (id >= count) return;
    Instance instance = instances[id];
    bool visible = true;
    for (int i = 0; i < 6; i++) visible = visible && dot(planes[i].xyz, instance.sphere.xyz) + planes[i].w > -instance.sphere.w;
    if (OCCLUSION && visible) {
        vec4 c = viewProjection * vec4(instance.sphere.xyz, 1.0);
        vec2 uv = c.xy / c.w * 0.5 + 0.5;
        float size = instance.sphere.w / max(c.w, nearPlane) * max(pyramidSize.x, pyramidSize.y);
        visible = textureLod(depthPyramid, uv, ceil(log2(max(size, 1.0)))).r >= (c.z - instance.sphere.w) / c.w;
    }
    if (visible) draws[atomicAdd(drawCount, 1u)] = Draw(instance.mesh * 3u, 1u, instance.mesh * 64u, int(instance.lod), id);
}
