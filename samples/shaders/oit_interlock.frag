#version 460
#extension GL_ARB_fragment_shader_interlock : require
layout(pixel_interlock_ordered, early_fragment_tests) in;
layout(location = 3) in vec2 inUv;
layout(location = 4) in vec4 inColour;
layout(set = 1, binding = 1) uniform sampler2D albedoMap;
layout(set = 1, binding = 6, rg32ui) uniform coherent uimage2DArray layers;

void main() {
    vec4 c = texture(albedoMap, inUv) * inColour;
    uvec2 fragment = uvec2(packUnorm4x8(c), floatBitsToUint(gl_FragCoord.z));
    ivec2 at = ivec2(gl_FragCoord.xy);
    beginInvocationInterlockARB();
    for (int i = 0; i < 4; i++) {
        uvec2 old = imageLoad(layers, ivec3(at, i)).rg;
        if (fragment.y < old.y) {
            imageStore(layers, ivec3(at, i), fragment.xyxx);
            fragment = old;
        }
    }
    endInvocationInterlockARB();
}
