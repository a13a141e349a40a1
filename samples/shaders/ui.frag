#version 460
layout(constant_id = 0) const bool DISTANCE_FIELD = false;
layout(constant_id = 1) const float OUTLINE = 0.0;
layout(location = 0) in vec2 inUv;
layout(location = 1) in vec4 inColour;
layout(set = 0, binding = 0) uniform sampler2D atlas;
layout(location = 0) out vec4 outColour;

void main() {
    vec4 texel = texture(atlas, inUv);
    if (DISTANCE_FIELD) {
        float width = fwidth(texel.r);
        float fill = smoothstep(0.5 - width, 0.5 + width, texel.r);
        float edge = smoothstep(0.5 - OUTLINE - width, 0.5 - OUTLINE + width, texel.r);
        outColour = vec4(inColour.rgb * fill, inColour.a * max(fill, edge));
    } else {
        outColour = texel * inColour;
    }
}
