#version 460
layout(constant_id = 0) const int ITERATIONS = 256;
layout(location = 0) in vec2 inUv;
layout(push_constant) uniform Push { dvec2 centre; double zoom; } push;
layout(location = 0) out vec4 outColour;

void main() {
    dvec2 c = push.centre + dvec2(inUv - 0.5) * push.zoom;
    dvec2 z = dvec2(0.0);
    int i = 0;
    for (; i < ITERATIONS && dot(z, z) < 4.0; i++) z = dvec2(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
    outColour = vec4(vec3(float(i) / float(ITERATIONS)), 1.0);
}
