import pytest

from syncscope.model.source import installed, shortly


@pytest.mark.parametrize(
    ("path", "library", "short"),
    [
        ("/env/lib/python3.12/site-packages/torchvision/ops/boxes.py", True, "torchvision/ops/boxes.py"),
        ("/usr/lib/python3/dist-packages/numpy/core.py", True, "numpy/core.py"),
        ("/usr/lib/python3.12/json/decoder.py", True, "json/decoder.py"),
        (r"C:\env\Lib\site-packages\timm\ema.py", True, r"timm\ema.py"),
        ("train.py", False, "train.py"),
        ("/project/lib/train.py", False, "/project/lib/train.py"),
        ("/home/someone/code/lib/train.py", False, "…/code/lib/train.py"),
        (r"C:\Users\someone\code\lib\train.py", False, "…/code/lib/train.py"),
        ("deep/down/in/the/project/train.py", False, "deep/down/in/the/project/train.py"),
    ],
)
def test_a_library_is_known_by_where_it_is_installed_and_named_without_that(path, library, short):
    assert (installed(path), shortly(path)) == (library, short)
