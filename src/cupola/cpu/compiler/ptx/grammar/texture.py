"""Textures and surfaces (PTX ISA 9.7.10, 9.7.11)."""

# ruff: noqa: E501

INSTRUCTIONS = """
# 9.7.10 Texture
tex.<geometry>{.v4}{.v2}.<texel>.s32|f32 d|p, [a]{, e}{, f}
tex.base|level|grad.<geometry>{.v4}{.v2}.<texel>.s32|f32 d|p, [a]{, level}{, slope}{, e}{, f}
tld4.r|g|b|a.2d|a2d|cube|acube.v4.u32|s32|f32.f32 d|p, [a]{, e}{, f}
txq{.level}.width|height|depth|channel_data_type|channel_order|normalized_coords|array_size|num_mipmap_levels|num_samples|force_unnormalized_coords|filter_mode|addr_mode_0|addr_mode_1|addr_mode_2.b32 d, [a]{, level}
istypep.texref|samplerref|surfref d, a

# 9.7.11 Surface
suld.b|p.<geometry>{.<cache_ld>}{.<vector>}.<surface_type>.trap|clamp|zero d, [a]
sust.b|p.<geometry>{.<cache_st>}{.<vector>}.<surface_type>.trap|clamp|zero [a], b
sured.b|p.add|min|max|and|or.<geometry>.u32|u64|s32|s64|b32|b64.trap|clamp|zero [a], b
suq.width|height|depth|channel_data_type|channel_order|array_size|memory_layout.b32 d, [a]
"""
