"""Names and sizes of number formats, in one short form: `f32`, `bf16`, `i64`, `f8_e4m3fn`, `q4_k`, ..."""

_TORCH = {
    "float64": "f64",
    "double": "f64",
    "float32": "f32",
    "float": "f32",
    "float16": "f16",
    "half": "f16",
    "bfloat16": "bf16",
    "int64": "i64",
    "long": "i64",
    "int32": "i32",
    "int": "i32",
    "int16": "i16",
    "short": "i16",
    "int8": "i8",
    "char": "i8",
    "uint8": "u8",
    "byte": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "bool": "bool",
    "complex32": "c32",
    "complexhalf": "c32",
    "complex64": "c64",
    "complexfloat": "c64",
    "complex128": "c128",
    "complexdouble": "c128",
    "float8_e4m3fn": "f8_e4m3fn",
    "float8_e4m3fnuz": "f8_e4m3fnuz",
    "float8_e5m2": "f8_e5m2",
    "float8_e5m2fnuz": "f8_e5m2fnuz",
    "float8_e8m0fnu": "f8_e8m0fnu",
    "float4_e2m1fn_x2": "f4_e2m1fn_x2",
    "quint8": "qu8",
    "qint8": "qi8",
    "qint32": "qi32",
}
_BYTES = {
    **dict.fromkeys(("f64", "i64", "u64", "c64"), 8),
    **dict.fromkeys(("f32", "i32", "u32", "c32", "qi32"), 4),
    **dict.fromkeys(("f16", "bf16", "i16", "u16"), 2),
    **dict.fromkeys(("i8", "u8", "bool", "qu8", "qi8", "f4_e2m1fn_x2"), 1),
    "c128": 16,
}
# safetensors writes two of the 8-bit floats under shorter names.
_SAFETENSORS = {"f8_e4m3": "f8_e4m3fn", "f8_e8m0": "f8_e8m0fnu"}


def short_of_torch(name: str) -> str:
    """`torch.bfloat16`, `BFloat16Storage` -> 'bf16'; an unknown name comes back as it is, in small letters."""
    plain = name.rpartition(".")[2].removesuffix("Storage").lower()
    return _TORCH.get(plain, plain)


def short_of_safetensors(name: str) -> str:
    return _SAFETENSORS.get(name.lower(), name.lower())


def bytes_of(short: str) -> int | None:
    """Bytes of one number; None for a format of less than a byte, or an unknown one."""
    return 1 if short.startswith("f8_") else _BYTES.get(short)
