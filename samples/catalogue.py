"""The pipelines of the samples as tables: material by pass by state. ``assemble.py`` turns them into Vulkan descriptions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Constants: TypeAlias = dict[int, bool | int | float]


@dataclass(frozen=True, slots=True)
class Stage:
    """A shader file with its specialization constants; ``subgroup_size`` 0 leaves the size to the driver."""

    shader: str
    constants: Constants = field(default_factory=dict)
    subgroup_size: int = 0


@dataclass(frozen=True, slots=True)
class Graphics:
    """A graphics pipeline. Words are keys of the tables in ``assemble.py``; ``parts`` are pipeline library flags."""

    name: str
    stages: tuple[Stage, ...]
    target: str
    layout: str | None = None
    vertices: str = "none"
    topology: str = "triangles"
    restart: bool = False
    cull: str = "back"
    clockwise: bool = False
    polygon: str = "fill"
    depth: str = "less"
    stencil: str = "off"
    blends: tuple[str, ...] = ("opaque",)
    logic: str | None = None
    blend_constants: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    sample_mask: int | None = None
    sample_shading: float = 0.0
    alpha_to_coverage: bool = False
    depth_bias: tuple[float, float] | None = None
    depth_clamp: bool = False
    line_width: float = 1.0
    raster: tuple[str, ...] = ()
    viewports: int = 1
    patch_points: int = 0
    lower_left_domain: bool = False
    fixed_viewport: bool = False
    dynamic: tuple[str, ...] = ("VIEWPORT", "SCISSOR")
    shading_rate: tuple[int, int] | None = None
    parts: int = 0
    libraries: tuple[str, ...] = ()
    optimise_link: bool = False
    derivable: bool = False
    derived_from: str | None = None
    immutable: dict[tuple[int, int], str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Compute:
    """A compute pipeline; its layout comes from the shader's own declarations, with the immutable samplers named here."""

    name: str
    stage: Stage
    immutable: dict[tuple[int, int], str] = field(default_factory=dict)
    derivable: bool = False
    derived_from: str | None = None
    full_subgroups: bool = False


@dataclass(frozen=True, slots=True)
class RayTracing:
    """A ray-tracing pipeline: general stages first; each hit group names closest-hit, any-hit and intersection shaders by index."""

    name: str
    stages: tuple[Stage, ...]
    general: tuple[int, ...]
    hits: tuple[tuple[int | None, int | None, int | None], ...]
    recursion: int = 2
    library: bool = False
    libraries: tuple[str, ...] = ()
    layout_of: tuple[Stage, ...] = ()


# ---- materials

STANDARD, CLOTH, CLEAR_COAT, SUBSURFACE, ANISOTROPIC = range(5)


@dataclass(frozen=True, slots=True)
class Material:
    """The über-shader's permutation and the state that comes with a material."""

    shading: int = STANDARD
    normal_map: bool = True
    alpha_test: bool = False
    emissive: bool = False
    parallax: bool = False
    detail: bool = False
    fog: bool = False
    vertex: Stage = Stage("mesh.vert", {0: False, 1: False, 2: False})
    vertices: str = "mesh"
    cull: str = "back"
    blend: str = "opaque"

    def constants(self, shadow_taps: int, clustered: bool, lights: int) -> Constants:
        return {
            0: self.shading,
            1: self.normal_map,
            2: self.alpha_test,
            3: self.emissive,
            4: shadow_taps,
            5: clustered,
            6: lights,
            7: self.parallax,
            8: self.detail,
            9: self.fog,
        }


INSTANCED = Stage("mesh.vert", {0: True, 1: False, 2: False})
WINDY = Stage("mesh.vert", {0: True, 1: True, 2: True})
SKINNED = Stage("skinned.vert", {0: 4, 1: False})
DUAL_QUATERNION = Stage("skinned.vert", {0: 4, 1: True})
TWO_BONES = Stage("skinned.vert", {0: 2, 1: False})

MATERIALS = {
    "stone": Material(),
    "cobbles": Material(parallax=True, detail=True),
    "brushed-metal": Material(shading=ANISOTROPIC, vertices="mesh-streams"),
    "fabric": Material(shading=CLOTH, cull="none"),
    "car-paint": Material(shading=CLEAR_COAT, vertex=INSTANCED),
    "skin": Material(shading=SUBSURFACE, vertex=SKINNED, vertices="skinned"),
    "creature": Material(shading=SUBSURFACE, detail=True, vertex=DUAL_QUATERNION, vertices="skinned-wide"),
    "crowd": Material(normal_map=False, vertex=TWO_BONES, vertices="skinned"),
    "foliage": Material(alpha_test=True, cull="none", vertex=WINDY),
    "bark": Material(detail=True, fog=True, vertex=INSTANCED),
    "lamp": Material(emissive=True, normal_map=False),
    "snow": Material(shading=SUBSURFACE, detail=True, fog=True, vertices="mesh-streams"),
    "glass": Material(blend="alpha", fog=True),
    "hologram": Material(emissive=True, blend="additive", cull="front"),
}


def materials() -> Iterator[Graphics]:
    """Every material in the forward passes, some of them also multisampled, in stereo and into the G-buffer."""
    for name, m in MATERIALS.items():
        depth = "less" if m.blend == "opaque" else "read"

        def forward(
            suffix: str,
            target: str,
            taps: int,
            clustered: bool,
            lights: int,
            name: str = name,
            m: Material = m,
            depth: str = depth,
        ) -> Graphics:
            fragment = Stage("pbr.frag", m.constants(taps, clustered, lights))
            return Graphics(
                f"{name}-{suffix}",
                (m.vertex, fragment),
                target,
                "material",
                m.vertices,
                cull=m.cull,
                depth=depth,
                blends=(m.blend,),
            )

        yield forward("forward-low", "scene", 1, False, 2)
        yield forward("forward-high", "scene", 16, True, 0)
        if m.blend == "opaque" and m.vertex.shader == "mesh.vert":
            yield forward("forward-multisample", "scene-multisample", 4, False, 4)
            yield Graphics(
                f"{name}-gbuffer",
                (m.vertex, Stage("gbuffer.frag", {0: m.normal_map, 1: m.alpha_test, 2: m.detail or m.fog})),
                "gbuffer",
                "material",
                m.vertices,
                cull=m.cull,
                depth="equal" if m.alpha_test else "less",
                blends=("opaque", "opaque", "opaque", "opaque"),
                stencil="write",
            )
    pbr = Stage("pbr.frag", MATERIALS["stone"].constants(1, False, 2))
    for name in ("stone", "lamp"):
        fragment = Stage("pbr.frag", MATERIALS[name].constants(1, False, 2))
        yield Graphics(f"{name}-stereo", (Stage("stereo.vert"), fragment), "stereo", "material", "mesh")
    yield Graphics("stone-rendering", (MATERIALS["stone"].vertex, pbr), "rendering-scene", "material", "mesh")
    yield Graphics(
        "leaves-coverage",
        (WINDY, Stage("pbr.frag", MATERIALS["foliage"].constants(1, False, 2))),
        "scene-multisample",
        "material",
        "mesh",
        cull="none",
        alpha_to_coverage=True,
        sample_mask=0x7,
    )
    unlit = Stage("unlit.frag")
    yield Graphics("unlit", (INSTANCED, unlit), "scene", "material", "mesh")
    yield Graphics("unlit-skinned", (SKINNED, unlit), "scene", "material", "skinned")
    yield Graphics("unlit-multiply", (INSTANCED, unlit), "scene", "material", "mesh", depth="read", blends=("multiply",))
    yield Graphics("unlit-wireframe", (INSTANCED, unlit), "scene", "material", "mesh", polygon="line", cull="none")
    yield Graphics("unlit-points", (INSTANCED, unlit), "scene", "material", "mesh", polygon="point", cull="none")
    yield Graphics("unlit-clockwise-reversed", (INSTANCED, unlit), "scene", "material", "mesh", clockwise=True, depth="greater")
    yield Graphics("unlit-strip", (INSTANCED, unlit), "scene", "material", "mesh", topology="triangle strip", restart=True)
    yield Graphics("unlit-fixed-viewport", (INSTANCED, unlit), "scene", "material", "mesh", fixed_viewport=True, dynamic=())
    yield Graphics("unlit-two-viewports", (INSTANCED, unlit), "scene", "material", "mesh", viewports=2)
    yield Graphics("unlit-depth-bounds", (INSTANCED, unlit), "scene", "material", "mesh", depth="bounds")
    yield Graphics(
        "outline-mark", (INSTANCED, unlit), "rendering-stencil", "material", "mesh", stencil="write", blends=("no colour",)
    )
    yield Graphics(
        "outline-draw",
        (INSTANCED, unlit),
        "rendering-stencil",
        "material",
        "mesh",
        stencil="not equal",
        depth="off",
        cull="front",
    )
    yield Graphics("coarse", (INSTANCED, unlit), "rendering-scene", "material", "mesh", shading_rate=(2, 2))
    yield Graphics(
        "wireframe-barycentric", (INSTANCED, Stage("wireframe_barycentric.frag")), "scene", "material", "mesh", cull="none"
    )


def shadows() -> Iterator[Graphics]:
    """Depth only: cascades, skinned and alpha-tested casters, all cascades at once, a cube by geometry shader, moments."""
    for cascade in range(4):
        bias = (1.25 * (cascade + 1), 1.75)
        still, skinned = Stage("depth.vert", {0: cascade}), Stage("depth_skinned.vert", {0: cascade})
        shared: dict[str, Any] = {
            "target": "shadow",
            "layout": "material",
            "blends": (),
            "depth_bias": bias,
            "depth_clamp": True,
        }
        yield Graphics(f"shadow-{cascade}", (still,), vertices="mesh", **shared)
        yield Graphics(f"shadow-skinned-{cascade}", (skinned,), vertices="skinned", **shared)
        yield Graphics(f"shadow-alpha-{cascade}", (still, Stage("depth_alpha.frag")), vertices="mesh", cull="none", **shared)
    still = Stage("depth.vert", {0: 0})
    yield Graphics("shadow-all-cascades", (Stage("depth_multiview.vert"),), "shadow-cascades", "material", "mesh", blends=())
    yield Graphics(
        "shadow-cube", (Stage("depth_cube.vert"), Stage("depth_cube.geom")), "rendering-depth", None, "mesh", blends=()
    )
    yield Graphics(
        "shadow-moments",
        (still, Stage("depth_moments.frag")),
        "moments",
        "material",
        "mesh",
        dynamic=("VIEWPORT", "SCISSOR", "DEPTH_BIAS"),
        depth_bias=(0.0, 0.0),
    )
    yield Graphics("depth-prepass", (still,), "rendering-depth", "material", "mesh", blends=())
    yield Graphics(
        "voxelize-conservative",
        (still, Stage("depth_alpha.frag")),
        "shadow",
        "material",
        "mesh",
        blends=(),
        cull="none",
        depth="off",
        raster=("conservative",),
    )
    yield Graphics("shadow-no-clip", (still,), "shadow", "material", "mesh", blends=(), raster=("no depth clip",))


def world() -> Iterator[Graphics]:
    """Terrain, sky, water, grass, particles, decals and debugging lines."""
    for name, octaves, pixels, triplanar, polygon in (
        ("terrain", 4, 12.0, False, "fill"),
        ("terrain-detailed", 8, 6.0, True, "fill"),
        ("terrain-wireframe", 4, 24.0, False, "line"),
    ):
        yield Graphics(
            name,
            (
                Stage("terrain.vert"),
                Stage("terrain.tesc", {0: pixels}),
                Stage("terrain.tese", {0: octaves, 1: polygon == "fill"}),
                Stage("terrain.frag", {0: 4, 1: triplanar}),
            ),
            "scene",
            vertices="terrain-divisor" if triplanar else "terrain",
            topology="patches",
            patch_points=4,
            polygon=polygon,
            lower_left_domain=triplanar,
        )
    full = Stage("fullscreen.vert")
    yield Graphics("sky", (full, Stage("sky.frag", {0: 16})), "scene", depth="equal", cull="none")
    yield Graphics("sky-high", (full, Stage("sky.frag", {0: 64})), "scene", depth="equal", cull="none")
    yield Graphics(
        "water",
        (Stage("water.vert", {0: 8}), Stage("water.frag", {0: True})),
        "scene",
        vertices="plane",
        immutable={(0, 2): "shadow"},
    )
    yield Graphics(
        "water-far",
        (Stage("water.vert", {0: 3}), Stage("water.frag", {0: False})),
        "rendering-scene",
        vertices="plane",
        immutable={(0, 2): "shadow"},
    )
    for segments in (3, 7):
        blades = (Stage("grass.vert"), Stage("grass.geom", {0: segments}), Stage("line.frag"))
        yield Graphics(f"grass-{segments}", blades, "scene", vertices="grass", topology="points", cull="none")
    for name, stretched, soft, blend in (
        ("smoke", False, True, "premultiplied"),
        ("fire", False, True, "additive"),
        ("sparks", True, False, "additive"),
        ("rain", True, False, "alpha"),
    ):
        stages = (Stage("particle.vert", {0: stretched}), Stage("particle.frag", {0: soft, 1: 8}))
        yield Graphics(
            f"particles-{name}", stages, "scene", cull="none", depth="read", blends=(blend,), topology="triangle strip"
        )
    points = (Stage("particle_point.vert"), Stage("particle_point.frag"))
    yield Graphics("particles-points", points, "scene", vertices="points", topology="points", depth="read", blends=("maximum",))
    yield Graphics(
        "decal",
        (INSTANCED, Stage("decal.frag")),
        "rendering-colour",
        None,
        "mesh",
        cull="front",
        depth="off",
        blends=("alpha",),
    )
    lines = (Stage("line.vert"), Stage("line.frag"))
    yield Graphics("lines", lines, "scene", vertices="lines", topology="lines")
    yield Graphics("lines-strip", lines, "scene", vertices="lines", topology="line strip", restart=True, depth="off")
    yield Graphics(
        "lines-dynamic-width", lines, "scene", vertices="lines", topology="lines", dynamic=("VIEWPORT", "SCISSOR", "LINE_WIDTH")
    )
    yield Graphics("lines-wide", lines, "scene", vertices="lines", topology="lines", line_width=3.0)
    yield Graphics("lines-stippled", lines, "scene", vertices="lines", topology="lines", raster=("stipple",))
    yield Graphics(
        "lines-last-vertex",
        (Stage("line_flat.vert"), Stage("line_flat.frag")),
        "scene",
        vertices="lines",
        topology="line strip",
        raster=("last vertex",),
    )
    yield Graphics("lines-logic", lines, "scene", vertices="lines", topology="lines", depth="always", logic="XOR")


def post() -> Iterator[Graphics]:
    """Full-screen passes and the interface."""
    full = Stage("fullscreen.vert")

    def pass_(
        name: str, shader: str, constants: Constants | None = None, target: str = "rendering-colour", **state: Any
    ) -> Graphics:
        stages = (full, Stage(shader, constants or {}))
        return Graphics(name, stages, target, cull="none", depth="none", **state)

    clamp = {(0, 0): "clamp", (0, 1): "clamp"}
    yield pass_("bloom-down-first", "post_bloom_down.frag", {0: True}, immutable=clamp)
    yield pass_("bloom-down", "post_bloom_down.frag", {0: False}, immutable=clamp)
    yield pass_("bloom-up", "post_bloom_up.frag", blends=("constant",), blend_constants=(0.625, 0.625, 0.625, 1.0))
    yield pass_(
        "bloom-up-dynamic", "post_bloom_up.frag", blends=("constant",), dynamic=("VIEWPORT", "SCISSOR", "BLEND_CONSTANTS")
    )
    for operator, name in enumerate(("reinhard", "filmic", "aces", "agx", "pq")):
        target = "rendering-wide" if name == "pq" else "display"
        yield pass_(f"tonemap-{name}", "post_tonemap.frag", {0: operator, 1: operator > 1, 2: operator == 1}, target)
    for steps in (4, 12):
        yield pass_(f"edge-aa-{steps}", "post_edge_aa.frag", {0: steps}, "display", immutable=clamp)
    for rings, blades in ((3, 0), (5, 6)):
        yield pass_(f"depth-of-field-{rings}", "post_dof.frag", {0: rings, 1: blades})
    yield pass_("motion-blur", "post_motion_blur.frag", {0: 12})
    for steps in (24, 64):
        yield pass_(f"reflections-{steps}", "post_ssr.frag", {0: steps, 1: 6}, blends=("alpha",))
    for samples in (2, 4, 8):
        yield pass_(f"resolve-{samples}", "post_resolve.frag", {0: samples})
    yield pass_("lens", "post_lens.hlsl", None, "display")
    yield pass_("supersampled", "sample_shading.frag", None, "rendering-multisample", sample_shading=1.0)
    yield pass_("fractal-double", "quad_double.frag", {0: 64})
    yield Graphics(
        "stencil-from-mask",
        (full, Stage("stencil_export.frag")),
        "rendering-stencil",
        cull="none",
        depth="off",
        stencil="replace",
        blends=("no colour",),
    )
    for shadowed in (True, False):
        yield Graphics(
            f"deferred-light-{'shadowed' if shadowed else 'plain'}",
            (full, Stage("deferred_light.frag", {0: shadowed})),
            "gbuffer-light",
            cull="none",
            depth="off",
            stencil="equal",
            blends=("additive",),
            immutable={(0, 2): "shadow"},
        )
    ui = Stage("ui.vert")
    for name, constants, blend in (
        ("ui", {0: False, 1: 0.0}, "alpha"),
        ("text", {0: True, 1: 0.0}, "alpha"),
        ("text-outlined", {0: True, 1: 0.2}, "premultiplied"),
    ):
        yield Graphics(
            name,
            (ui, Stage("ui.frag", constants)),
            "display",
            None,
            "ui",
            cull="none",
            depth="none",
            blends=(blend,),
            immutable={(0, 0): "clamp"},
        )
    yield Graphics(
        "ui-strip",
        (ui, Stage("ui.frag", {0: False, 1: 0.0})),
        "display",
        None,
        "ui",
        topology="triangle strip",
        cull="none",
        depth="none",
        blends=("red green",),
    )


def transparency_and_features() -> Iterator[Graphics]:
    """Order-independent transparency and pipelines that need features some families lack."""
    yield Graphics(
        "transparent-weighted",
        (INSTANCED, Stage("oit_weighted.frag")),
        "transparent",
        "material",
        "mesh",
        depth="read",
        blends=("accumulate", "revealage"),
    )
    yield Graphics(
        "glass-dual-source",
        (INSTANCED, Stage("glass_dual_source.frag")),
        "scene",
        "material",
        "mesh",
        depth="read",
        blends=("dual source",),
    )
    yield Graphics(
        "transparent-interlock",
        (INSTANCED, Stage("oit_interlock.frag")),
        "rendering-depth",
        None,
        "mesh",
        depth="read",
        blends=(),
    )
    meshlet = (Stage("meshlet.task"), Stage("meshlet.mesh"), Stage("meshlet.frag"))
    yield Graphics("meshlets", meshlet, "rendering-scene", topology="")
    yield Graphics("meshlets-wireframe", meshlet, "scene", topology="", polygon="line")


def dynamic_states() -> Iterator[Graphics]:
    """State left to the command buffer: Vulkan 1.3's, the vertex input's and the third extension's."""
    unlit = Stage("unlit.frag")
    with_count = ("VIEWPORT_WITH_COUNT", "SCISSOR_WITH_COUNT")
    raster = (
        "CULL_MODE",
        "FRONT_FACE",
        "PRIMITIVE_TOPOLOGY",
        "DEPTH_BIAS_ENABLE",
        "PRIMITIVE_RESTART_ENABLE",
        "RASTERIZER_DISCARD_ENABLE",
    )
    depth = (
        "DEPTH_TEST_ENABLE",
        "DEPTH_WRITE_ENABLE",
        "DEPTH_COMPARE_OP",
        "STENCIL_TEST_ENABLE",
        "STENCIL_OP",
        "STENCIL_REFERENCE",
    )
    yield Graphics("dynamic-raster", (INSTANCED, unlit), "rendering-scene", "material", "mesh", dynamic=with_count + raster)
    yield Graphics("dynamic-depth", (INSTANCED, unlit), "rendering-stencil", "material", "mesh", dynamic=with_count + depth)
    yield Graphics(
        "dynamic-stride",
        (INSTANCED, unlit),
        "rendering-scene",
        "material",
        "mesh",
        dynamic=(*with_count, "VERTEX_INPUT_BINDING_STRIDE"),
    )
    yield Graphics(
        "dynamic-vertices",
        (INSTANCED, unlit),
        "rendering-scene",
        "material",
        "dynamic",
        dynamic=(*with_count, "VERTEX_INPUT_EXT"),
    )
    blending = ("COLOR_BLEND_ENABLE_EXT", "COLOR_BLEND_EQUATION_EXT", "COLOR_WRITE_MASK_EXT", "POLYGON_MODE_EXT")
    yield Graphics("dynamic-blend", (INSTANCED, unlit), "rendering-scene", "material", "mesh", dynamic=with_count + blending)
    samples = ("RASTERIZATION_SAMPLES_EXT", "SAMPLE_MASK_EXT", "ALPHA_TO_COVERAGE_ENABLE_EXT", "DEPTH_CLAMP_ENABLE_EXT")
    yield Graphics("dynamic-samples", (INSTANCED, unlit), "rendering-scene", "material", "mesh", dynamic=with_count + samples)


VERTEX_INPUT, PRE_RASTERIZATION, FRAGMENT_SHADER, FRAGMENT_OUTPUT = 1, 2, 4, 8


def libraries_and_derivatives() -> Iterator[Graphics]:
    """Pipelines in parts, linked fast and optimised, and a parent with children."""
    unlit, lamp = Stage("unlit.frag"), Stage("pbr.frag", MATERIALS["lamp"].constants(1, False, 2))
    target, layout = "rendering-scene", "material"
    yield Graphics("part-vertices", (), target, None, "mesh", parts=VERTEX_INPUT, dynamic=())
    yield Graphics("part-mesh", (INSTANCED,), target, layout, parts=PRE_RASTERIZATION)
    yield Graphics("part-unlit", (unlit,), target, layout, parts=FRAGMENT_SHADER, dynamic=())
    yield Graphics("part-lamp", (lamp,), target, layout, parts=FRAGMENT_SHADER, dynamic=())
    yield Graphics("part-output", (), target, None, parts=FRAGMENT_OUTPUT, dynamic=())
    yield Graphics("part-output-alpha", (), target, None, parts=FRAGMENT_OUTPUT, dynamic=(), blends=("alpha",))
    parts = ("part-vertices", "part-mesh")
    yield Graphics("linked-unlit", (), target, layout, libraries=(*parts, "part-unlit", "part-output"))
    yield Graphics("linked-lamp", (), target, layout, libraries=(*parts, "part-lamp", "part-output-alpha"))
    yield Graphics(
        "linked-lamp-optimised", (), target, layout, libraries=(*parts, "part-lamp", "part-output"), optimise_link=True
    )
    yield Graphics("parent", (INSTANCED, unlit), "scene", "material", "mesh", cull="front", derivable=True)
    yield Graphics(
        "child", (INSTANCED, unlit), "scene", "material", "mesh", cull="front", blends=("alpha",), derived_from="parent"
    )


GRAPHICS: tuple[Graphics, ...] = (
    *materials(),
    *shadows(),
    *world(),
    *post(),
    *transparency_and_features(),
    *dynamic_states(),
    *libraries_and_derivatives(),
)


def compute() -> Iterator[Compute]:
    def one(name: str, shader: str, constants: Constants | None = None, subgroup_size: int = 0, **rest: Any) -> Compute:
        return Compute(name, Stage(shader, constants or {}, subgroup_size), **rest)

    # Culling and lights.
    yield one("cull-frustum", "cull_frustum.comp", {0: 64, 1: False}, derivable=True)
    yield one("cull-occlusion", "cull_frustum.comp", {0: 64, 1: True}, derived_from="cull-frustum")
    yield one("cull-occlusion-wide", "cull_frustum.comp", {0: 256, 1: True})
    yield one("cull-compact", "cull_compact.comp")
    yield one("depth-pyramid", "depth_pyramid.comp", {0: False}, immutable={(0, 0): "nearest"})
    yield one("depth-pyramid-reversed", "depth_pyramid.comp", {0: True}, immutable={(0, 0): "nearest"})
    yield one("light-cluster", "light_cluster.comp", {0: 128})
    # Sorting, scans, reductions.
    for size in (64, 128, 256, 512):
        yield one(f"sort-bitonic-{size}", "sort_bitonic.comp", {0: size, 1: False})
    yield one("sort-bitonic-descending", "sort_bitonic.comp", {0: 256, 1: True})
    for shift in (0, 8, 16, 24):
        yield one(f"sort-radix-count-{shift}", "sort_radix_count.comp", {0: shift})
        yield one(f"sort-radix-scatter-{shift}", "sort_radix_scatter.comp", {0: shift}, full_subgroups=True)
    yield one("scan-shared-256", "scan_shared.comp", {0: 256, 1: False})
    yield one("scan-shared-1024", "scan_shared.comp", {0: 1024, 1: True})
    yield one("scan-subgroup-4", "scan_subgroup.comp", {0: 4})
    yield one("scan-subgroup-16", "scan_subgroup.comp", {0: 16})
    for size in (16, 32, 64):
        yield one(f"scan-subgroup-of-{size}", "scan_subgroup.comp", {0: 4}, size, full_subgroups=True)
    yield one("reduce-range", "reduce_minmax.comp")
    # Fourier transforms.
    for half in (32, 128, 512):
        yield one(f"fft-{half * 2}", "fft.comp", {0: half, 1: False})
    yield one("fft-256-inverse", "fft.comp", {0: 128, 1: True})
    for log2 in (3, 4, 5, 6):
        yield one(f"fft-registers-{1 << log2}", "fft_registers.comp", {0: log2, 1: False})
    yield one("fft-registers-64-inverse", "fft_registers.comp", {0: 6, 1: True})
    yield one("fft-registers-128", "fft_registers.comp", {0: 7, 1: False})
    yield one("fft-registers-256", "fft_registers.comp", {0: 8, 1: False})
    yield one("fft-registers-256-inverse", "fft_registers.comp", {0: 8, 1: True})
    yield one("ocean-spectrum", "ocean_spectrum.comp")
    # Particles and physics.
    yield one("particles-simulate", "particles_simulate.comp", {0: False, 1: False})
    yield one("particles-turbulent", "particles_simulate.comp", {0: True, 1: True})
    yield one("particles-emit", "particles_emit.hlsl")
    yield one("cloth-4", "cloth.comp", {0: 4})
    yield one("cloth-16", "cloth.comp", {0: 16})
    yield one("rigid-contacts", "rigid_contacts.comp")
    yield one("fluid-density", "fluid_density.comp", {0: 0.1, 1: False})
    yield one("fluid-forces", "fluid_density.comp", {0: 0.1, 1: True})
    yield one("fluid-pressure", "fluid_pressure.comp")
    yield one("fluid-advect", "fluid_advect.comp", {0: False})
    yield one("fluid-advect-corrected", "fluid_advect.comp", {0: True})
    yield one("nbody", "nbody.comp")
    yield one("orbit-double", "orbit_double.comp", {0: 16})
    yield one("skinning-4", "skinning.comp", {0: 64, 1: 4})
    yield one("skinning-2", "skinning.comp", {0: 128, 1: 2})
    # Temporal filters and post-processing.
    for name, constants in (
        ("taa", {0: True, 1: True, 2: False}),
        ("taa-fast", {0: False, 1: False, 2: False}),
        ("taa-upscale", {0: True, 1: True, 2: True}),
    ):
        yield one(name, "taa.comp", dict(constants), immutable={(0, 1): "clamp"})
    for step in (1, 2, 4, 8):
        yield one(f"denoise-atrous-{step}", "denoise_atrous.comp", {0: step, 1: 2})
    yield one("denoise-temporal", "denoise_temporal.hlsl")
    yield one("ambient-occlusion", "ambient_occlusion.comp", {0: 3, 1: 4})
    yield one("ambient-occlusion-high", "ambient_occlusion.comp", {0: 6, 1: 8})
    yield one("luminance-histogram", "luminance_histogram.comp")
    yield one("auto-exposure", "auto_exposure.comp")
    for rings in (3, 6, 12):
        yield one(f"bokeh-gather-{rings}", "bokeh_gather.comp", {0: rings}, immutable={(0, 0): "clamp", (0, 1): "nearest"})
    yield one("upscale-network-small", "upscale_network.comp", {0: 4, 1: 2})
    yield one("upscale-network", "upscale_network.comp", {0: 12, 1: 4})
    yield one("upscale-network-wide", "upscale_network.comp", {0: 16, 1: 3})
    yield one("upscale-network-large", "upscale_network.comp", {0: 14, 1: 5})
    yield one("path-trace", "path_trace.comp", {0: 4, 1: True})
    yield one("ray-query-shadow", "ray_query_shadow.comp")
    yield one("fog-scatter", "fog_scatter.comp", {0: True}, immutable={(0, 1): "shadow"})
    yield one("fog-integrate", "fog_integrate.comp", {0: 64})
    # Baking and content.
    yield one("environment-prefilter", "environment_prefilter.comp", {0: 64})
    yield one("environment-prefilter-high", "environment_prefilter.comp", {0: 1024})
    yield one("brdf-table", "brdf_table.comp", {0: 128})
    yield one("probe-harmonics", "probe_harmonics.comp")
    yield one("texture-compress", "texture_compress.comp", {0: 2, 1: False})
    yield one("texture-compress-alpha", "texture_compress.comp", {0: 24, 1: True})
    yield one("jump-flood", "jump_flood.comp")
    yield one("terrain-erosion", "terrain_erosion.comp", {0: 30})
    yield one("visibility-raster-64", "visibility_raster64.comp")
    yield one("matrix-multiply-8", "matrix_multiply.comp", {0: 8})
    yield one("matrix-multiply-16", "matrix_multiply.comp", {0: 16})
    yield one("matrix-half", "matrix_half.comp")
    for transfer, name in enumerate(("linear", "srgb", "pq")):
        yield one(f"image-convert-{name}", "image_convert.comp", {0: transfer}, immutable={(0, 1): "clamp"})
    yield one("bindless-pick", "bindless_pick.comp")


COMPUTE: tuple[Compute, ...] = tuple(compute())


def ray_tracing() -> Iterator[RayTracing]:
    miss, shadow = Stage("rt_sky.rmiss"), Stage("rt_shadow.rmiss")
    hit, unshadowed = Stage("rt_surface.rchit", {0: True}), Stage("rt_surface.rchit", {0: False})
    foliage, sphere = Stage("rt_foliage.rahit"), Stage("rt_sphere.rint")
    for bounces in (1, 4):
        stages = (Stage("rt_path.rgen", {0: bounces}), miss, shadow, hit)
        yield RayTracing(f"rays-{bounces}", stages, (0, 1, 2), ((3, None, None),))
    generate = Stage("rt_path.rgen", {0: 2})
    yield RayTracing("rays-foliage", (generate, miss, shadow, hit, foliage), (0, 1, 2), ((3, None, None), (3, 4, None)))
    yield RayTracing("rays-spheres", (generate, miss, shadow, unshadowed, sphere), (0, 1, 2), ((3, None, None), (3, None, 4)))
    everything = (generate, miss, shadow, hit, foliage)
    yield RayTracing("rays-part-hits", (hit, foliage), (), ((0, None, None), (0, 1, None)), library=True, layout_of=everything)
    yield RayTracing(
        "rays-linked", (generate, miss, shadow), (0, 1, 2), (), libraries=("rays-part-hits",), layout_of=everything
    )


RAY_TRACING: tuple[RayTracing, ...] = tuple(ray_tracing())
