"""Barriers, fences, atomics and warp votes (PTX ISA 9.7.13, and shfl of 9.7.9)."""

# ruff: noqa: E501

INSTRUCTIONS = """
# 9.7.9 Data Movement and Conversion: shfl
shfl.up|down|bfly|idx.b32 d|p, a, b, c
shfl.sync.up|down|bfly|idx.b32 d|p, a, b, c, mask

# 9.7.13 Parallel Synchronization and Communication
bar.warp.sync mask
bar{.cta}.sync a{, b}
bar{.cta}.arrive a, b
bar{.cta}.red.popc.u32 d, a, b{, c}
bar{.cta}.red.and|or.pred d, a, b{, c}
barrier{.cta}.sync{.aligned} a{, b}
barrier{.cta}.arrive{.aligned} a, b
barrier{.cta}.red.popc{.aligned}.u32 d, a, b{, c}
barrier{.cta}.red.and|or{.aligned}.pred d, a, b{, c}
barrier.cluster.arrive{.release|relaxed}{.aligned}
barrier.cluster.wait{.acquire}{.aligned}
membar.cta|gl|sys
membar.proxy.alias|async|async::generic
membar.proxy.async.<memory>
fence{.<order>}.<scope>
fence.acquire|release.sync_restrict::shared::cta|sync_restrict::shared::cluster.cluster
fence.mbarrier_init.release.cluster
fence.proxy.alias|async|async::generic
fence.proxy.async.<memory>
fence.proxy.tensormap::generic.release.<scope>
fence.proxy.tensormap::generic.acquire.<scope> [a], size
fence.proxy.async::generic.acquire|release.sync_restrict::shared::cta|sync_restrict::shared::cluster.cluster
atom{.<order>}{.<scope>}{.<memory>}.and|or|xor|exch|add|inc|dec|min|max{.noftz}{.<hint>}{.<vector>}.<type> d, [a], b{, policy}
atom{.<order>}{.<scope>}{.<memory>}.cas{.<hint>}.b16|b32|b64|b128|u32|u64|s32|s64 d, [a], b, c{, policy}
red{.<order>}{.<scope>}{.<memory>}.and|or|xor|add|inc|dec|min|max{.noftz}{.<hint>}{.<vector>}.<type> [a], b{, policy}
red.async{.relaxed}{.<scope>}{.shared::cluster}{.global}{.mbarrier::complete_tx::bytes}{.mmio}{.release}.inc|dec|min|max|add|and|or|xor.<type> [a], b{, [barrier]}
vote.all|any|uni.pred d, a
vote.ballot.b32 d, a
vote.sync.all|any|uni.pred d, a, mask
vote.sync.ballot.b32 d, a, mask
match.any.sync.b32|b64 d, a, mask
match.all.sync.b32|b64 d|p, a, mask
activemask.b32 d
redux.sync.add|min|max|and|or|xor.u32|s32|b32 d, a, mask
redux.sync.min|max{.abs}{.NaN}.f32 d, a, mask
elect.sync d|p, mask
griddepcontrol.launch_dependents|wait
mbarrier.init{.<shared>}.b64 [a], count
mbarrier.inval{.<shared>}.b64 [a]
mbarrier.expect_tx{.relaxed}{.<scope>}{.<shared>}.b64 [a], count
mbarrier.complete_tx{.relaxed}{.<scope>}{.<shared>}.b64 [a], count
mbarrier.arrive{.release|relaxed}{.<scope>}{.<shared>}.b64 d, [a]{, count}
mbarrier.arrive.expect_tx{.release|relaxed}{.<scope>}{.<shared>}.b64 d, [a], count
mbarrier.arrive.noComplete{.release|relaxed}{.<scope>}{.<shared>}.b64 d, [a], count
mbarrier.arrive_drop{.release|relaxed}{.<scope>}{.<shared>}.b64 d, [a]{, count}
mbarrier.arrive_drop.expect_tx{.release|relaxed}{.<scope>}{.<shared>}.b64 d, [a], count
mbarrier.arrive_drop.noComplete{.release|relaxed}{.<scope>}{.<shared>}.b64 d, [a], count
mbarrier.test_wait{.acquire|relaxed}{.<scope>}{.<shared>}.b64 d, [a], state
mbarrier.test_wait.parity{.acquire|relaxed}{.<scope>}{.<shared>}.b64 d, [a], parity
mbarrier.try_wait{.acquire|relaxed}{.<scope>}{.<shared>}.b64 d, [a], state{, limit}
mbarrier.try_wait.parity{.acquire|relaxed}{.<scope>}{.<shared>}.b64 d, [a], parity{, limit}
mbarrier.pending_count.b64 d, state
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.<scope>.sync.aligned [a], [b], size
clusterlaunchcontrol.try_cancel.async{.shared::cta}.mbarrier::complete_tx::bytes{.multicast::cluster::all}.b128 [a], [barrier]
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 d, response
clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 d, response
clusterlaunchcontrol.query_cancel.get_first_ctaid::x|get_first_ctaid::y|get_first_ctaid::z.b32.b128 d, response
"""
