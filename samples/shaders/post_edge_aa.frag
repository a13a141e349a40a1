#version 460
layout(constant_id = 0) const int SEARCH_STEPS = 8;
layout(location = 0) in vec2 inUv;
layout(set = 0, binding = 0) uniform sampler2D scene;
layout(push_constant) uniform Push { vec2 texel; float threshold; } push;
layout(location = 0) out vec4 outColour;

float luma(vec2 offset) {
    return textureLod(scene, inUv + offset * push.texel, 0.0).a;
}

void main() {
    float m = luma(vec2(0.0)), n = luma(vec2(0, -1)), s = luma(vec2(0, 1)), w = luma(vec2(-1, 0)), e = luma(vec2(1, 0));
    float high = max(m, max(max(n, s), max(w, e)));
    float low = min(m, min(min(n, s), min(w, e)));
    if (high - low < max(push.threshold, high * 0.125)) {
        outColour = textureLod(scene, inUv, 0.0);
        return;
    }
    float nw = luma(vec2(-1, -1)), ne = luma(vec2(1, -1)), sw = luma(vec2(-1, 1)), se = luma(vec2(1, 1));
    float horizontal = abs(nw + ne - 2.0 * n) + 2.0 * abs(w + e - 2.0 * m) + abs(sw + se - 2.0 * s);
    float vertical = abs(nw + sw - 2.0 * w) + 2.0 * abs(n + s - 2.0 * m) + abs(ne + se - 2.0 * e);
    bool isHorizontal = horizontal >= vertical;
    vec2 across = isHorizontal ? vec2(0, 1) : vec2(1, 0);
    vec2 along = across.yx;
    float a = isHorizontal ? n : w, b = isHorizontal ? s : e;
    float side = abs(a - m) >= abs(b - m) ? -1.0 : 1.0;
    float edge = 0.5 * (m + (side < 0.0 ? a : b));
    float gradient = max(abs(a - m), abs(b - m)) * 0.25;
    vec2 forward = across * side * 0.5, back = forward;
    bool doneForward = false, doneBack = false;
    for (int i = 1; i <= SEARCH_STEPS; i++) {
        float stride = i < 4 ? 1.0 : 2.0;
        if (!doneForward) { forward += along * stride; doneForward = abs(luma(forward) - edge) >= gradient; }
        if (!doneBack) { back -= along * stride; doneBack = abs(luma(back) - edge) >= gradient; }
        if (doneForward && doneBack) break;
    }
    float df = dot(abs(forward), along), db = dot(abs(back), along);
    float shift = 0.5 - min(df, db) / (df + db);
    outColour = textureLod(scene, inUv + across * side * shift * push.texel, 0.0);
}
