"""Looks into the compiled kernels: the wide loads that they declare must still be in their loops.

A kernel whose loads the compiler left out would read any speed at all. Usage: wide_loads.py OBJDUMP BINARY
"""

import re
import subprocess
import sys

# Highway's name of an instruction set, and the register that a load of its full width fills. AT&T order: the source
# comes first, so an x86 load has its "(…)" before the register that it ends in.
X86_LOAD = r"[^%]*\([^)]*\).*%{}"
SVE_LOAD = r"(?:ld1[bhwd]|ldr)\s+\{{?z\d"
WIDE_LOADS = {
    "SSE2": X86_LOAD.format(r"xmm\d"),
    "SSSE3": X86_LOAD.format(r"xmm\d"),
    "SSE4": X86_LOAD.format(r"xmm\d"),
    "AVX2": X86_LOAD.format(r"ymm\d"),
    "AVX3": X86_LOAD.format(r"zmm\d"),
    "AVX3_DL": X86_LOAD.format(r"zmm\d"),
    "AVX3_ZEN4": X86_LOAD.format(r"zmm\d"),
    "NEON": r"(?:ldr|ldp|ld1)\s+\{?[qv]\d",
    "NEON_WITHOUT_AES": r"(?:ldr|ldp|ld1)\s+\{?[qv]\d",
    "SVE": SVE_LOAD.format(),
    "SVE2": SVE_LOAD.format(),
    "SVE_256": SVE_LOAD.format(),
    "SVE2_128": SVE_LOAD.format(),
}
# Loads in one turn of the loop, by kernel.
EXPECTED = {"sum": 16, "dot": 16, "copy": 4}
KERNELS = 9


def functions(objdump, binary):
    """Yields (name, [(address, instruction)]) for every function of the kernels."""
    text = subprocess.run([objdump, "-d", "-C", "--no-show-raw-insn", binary], check=True, capture_output=True,
                          text=True).stdout
    name, body = None, []
    for line in text.splitlines():
        header = re.match(r"^[0-9a-f]+ <(.*)>:$", line)
        if header:
            if name:
                yield name, body
            name, body = header.group(1), []
            continue
        found = re.match(r"^\s+([0-9a-f]+):\s+(.*)$", line)
        if found:
            body.append((int(found.group(1), 16), found.group(2)))
    if name:
        yield name, body


def loops(body):
    """Yields the instructions between the target of each jump back and the jump."""
    first = body[0][0]
    for address, instruction in body:
        jump = re.match(r"(?:j\w+|b|b\.\w+|cbn?z\s+\w+,)\s+([0-9a-f]+)\b", instruction)
        if jump and first <= int(jump.group(1), 16) <= address:
            target = int(jump.group(1), 16)
            yield [text for at, text in body if target <= at <= address]


def wide_loads(instruction, instruction_set):
    pattern = WIDE_LOADS[instruction_set]
    if instruction_set.startswith(("NEON", "SVE")):
        # A pair of registers is two loads.
        return (2 if instruction.startswith("ldp") else 1) if re.match(pattern, instruction) else 0
    operands = instruction.split(None, 1)[1] if " " in instruction else ""
    return 1 if re.match(pattern, operands) else 0


def main():
    objdump, binary = sys.argv[1:3]
    seen, faults = {}, []
    for name, body in functions(objdump, binary):
        found = re.search(r"rooflined::ceiling::N_(\w+)::(sum|dot|copy)\b", name)
        if not found or not body or found.group(1) not in WIDE_LOADS:
            continue
        instruction_set, kernel = found.groups()
        most = max((sum(wide_loads(text, instruction_set) for text in loop) for loop in loops(body)), default=0)
        seen[name] = most
        if most < EXPECTED[kernel]:
            faults.append(f"{name}: {most} wide loads in the fullest loop, {EXPECTED[kernel]} declared")
    for fault in faults:
        print(fault)
    by_set = {}
    for name in seen:
        by_set.setdefault(re.search(r"::N_(\w+)::", name).group(1), set()).add(name)
    print(f"{len(seen)} loops: " + ", ".join(f"{len(names)} {one}" for one, names in sorted(by_set.items())))
    # Every kernel in each of at least two instruction sets: fewer would mean that the names no longer match.
    return 1 if faults or len(by_set) < 2 or min(map(len, by_set.values())) < KERNELS else 0


if __name__ == "__main__":
    sys.exit(main())
