"""Video instructions and the rest (PTX ISA 9.7.18, 9.7.19)."""

INSTRUCTIONS = """
# 9.7.18 Video
vadd.u32|s32.u32|s32.u32|s32{.sat} d, a, b
vadd.u32|s32.u32|s32.u32|s32{.sat}{.add|min|max} d, a, b, c
vsub.u32|s32.u32|s32.u32|s32{.sat} d, a, b
vsub.u32|s32.u32|s32.u32|s32{.sat}{.add|min|max} d, a, b, c
vabsdiff.u32|s32.u32|s32.u32|s32{.sat} d, a, b
vabsdiff.u32|s32.u32|s32.u32|s32{.sat}{.add|min|max} d, a, b, c
vmin.u32|s32.u32|s32.u32|s32{.sat} d, a, b
vmin.u32|s32.u32|s32.u32|s32{.sat}{.add|min|max} d, a, b, c
vmax.u32|s32.u32|s32.u32|s32{.sat} d, a, b
vmax.u32|s32.u32|s32.u32|s32{.sat}{.add|min|max} d, a, b, c
vshl.u32|s32.u32|s32.u32{.sat}.clamp|wrap d, a, b
vshl.u32|s32.u32|s32.u32{.sat}.clamp|wrap{.add|min|max} d, a, b, c
vshr.u32|s32.u32|s32.u32{.sat}.clamp|wrap d, a, b
vshr.u32|s32.u32|s32.u32{.sat}.clamp|wrap{.add|min|max} d, a, b, c
vmad.u32|s32.u32|s32.u32|s32{.sat}{.shr7|shr15}{.po} d, a, b, c
vset.u32|s32.u32|s32.<compare_int> d, a, b
vset.u32|s32.u32|s32.<compare_int>{.add|min|max} d, a, b, c
vadd2.u32|s32.u32|s32.u32|s32{.sat}{.add} d, a, b, c
vsub2.u32|s32.u32|s32.u32|s32{.sat}{.add} d, a, b, c
vavrg2.u32|s32.u32|s32.u32|s32{.sat}{.add} d, a, b, c
vabsdiff2.u32|s32.u32|s32.u32|s32{.sat}{.add} d, a, b, c
vmin2.u32|s32.u32|s32.u32|s32{.sat}{.add} d, a, b, c
vmax2.u32|s32.u32|s32.u32|s32{.sat}{.add} d, a, b, c
vset2.u32|s32.u32|s32.<compare_int>{.add} d, a, b, c
vadd4.u32|s32.u32|s32.u32|s32{.sat}{.add} d, a, b, c
vsub4.u32|s32.u32|s32.u32|s32{.sat}{.add} d, a, b, c
vavrg4.u32|s32.u32|s32.u32|s32{.sat}{.add} d, a, b, c
vabsdiff4.u32|s32.u32|s32.u32|s32{.sat}{.add} d, a, b, c
vmin4.u32|s32.u32|s32.u32|s32{.sat}{.add} d, a, b, c
vmax4.u32|s32.u32|s32.u32|s32{.sat}{.add} d, a, b, c
vset4.u32|s32.u32|s32.<compare_int>{.add} d, a, b, c

# 9.7.19 Miscellaneous
brkpt
nanosleep.u32 time
pmevent event
pmevent.mask event
trap
setmaxnreg.inc|dec.sync.aligned.u32 count
"""
