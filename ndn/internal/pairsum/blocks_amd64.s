#include "textflag.h"

// Two messages are hashed at once. The instructions of the SHA extensions
// ("Intel 64 and IA-32 Architectures Software Developer's Manual", SHA256RNDS2)
// take several cycles each, and those of one message wait for each other; those
// of the other one fill the gaps.
//
// A message has its state in two registers, as the instructions want it (ABEF
// and CDGH), and four words of its schedule in each of four, m0 to m3, which
// take turns. X0 is the operand of SHA256RNDS2 that has no name, X13 and X14 are
// for what is needed for a moment, X15 reverses the bytes of each word.

// FOUR does four rounds with the words in m, and adds to next what these words
// contribute to the schedule; prev are the words before m.
#define FOUR(k, abef, cdgh, m, prev, next, t) \
	MOVOU k(AX), X0; \
	PADDD m, X0; \
	SHA256RNDS2 X0, abef, cdgh; \
	MOVO m, t; \
	PALIGNR $4, prev, t; \
	PADDD t, next; \
	SHA256MSG2 m, next; \
	PSHUFD $0x0e, X0, X0; \
	SHA256RNDS2 X0, cdgh, abef; \
	SHA256MSG1 m, prev

// ROUNDS is FOUR without the schedule.
#define ROUNDS(k, abef, cdgh, m) \
	MOVOU k(AX), X0; \
	PADDD m, X0; \
	SHA256RNDS2 X0, abef, cdgh; \
	PSHUFD $0x0e, X0, X0; \
	SHA256RNDS2 X0, cdgh, abef

// LOAD reads four words of a message.
#define LOAD(at, p, m) \
	MOVOU at(p), m; \
	PSHUFB X15, m

// UNPACK brings the state at p into the order of the instructions.
#define UNPACK(p, abef, cdgh) \
	MOVOU (p), X13; \
	MOVOU 16(p), cdgh; \
	PSHUFD $0xb1, X13, X13; \
	PSHUFD $0x1b, cdgh, cdgh; \
	MOVO X13, abef; \
	PALIGNR $8, cdgh, abef; \
	PBLENDW $0xf0, X13, cdgh

// PACK brings it back.
#define PACK(p, abef, cdgh) \
	PSHUFD $0x1b, abef, X13; \
	PSHUFD $0xb1, cdgh, cdgh; \
	MOVO X13, abef; \
	PBLENDW $0xf0, cdgh, abef; \
	PALIGNR $8, X13, cdgh; \
	MOVOU abef, (p); \
	MOVOU cdgh, 16(p)

// func blocks(x, y *[8]uint32, p, q *byte, n int, constants *[64]uint32)
TEXT ·blocks(SB), NOSPLIT, $64-48
	MOVQ x+0(FP), DI
	MOVQ y+8(FP), SI
	MOVQ p+16(FP), R8
	MOVQ q+24(FP), R9
	MOVQ n+32(FP), CX
	MOVQ constants+40(FP), AX
	MOVOU flip<>(SB), X15
	UNPACK(DI, X1, X2)
	UNPACK(SI, X7, X8)

loop:
	MOVOU X1, state-64(SP)
	MOVOU X2, state-48(SP)
	MOVOU X7, state-32(SP)
	MOVOU X8, state-16(SP)

	LOAD(0, R8, X3)
	LOAD(0, R9, X9)
	ROUNDS(0, X1, X2, X3)
	ROUNDS(0, X7, X8, X9)
	LOAD(16, R8, X4)
	LOAD(16, R9, X10)
	ROUNDS(16, X1, X2, X4)
	SHA256MSG1 X4, X3
	ROUNDS(16, X7, X8, X10)
	SHA256MSG1 X10, X9
	LOAD(32, R8, X5)
	LOAD(32, R9, X11)
	ROUNDS(32, X1, X2, X5)
	SHA256MSG1 X5, X4
	ROUNDS(32, X7, X8, X11)
	SHA256MSG1 X11, X10
	LOAD(48, R8, X6)
	LOAD(48, R9, X12)

	FOUR(48, X1, X2, X6, X5, X3, X13)
	FOUR(48, X7, X8, X12, X11, X9, X14)
	FOUR(64, X1, X2, X3, X6, X4, X13)
	FOUR(64, X7, X8, X9, X12, X10, X14)
	FOUR(80, X1, X2, X4, X3, X5, X13)
	FOUR(80, X7, X8, X10, X9, X11, X14)
	FOUR(96, X1, X2, X5, X4, X6, X13)
	FOUR(96, X7, X8, X11, X10, X12, X14)
	FOUR(112, X1, X2, X6, X5, X3, X13)
	FOUR(112, X7, X8, X12, X11, X9, X14)
	FOUR(128, X1, X2, X3, X6, X4, X13)
	FOUR(128, X7, X8, X9, X12, X10, X14)
	FOUR(144, X1, X2, X4, X3, X5, X13)
	FOUR(144, X7, X8, X10, X9, X11, X14)
	FOUR(160, X1, X2, X5, X4, X6, X13)
	FOUR(160, X7, X8, X11, X10, X12, X14)
	FOUR(176, X1, X2, X6, X5, X3, X13)
	FOUR(176, X7, X8, X12, X11, X9, X14)
	FOUR(192, X1, X2, X3, X6, X4, X13)
	FOUR(192, X7, X8, X9, X12, X10, X14)
	FOUR(208, X1, X2, X4, X3, X5, X13)
	FOUR(208, X7, X8, X10, X9, X11, X14)
	FOUR(224, X1, X2, X5, X4, X6, X13)
	FOUR(224, X7, X8, X11, X10, X12, X14)
	ROUNDS(240, X1, X2, X6)
	ROUNDS(240, X7, X8, X12)

	MOVOU state-64(SP), X13
	PADDD X13, X1
	MOVOU state-48(SP), X13
	PADDD X13, X2
	MOVOU state-32(SP), X13
	PADDD X13, X7
	MOVOU state-16(SP), X13
	PADDD X13, X8
	ADDQ $64, R8
	ADDQ $64, R9
	DECQ CX
	JNZ loop

	PACK(DI, X1, X2)
	PACK(SI, X7, X8)
	RET

DATA flip<>+0(SB)/8, $0x0405060700010203
DATA flip<>+8(SB)/8, $0x0c0d0e0f08090a0b
GLOBL flip<>(SB), RODATA|NOPTR, $16

// func supported() bool
TEXT ·supported(SB), NOSPLIT, $0-1
	MOVL $0, AX
	CPUID
	CMPL AX, $7
	JLT no
	MOVL $1, AX
	XORL CX, CX
	CPUID
	ANDL $0x80200, CX // SSSE3 and SSE4.1
	CMPL CX, $0x80200
	JNE no
	MOVL $7, AX
	XORL CX, CX
	CPUID
	SHRL $29, BX
	ANDL $1, BX
	MOVB BX, ret+0(FP)
	RET
no:
	MOVB $0, ret+0(FP)
	RET
