"""Writes a GGUF file with a true shape whose weights are a hole: small on the disk, as large as it is told."""

import os
import struct

U32, STRING = 4, 8
F32, Q8_0 = 0, 8
WIDTH, HEADS, KV_HEADS, HEAD_DIM, FFN, VOCABULARY = 896, 14, 2, 64, 4864, 320


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def tensor_list(layers, experts):
    yield "token_embd.weight", (WIDTH, VOCABULARY), Q8_0
    yield "output_norm.weight", (WIDTH,), F32
    yield "output.weight", (WIDTH, VOCABULARY), Q8_0
    for layer in range(layers):
        def named(part, shape, kind=Q8_0, layer=layer):
            return f"blk.{layer}.{part}.weight", shape, kind
        yield named("attn_norm", (WIDTH,), F32)
        yield named("ffn_norm", (WIDTH,), F32)
        yield named("attn_q", (WIDTH, HEADS * HEAD_DIM))
        yield named("attn_k", (WIDTH, KV_HEADS * HEAD_DIM))
        yield named("attn_v", (WIDTH, KV_HEADS * HEAD_DIM))
        yield named("attn_output", (HEADS * HEAD_DIM, WIDTH))
        more = (experts,) if experts else ()
        kind = "_exps" if experts else ""
        if experts:
            yield named("ffn_gate_inp", (WIDTH, experts), F32)
        yield named("ffn_gate" + kind, (WIDTH, FFN) + more)
        yield named("ffn_up" + kind, (WIDTH, FFN) + more)
        yield named("ffn_down" + kind, (FFN, WIDTH) + more)


def write(path, layers=2, experts=0, size=None):
    """`size`: of the file, where it is more than the tensors need."""
    values = {"general.architecture": "llama", "llama.context_length": 32768, "llama.embedding_length": WIDTH,
              "llama.block_count": layers, "llama.feed_forward_length": FFN, "llama.attention.head_count": HEADS,
              "llama.attention.head_count_kv": KV_HEADS, "llama.vocab_size": VOCABULARY}
    if experts:
        values |= {"llama.expert_count": experts, "llama.expert_used_count": 2}
    metadata = b""
    for key, value in values.items():
        kind, data = (STRING, text(value)) if isinstance(value, str) else (U32, struct.pack("<I", value))
        metadata += text(key) + struct.pack("<I", kind) + data
    table, offset, tensors = b"", 0, list(tensor_list(layers, experts))
    for name, shape, kind in tensors:
        elements = 1
        for dimension in shape:
            elements *= dimension
        table += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        table += struct.pack("<IQ", kind, offset)
        offset += ((elements * 4 if kind == F32 else elements // 32 * 34) + 31) // 32 * 32
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values)) + metadata + table
    head += b"\0" * (-len(head) % 32)
    path.write_bytes(head)
    os.truncate(path, max(len(head) + offset, size or 0))
