#version 460
layout(local_size_x = 16, local_size_y = 16) in;
layout(set = 0, binding = 0, rgba16f) uniform readonly image2D scene;
layout(set = 0, binding = 1, std430) buffer Histogram { uint histogram[256]; };
shared uint bins[256];

void main() {
    bins[gl_LocalInvocationIndex] = 0u;
    barrier();
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (all(lessThan(at, imageSize(scene)))) {
        float l = dot(imageLoad(scene, at).rgb, vec3(0.2126, 0.7152, 0.0722));
        uint bin = l < 0.001 ? 0u : uint(clamp((log2(l) + 10.0) / 20.0, 0.0, 1.0) * 254.0 + 1.0);
        atomicAdd(bins[bin], 1u);
    }
    barrier();
    if (bins[gl_LocalInvocationIndex] > 0u) atomicAdd(histogram[gl_LocalInvocationIndex], bins[gl_LocalInvocationIndex]);
}
