"""Asynchronous copies and stores (PTX ISA 9.7.9.25 to 9.7.9.28)."""

# ruff: noqa: E501

INSTRUCTIONS = """
# 9.7.9 Data Movement and Conversion: asynchronous copy
cp.async.ca|cg.<shared>.global{.<hint>}{.<prefetch>} [d], [a], size{, source_size}{, policy}
cp.async.commit_group
cp.async.wait_group count
cp.async.wait_all
cp.async.mbarrier.arrive{.noinc}{.<shared>}.b64 [a]
cp.async.bulk.<shared>.global|shared::cta{.mbarrier::complete_tx::bytes}{.multicast::cluster}{.<hint>} [d], [a], size, [barrier]{, mask}{, policy}
cp.async.bulk.global.shared::cta.bulk_group{.<hint>}{.cp_mask} [d], [a], size{, policy}{, mask}
cp.reduce.async.bulk.shared::cluster|global.shared::cta.mbarrier::complete_tx::bytes|bulk_group{.<hint>}.and|or|xor|add|inc|dec|min|max{.noftz}.<type> [d], [a], size{, [barrier]}{, policy}
cp.async.bulk.prefetch.L2.global{.<hint>} [a], size{, policy}
cp.async.bulk.tensor.1d|2d|3d|4d|5d.<shared>.global{.tile|tile::gather4|im2col|im2col::w|im2col::w::128}.mbarrier::complete_tx::bytes{.multicast::cluster}{.cta_group::1|cta_group::2}{.<hint>} [d], [a], [barrier]{, offsets}{, mask}{, policy}
cp.async.bulk.tensor.1d|2d|3d|4d|5d.global.shared::cta{.tile|tile::scatter4|im2col_no_offs}.bulk_group{.<hint>} [d], [a]{, policy}
cp.reduce.async.bulk.tensor.1d|2d|3d|4d|5d.global.shared::cta.add|min|max|inc|dec|and|or|xor{.tile|im2col_no_offs}.bulk_group{.<hint>} [d], [a]{, policy}
cp.async.bulk.prefetch.tensor.1d|2d|3d|4d|5d.L2.global{.tile|tile::gather4|im2col|im2col::w|im2col::w::128}{.<hint>} [a]{, offsets}{, policy}
cp.async.bulk.commit_group
cp.async.bulk.wait_group{.read} count
st.async{.weak|release}{.<scope>}{.shared::cluster|global}{.mbarrier::complete_tx::bytes}{.mmio}{.<vector>}.<type> [a], b{, [barrier]}
st.bulk{.weak}{.<shared>} [a], size{, value}
tensormap.replace.tile.global_address|rank|box_dim|global_dim|global_stride|element_stride|elemtype|interleave_layout|swizzle_mode|swizzle_atomicity|fill_mode{.global|shared::cta}.b1024{.b32|b64} [a], b{, c}
"""
