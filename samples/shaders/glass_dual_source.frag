#version 460
layout(location = 3) in vec2 inUv;
layout(location = 4) in vec4 inColour;
layout(set = 1, binding = 1) uniform sampler2D albedoMap;
layout(location = 0, index = 0) out vec4 outColour;
layout(location = 0, index = 1) out vec4 outTransmission;

void main() {
    vec4 c = texture(albedoMap, inUv) * inColour;
    outColour = vec4(c.rgb * c.a, c.a);
    outTransmission = vec4(mix(vec3(1.0), c.rgb, c.a), 1.0);
}
