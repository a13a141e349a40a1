#version 460
layout(location = 0) in vec2 inPatch;
layout(location = 1) in uvec2 inTile;
layout(location = 0) out vec2 outPatch;

void main() {
    outPatch = inPatch + vec2(inTile);
    gl_Position = vec4(outPatch.x, 0.0, outPatch.y, 1.0);
}
