"""The tables of a TOSA file, as its FlatBuffers schema has them (`tosa.fbs` of tosa-tools 2026.8.0): fields in order.

Kinds: bool, i32, u32 (numbers and enumerations), u64; string, strings, ints (of 32 bits), bytes (which start at a multiple of 8);
table:T, tables:T; union (its type is a field of its own before it).
"""

from __future__ import annotations

from collections.abc import Mapping

IDENTIFIER = b"TOSA"


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


OPERATORS = _words(
    "UNKNOWN ARGMAX AVG_POOL2D CONV2D CONV3D DEPTHWISE_CONV2D FFT2D MATMUL MAX_POOL2D RFFT2D TRANSPOSE_CONV2D CLAMP ERF "
    "SIGMOID TANH ADD ARITHMETIC_RIGHT_SHIFT BITWISE_AND BITWISE_OR BITWISE_XOR INTDIV LOGICAL_AND LOGICAL_LEFT_SHIFT "
    "LOGICAL_RIGHT_SHIFT LOGICAL_OR LOGICAL_XOR MAXIMUM MINIMUM MUL POW SUB TABLE ABS BITWISE_NOT CEIL CLZ COS EXP FLOOR "
    "LOG LOGICAL_NOT NEGATE RECIPROCAL RSQRT SIN SELECT EQUAL GREATER GREATER_EQUAL REDUCE_ALL REDUCE_ANY REDUCE_MAX "
    "REDUCE_MIN REDUCE_PRODUCT REDUCE_SUM CONCAT PAD RESHAPE REVERSE SLICE TILE TRANSPOSE GATHER SCATTER RESIZE CAST "
    "RESCALE CONST IDENTITY CUSTOM COND_IF WHILE_LOOP VARIABLE VARIABLE_WRITE VARIABLE_READ CONST_SHAPE "
    "MATMUL_T_BLOCK_SCALED CAST_FROM_BLOCK_SCALED CAST_TO_BLOCK_SCALED DIM CONCAT_SHAPE ADD_SHAPE SUB_SHAPE MUL_SHAPE "
    "SLICE_SHAPE EXP2_SHAPE LOG2_CEIL_SHAPE LOG2_FLOOR_SHAPE MAX_SHAPE MIN_SHAPE MOD_SHAPE DIV_CEIL_SHAPE "
    "DIV_FLOOR_SHAPE ASSERT_EQUAL_SHAPE CONV2D_BLOCK_SCALED MAX_POOL2D_ADAPTIVE AVG_POOL2D_ADAPTIVE "
    "RESHAPE_BLOCK_SCALED ROW_GATHER_BLOCK_SCALED ROW_GATHER MATMUL_T"
)  # an operator's number is its place
DTYPES = _words(
    "UNKNOWN BOOL INT4 INT8 INT16 INT32 INT48 FP32 FP16 BF16 SHAPE FP8E4M3 FP8E5M2 FP6E2M3 FP6E3M2 FP4E2M1 FP8UE8M0 "
    "INT64 MXINT8"
)
RESIZE_MODES = ("unknown", "nearest", "bilinear")
SINGLE_ROUND = 1

Fields = tuple[tuple[str, str], ...]


def fields(text: str) -> Fields:
    """Fields written as `name kind, name kind`."""
    pairs = [pair.split() for pair in text.split(",")]
    return tuple((name, kind) for name, kind in pairs)


TABLES: Mapping[str, Fields] = {
    "TosaGraph": fields(
        "version table:Version, regions tables:TosaRegion, software_version table:SoftwareVersion,"
        "compatibility table:SerializationCompatibility"
    ),
    "Version": fields("major i32, minor i32, patch i32, draft bool"),
    "SoftwareVersion": fields(
        "major i32, minor i32, micro i32, modifier string"
    ),
    "SerializationCompatibility": fields(
        "min_reader_version table:SoftwareVersion, features u64"
    ),
    "TosaRegion": fields("name string, blocks tables:TosaBasicBlock"),
    "TosaBasicBlock": fields(
        "name string, operators tables:TosaOperator, tensors tables:TosaTensor, inputs strings, outputs strings,"
        "shapes tables:TosaShape"
    ),
    "TosaOperator": fields(
        "op u32, attribute_type u8, attribute union, inputs strings, outputs strings, location table:OpLocation"
    ),
    "OpLocation": fields("text string"),
    "TosaTensor": fields(
        "name string, shape ints, type u32, data bytes, variable bool, is_unranked bool, variable_name string,"
        "offset u64, size u64, scale_type u32, scale_data bytes, block_shape u32, scale_offset u64, scale_size u64"
    ),
    "TosaShape": fields("name string, rank u32, data bytes"),
}

_CONVOLUTION = "stride ints, dilation ints, local_bound bool, acc_type u32"
_POOLING = "kernel ints, stride ints, pad ints"
_REDUCED = dict.fromkeys(
    ("REDUCE_ALL", "REDUCE_ANY", "REDUCE_PRODUCT", "REDUCE_SUM"), "axis i32"
)
ATTRIBUTES: Mapping[str, Fields] = {
    name: fields(text)
    for name, text in {
        "ARGMAX": "axis i32, nan_mode u32",
        "AVG_POOL2D": f"{_POOLING}, acc_type u32",
        "CONV2D": f"pad ints, {_CONVOLUTION}",
        "DEPTHWISE_CONV2D": f"pad ints, {_CONVOLUTION}",
        "MAX_POOL2D": f"{_POOLING}, nan_mode u32",
        "TRANSPOSE_CONV2D": "out_pad ints, stride ints, local_bound bool, acc_type u32",
        "CLAMP": "min_val bytes, max_val bytes, nan_mode u32",
        "ARITHMETIC_RIGHT_SHIFT": "round bool",
        "MAXIMUM": "nan_mode u32",
        "MINIMUM": "nan_mode u32",
        **_REDUCED,
        "REDUCE_MAX": "axis i32, nan_mode u32",
        "REDUCE_MIN": "axis i32, nan_mode u32",
        "CONCAT": "axis i32",
        "REVERSE": "axis i32",
        "TRANSPOSE": "perms ints",
        "RESIZE": "mode u32",
        "RESCALE": "scale32 bool, rounding_mode u32, per_channel bool, input_unsigned bool, output_unsigned bool",
    }.items()
}
