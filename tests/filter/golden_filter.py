#!/usr/bin/env python3
"""Golden filters, from the description of the format alone (no code of filter/): prints the arrays of blocked_bloom_test.cc.

Needs libxxhash.so.0 for the checksum (XXH3-64 is public; checking it is not the point here). Hashes are SplitMix64 of 0, 1, 2, ...
"""
import ctypes
import struct

XXH = ctypes.CDLL("libxxhash.so.0")
XXH.XXH3_64bits.restype = ctypes.c_uint64
XXH.XXH3_64bits_withSeed.restype = ctypes.c_uint64
M64 = (1 << 64) - 1
THRESHOLDS = (2.08, 3.58, 5.10, 6.67, 8.32, 10.06, 11.92, 13.93, 16.12, 18.53, 21.18)


def splitmix(i):
    x = (i + 0x9E3779B97F4A7C15) & M64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & M64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & M64
    return x ^ (x >> 31)


def build(hashes, bits, seed, owner):
    keys = len(hashes)
    lines = max(1, -(-keys * bits // 512))
    k = 1 + sum(512 * lines / keys >= t for t in THRESHOLDS) if keys else 12
    body = bytearray(64 * lines)
    for h in hashes:
        line = (h * lines) >> 64
        words = list(struct.unpack_from("<16I", body, 64 * line))
        x = h & 0xFFFFFFFF
        for _ in range(k):
            x = x * 0x9E3779B9 % 2**32
            bit = x >> 23
            words[bit // 32] |= 1 << (bit % 32)
        struct.pack_into("<16I", body, 64 * line, *words)
    head = b"TFLT" + bytes((1, 1, 1, k, 0, 0)) + struct.pack("<HIQQQ", 0, 0, seed, lines, keys) + owner
    assert len(head) == 56
    covered = bytes(head) + bytes(body)
    return head + struct.pack("<Q", XXH.XXH3_64bits(covered, ctypes.c_size_t(len(covered)))) + bytes(body)


def show(name, data):
    print("constexpr char %s[] =" % name)
    text = data.hex()
    print("\n".join('    "%s"' % text[i : i + 128] for i in range(0, len(text), 128)) + ";")


OWNER = bytes(range(0x10, 0x20))
show("kGoldenEmpty", build([], 10, 0, bytes(16)))
show("kGoldenTwenty", build([splitmix(i) for i in range(20)], 10, 0x0123456789ABCDEF, OWNER))
show("kGoldenHundredTwenty", build([splitmix(i) for i in range(120)], 10, 0x0123456789ABCDEF, OWNER))
