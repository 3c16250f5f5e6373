"""Operations and bytes of single calls, against counts made by hand and against torch's own counter."""

import json

import pytest

from syncscope.analysis.op_costs import convolutions, op_call, operations, traffic
from syncscope.model.detail import Detail


def told(op, shapes, types="float", concrete=(), outputs=None):
    kinds = [types if s else "" for s in shapes] if isinstance(types, str) else types
    detail = {"Input Dims": shapes, "Input type": kinds, "Concrete Inputs": concrete}
    if outputs is not None:
        detail |= {"Output Dims": outputs, "Output type": ["float"] * len(outputs)}
    return op_call(op, Detail.of(json.dumps(detail)))


@pytest.mark.parametrize(
    ("op", "shapes", "types", "flops", "moved"),
    [
        ("aten::mm", [[2, 3], [3, 5]], "float", 60, 4 * (6 + 15 + 10)),
        ("aten::addmm", [[5], [2, 3], [3, 5]], "c10::Half", 60, 2 * (5 + 6 + 15 + 10)),
        ("aten::bmm", [[7, 2, 3], [7, 3, 5]], "float", 420, 4 * (42 + 105 + 70)),
        ("aten::baddbmm", [[7, 2, 5], [7, 2, 3], [7, 3, 5]], "float", 420, 4 * (70 + 42 + 105 + 70)),
        ("aten::linear", [[4, 2, 3], [5, 3]], "float", 240, 4 * (24 + 15 + 40)),
        ("aten::linear_backward", [[4, 2, 3], [4, 2, 5], [5, 3]], "float", 480, 4 * (24 + 40 + 15 + 24 + 15)),
        ("aten::mv", [[4, 3], [3]], "float", 24, 4 * (12 + 3 + 4)),
        ("aten::add", [[8, 4], [4], []], ["float", "float", "Scalar"], 0, 4 * (32 + 4 + 32)),
        ("aten::mul", [[8, 1], [1, 4]], "float", 0, 4 * (8 + 4 + 32)),
        ("aten::eq", [[10], []], ["float", "Scalar"], 0, 40 + 10),
        ("aten::copy_", [[10], [10]], ["float", "long int"], 0, 10 * 4 + 10 * 8),  # the target is only written
        ("aten::fill_", [[10], []], ["float", "Scalar"], 0, 40),
        ("aten::sum", [[8, 4], [], []], ["float", "ScalarList", "Scalar"], 0, 128),
        ("aten::max_pool2d_with_indices", [[1, 2, 8, 8], [], []], "float", 0, 512),
        ("aten::native_batch_norm", [[2, 3, 4, 4], [3], [3]], "float", 0, 4 * (96 + 3 + 3 + 96)),
        ("aten::cat", [[], []], ["TensorList", ""], 0, 0),
        ("aten::cat", [[[2, 3], [4, 3]], []], ["TensorList", "Scalar"], 0, 0),  # nobody says how wide an element is
        ("aten::gather", [[100], [], [5]], ["float", "Scalar", "long int"], 0, 0),
        ("aten::mm", [], [], 0, 0),
        ("aten::mm", [[2, 3], [4, 5]], "float", 0, 4 * (6 + 20)),
        ("c10d::allreduce_", [[10]], "float", 0, 0),
    ],
)
def test_operations_and_bytes_follow_from_shapes(op, shapes, types, flops, moved):
    assert operations(told(op, shapes, types)) == flops
    assert traffic(told(op, shapes, types)) == moved


IMAGE, WEIGHT, OUT = [2, 6, 9, 9], [8, 6, 3, 3], [2, 8, 5, 5]  # stride 2, padding 1
ONE = 2 * (2 * 8 * 5 * 5) * (6 * 3 * 3)
GEOMETRY = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]


@pytest.mark.parametrize(
    ("op", "shapes", "concrete", "flops"),
    [
        ("aten::convolution", [IMAGE, WEIGHT], GEOMETRY, ONE),
        ("aten::conv2d", [IMAGE, WEIGHT], ["", "", "", "[2]", "[1]", "[1]", "1"], ONE),
        ("aten::cudnn_convolution", [IMAGE, WEIGHT], ["", "", "[1, 1]", "[2, 2]", "[1, 1]", "1"], ONE),
        ("aten::miopen_convolution", [IMAGE, WEIGHT], ["", "", "", "[1, 1]", "[2, 2]", "[1, 1]", "1"], ONE),
        ("aten::cudnn_convolution", [IMAGE, WEIGHT], [], 0),  # nobody tells the stride
        (
            "aten::_conv_depthwise2d",
            [IMAGE, [6, 1, 3, 3]],
            ["", "", "", "", "[2, 2]", "[1, 1]", "[1, 1]"],
            2 * 2 * 6 * 25 * 9,
        ),
        ("aten::convolution", [IMAGE, [6, 4, 3, 3]], [*GEOMETRY[:6], "True"], 2 * (2 * 6 * 9 * 9) * (4 * 3 * 3)),
        ("aten::convolution_backward", [OUT, IMAGE, WEIGHT], [], 2 * ONE),
        ("aten::convolution_backward", [OUT, IMAGE, WEIGHT], [*"1234567", "False", "", "", "[False, True, True]"], ONE),
        ("aten::cudnn_convolution_backward_input", [IMAGE, OUT, WEIGHT], [], ONE),
        ("aten::cudnn_convolution_backward_weight", [IMAGE, OUT, WEIGHT], [], ONE),
    ],
)
def test_a_convolution_has_two_operations_a_tap_of_each_element_it_makes(op, shapes, concrete, flops):
    assert operations(told(op, shapes, concrete=concrete)) == flops


def test_a_backward_pass_tells_what_its_forward_pass_made():
    forward = told("aten::cudnn_convolution", [IMAGE, WEIGHT])
    made = convolutions([told("aten::cudnn_convolution_backward", [IMAGE, OUT, WEIGHT])])
    assert made == {((2, 6, 9, 9), (8, 6, 3, 3)): tuple(OUT)}
    other = told("aten::convolution_backward", [[2, 8, 9, 9], IMAGE, WEIGHT])
    assert convolutions([told("aten::convolution_backward", [OUT, IMAGE, WEIGHT]), other]) == {
        ((2, 6, 9, 9), (8, 6, 3, 3)): ()  # two strides: it may be either
    }
    assert operations(forward) == 0


def test_what_our_recorder_tells_of_outputs_is_used():
    one = told("aten::convolution_overrideable", [IMAGE, WEIGHT], outputs=[OUT])
    assert operations(one) == ONE
    assert traffic(one) == 4 * (2 * 6 * 81 + 8 * 54 + 2 * 8 * 25)
    back = told("aten::convolution_backward_overrideable", [OUT, IMAGE, WEIGHT], outputs=[[], WEIGHT, [8]])
    assert operations(back) == ONE
    assert traffic(told("aten::embedding", [[1000, 16], [7]], ["float", "long int"], outputs=[[7, 16]])) == 2 * 448 + 56
    assert traffic(told("aten::_copy_from", [[10], [10]], outputs=[[10]])) == 80


def test_attention_is_two_products_and_its_backward_pass_five():
    q, k = [2, 4, 128, 64], [2, 4, 256, 64]  # batch, head, length, width
    once = 4 * 2 * 4 * 128 * 256 * 64
    assert operations(told("aten::_scaled_dot_product_flash_attention", [q, k, k])) == once
    turned = [[2, 128, 4, 64], [2, 256, 4, 64], [2, 256, 4, 64]]
    assert operations(told("aten::_flash_attention_forward", turned)) == once
    assert operations(told("aten::_flash_attention_backward", [turned[0], *turned])) == 2.5 * once
    assert operations(told("aten::_flash_attention_forward", [[300, 4, 64]] * 3)) == 0  # lengths are in another tensor
