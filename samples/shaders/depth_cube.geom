#version 460
layout(triangles) in;
layout(triangle_strip, max_vertices = 18) out;
layout(set = 0, binding = 0, std140) uniform Faces { mat4 faceViewProjection[8]; };

void main() {
    for (int face = 0; face < 6; face++) {
        vec4 a = faceViewProjection[face] * gl_in[0].gl_Position;
        vec4 b = faceViewProjection[face] * gl_in[1].gl_Position;
        vec4 c = faceViewProjection[face] * gl_in[2].gl_Position;
        if (a.w < 0.0 && b.w < 0.0 && c.w < 0.0) continue;
        gl_Layer = face; gl_Position = a; EmitVertex();
        gl_Layer = face; gl_Position = b; EmitVertex();
        gl_Layer = face; gl_Position = c; EmitVertex();
        EndPrimitive();
    }
}
