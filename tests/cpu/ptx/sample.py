"""A module with something of everything, for tests that take PTX apart at random."""

SAMPLE = """
//
// a comment
//
.version 9.0
.target sm_90, debug
.address_size 64

.extern .func (.param .b32 func_retval0) vprintf (.param .b64 a, .param .b64 b);
.func (.param .b32 func_retval0) twice(.param .b32 twice_param_0)
{
    .reg .b32 %r<3>;
    ld.param.u32 %r1, [twice_param_0];
    shl.b32 %r2, %r1, 1;
    st.param.b32 [func_retval0+0], %r2;
    ret;
}
.global .align 4 .b8 numbers[24] = {1, 0, 0, 0, 2, 0, 0, 0, 3};
.global .align 8 .u64 pointer = generic(numbers)+12;
.const .align 8 .u64 words[3] = {generic(numbers), twice, 0xFF};
.global .b8 bytes[8] = {0xFF(numbers), 0xFF00(numbers), 0xFF0000(numbers), 0xFF000000(numbers), 4, 5};
.global .f32 matrix[2][2] = {{1.0, 0f3F800000}, {-2.5e3}};
.extern .shared .align 16 .b8 dynamic[];
.visible .global .attribute(.managed) .align 4 .u32 managed = 7;

.visible .entry kernel(
    .param .u64 .ptr .global .align 4 kernel_param_0,
    .param .align 8 .b8 kernel_param_1[24],
    .param .u32 kernel_param_2
)
.maxntid 128, 1, 1
.minnctapersm 2
{
    .local .align 16 .b8 __local_depot0[16];
    .reg .b64 %SP;
    .reg .b64 %SPL;
    .reg .pred %p<5>;
    .reg .b16 %rs<5>;
    .reg .b32 %r<30>;
    .reg .f32 %f<9>;
    .reg .b64 %rd<9>;
    .loc 1 5 0
    mov.u64 %SPL, __local_depot0;
    cvta.local.u64 %SP, %SPL;
    ld.param.u64 %rd1, [kernel_param_0];
    ld.param.v2.u32 {%r1, %r2}, [kernel_param_1+8];
    .loc 1 8 5
    .loc 2 91 5, function_name $L__info_string0, inlined_at 1 8 5
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r3, -4, %r1;
    setp.ge.s32 %p1|%p2, %r4, 0x10U;
    @%p1 bra $L__BB0_2;
    bra.uni $L__BB0_1;
$L__BB0_1:
    .pragma "nounroll";
    ld.global.nc.v4.f32 {%f1, %f2, _, %f3}, [%rd1+-16];
    fma.rn.f32 %f4, %f1, 0f40000000, %f2;
    selp.b32 %r5, 1, 0, !%p2;
    { // callseq 0, 0
    .reg .b32 temp_param_reg;
    .param .b32 param0;
    st.param.b32 [param0+0], %r5;
    .param .b32 retval0;
    call.uni (retval0),
    twice,
    (
    param0
    );
    ld.param.b32 %r6, [retval0+0];
    }
    { .reg .pred q; .reg .u32 t<3>; LOOP: setp.lt.u32 q, %r6, 07; @!q bra DONE;
      add.u32 t0, %r6, 3 + 4; bra LOOP; DONE: }
    { .param .b64 a; .param .b32 r; prototype_1 : .callprototype (.param .b32 _) _ (.param .b64 _) ;
      call (r), %rd3, (a), prototype_1; }
    targets: .branchtargets $L__BB0_1, $L__BB0_2;
    brx.idx %r6, targets;
$L__BB0_2:
    tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd2, {%f5, %f6}];
    atom.global.add.release.gpu.u32 %r7, [%rd1 + 8], 1; bar.sync 0; vadd.s32.s32.s32 %r8, %r1.b0, %r2.h1;
    st.shared.u32 [dynamic+4], numbers; /* the end */
    ret;
}
.file 1 "test.cu"
.file 2 "header.h", 1234, 5678
.section .debug_str
{
$L__info_string0:
.b8 95,90,52,108,97,110,101,118,0
}
.section .debug_info { .b32 .debug_str-4 .b64 $L__tmp0 }
"""
