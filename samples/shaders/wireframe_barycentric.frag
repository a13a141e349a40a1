#version 460
#extension GL_EXT_fragment_shader_barycentric : require
layout(location = 4) in vec4 inColour;
layout(location = 0) out vec4 outColour;

void main() {
    vec3 w = fwidth(gl_BaryCoordEXT);
    vec3 s = smoothstep(vec3(0.0), w * 1.5, gl_BaryCoordEXT);
    outColour = mix(vec4(1.0), inColour, min(s.x, min(s.y, s.z)));
}
