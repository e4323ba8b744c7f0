"""Write c/crc32_tables.inc: python _core/tools/crc32_tables.py > _core/c/crc32_tables.inc"""

POLYNOMIAL = 0xEDB88320  # reflected: bit 31 is the coefficient of x^0
SLICES = 8


def times_x(value: int, n: int) -> int:
    """Value * x^n modulo the polynomial, all reflected."""
    for _ in range(n):
        value = (value >> 1) ^ (POLYNOMIAL if value & 1 else 0)
    return value


def power(n: int) -> int:
    return times_x(1 << 31, n)


print("/* Written by tools/crc32_tables.py. */\n")
print("/* slices[k][b]: the register after byte b and k zero bytes. */")
print(f"static const uint32_t slices[{SLICES}][256] = {{")
for k in range(SLICES):
    row = [f"0x{times_x(byte, 8 * (k + 1)):08x}" for byte in range(256)]
    lines = [", ".join(row[i : i + 8]) for i in range(0, 256, 8)]
    print("    {" + ",\n     ".join(lines) + "},")
print("};\n")

# Both factors of a carry-less product are reflected, which costs a factor x; a remainder of 32 bits
# stands one bit above the low end of its word, which is a factor x^31. Hence the + 32 and - 32.
print("/* Multipliers that move the two words of a block n bits ahead. */")
for n in (512, 128):
    low, high = power(n + 32) << 1, power(n - 32) << 1
    print(f"#define FOLD_{n} 0x{high:09x}, 0x{low:09x} /* high word, low word */")
