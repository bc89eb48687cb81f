"""Looks into the compiled kernels: the wide loads that they declare must still be in their loops.

A kernel whose loads the compiler left out would read any speed at all. Usage: wide_loads.py OBJDUMP BINARY
"""

import re
import subprocess
import sys

# Highway's name of an instruction set: what an address of memory looks like as an operand of a vector instruction, and
# the bytes that one such load moves. AVX-512 may use 16 more registers, so its accumulators never spill.
X86 = {
    "SSSE3": (r"\bxmm\d", 16),
    "SSE4": (r"\bxmm\d", 16),
    "AVX2": (r"\bymm\d", 32),
    "AVX3": (r"\bzmm\d", 64),
    "AVX3_DL": (r"\bzmm\d", 64),
    "AVX3_ZEN4": (r"\bzmm\d", 64),
}
# Loads in one turn of the loop, by kernel.
EXPECTED = {"sum": 16, "dot": 16, "copy": 4}


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
        jump = re.match(r"j\w+\s+([0-9a-f]+)\b", instruction)
        if jump and first <= int(jump.group(1), 16) <= address:
            target = int(jump.group(1), 16)
            yield [text for at, text in body if target <= at <= address]


def is_wide_load(instruction, register):
    # AT&T order: the source comes first, so a load has its "(…)" before the register that it ends in.
    operands = instruction.split(None, 1)[1] if " " in instruction else ""
    return bool(re.match(r"[^%]*\([^)]*\).*%" + register.lstrip(r"\b"), operands))


def main():
    objdump, binary = sys.argv[1:3]
    seen, faults = {}, []
    for name, body in functions(objdump, binary):
        found = re.search(r"rooflined::ceiling::N_(\w+)::(sum|dot|copy)\b", name)
        if not found or not body or found.group(1) not in X86:
            continue
        instruction_set, kernel = found.groups()
        register, _ = X86[instruction_set]
        most = max((sum(is_wide_load(text, register) for text in loop) for loop in loops(body)), default=0)
        seen[name] = most
        if most < EXPECTED[kernel]:
            faults.append(f"{name}: {most} wide loads in the fullest loop, {EXPECTED[kernel]} declared")
    for fault in faults:
        print(fault)
    kernels = {name for name in seen if "::N_AVX2::" in name}
    print(f"{len(seen)} loops, {len(kernels)} of them AVX2")
    # Eight kernels, at least SSE4 and AVX2: fewer would mean that the names no longer match.
    return 1 if faults or len(kernels) < 8 or len(seen) < 16 else 0


if __name__ == "__main__":
    sys.exit(main())
